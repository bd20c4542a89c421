"""What is checked, one module a claim."""

"""What the parsers of the dialects are made of."""

"""Run models: everything that touches a tensor library."""

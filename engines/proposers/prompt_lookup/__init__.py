"""Draft without weights: copy what followed the same tokens earlier in the request."""

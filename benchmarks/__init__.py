"""Measurements of the whole server: `make bench`, or `python -m benchmarks`."""

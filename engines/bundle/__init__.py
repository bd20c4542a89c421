"""Model bundles on disk: what they say about themselves, and whether it is true."""

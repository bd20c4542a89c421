"""A deterministic engine without numerics, for tests and for people who write clients."""

"""Build bundles: one neutral description of a decoder, and what emits it for an engine."""

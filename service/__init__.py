"""Serve language models over gRPC with lossless speculative decoding."""

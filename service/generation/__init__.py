"""One output: its settings, sequence, events, randomness and cancellation."""

"""Engine thread, admission, models and settings: from a request to its messages."""

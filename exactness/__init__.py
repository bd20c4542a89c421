"""Shows that speculation changes nothing but speed: `python -m exactness`."""

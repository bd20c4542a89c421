"""Talk to an Outrider server."""

"""Generated messages and stubs of the outrider.v1 package."""

"""The command line: what each command is asked, does, and prints. Engines enter as functions."""

"""For each field of a request, how its effect is shown: one table for each message."""

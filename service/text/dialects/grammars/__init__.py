"""What a turn must match in each dialect, given the choice of tools."""

"""What an output must match, compiled once and followed token by token."""

"""The syntaxes in which models write reasoning and tool calls."""

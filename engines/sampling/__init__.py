"""From rows of logits to distributions: penalties, temperature, truncation."""

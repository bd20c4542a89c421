"""The models that checks run on, with drafts that are right, wrong and in between."""

"""Proposers: cheap drafts for a target to verify, each behind the same contract."""

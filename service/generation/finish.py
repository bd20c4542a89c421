"""Why a generation ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FinishReason(Enum):
    """The condition that ended a generation."""

    EOS = "eos"
    STOP_SEQUENCE = "stop_sequence"
    GRAMMAR_COMPLETE = "grammar_complete"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LENGTH = "context_length"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class MatchedStop:
    """The stop that matched: its index in the request, and its text or token id.

    Exactly one of `text` and `token_id` is set.
    """

    index: int
    text: str | None = None
    token_id: int | None = None

"""Semantic events: what a client reads, as the text state releases it."""

from __future__ import annotations

from dataclasses import dataclass

from service.generation.finish import FinishReason


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Incremental reasoning text."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Incremental visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool call began: zero-based index, stable id, tool name."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArgumentsDelta:
    """A fragment of one tool call's JSON arguments."""

    index: int
    json_fragment: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The current tool call ended."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Generation ended; sent exactly once, last."""

    reason: FinishReason


SemanticEvent = (
    ReasoningDelta | TextDelta | ToolCallStart | ToolArgumentsDelta | ToolCallEnd | Finished
)

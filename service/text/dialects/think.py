"""Reasoning between `<think>` and `</think>`, and no calls."""

from __future__ import annotations

from service.text.dialect import Turn
from service.text.dialects.steps.reasoning import Calls, tagged
from service.text.parser import TextParser

TAGS = ("<think>", "</think>")
MARKERS = TAGS


def think_parser(turn: Turn) -> TextParser:
    """Return what reads `<think>reasoning</think>text`."""
    return tagged(turn, TAGS, Calls(""))

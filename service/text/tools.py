"""Tools that a model may call, the choice among them, and calls that were made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model; an empty `parameters_json_schema` accepts any object."""

    name: str
    description: str = ""
    parameters_json_schema: str = ""


class ToolChoice(Enum):
    """A choice among all tools of a request."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class NamedTool:
    """The choice of one tool."""

    name: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call; `arguments_json` is one JSON object."""

    id: str
    name: str
    arguments_json: str

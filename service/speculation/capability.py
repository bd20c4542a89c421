"""Where drafts come from, where they run, and what a loaded model can do with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ExecutionTopology(Enum):
    """Placement of target and draft work: kebab for people, snake in schemas."""

    SINGLE = "single"
    SAME_DEVICE_SPLIT = "same-device-split"
    CROSS_DEVICE_SPLIT = "cross-device-split"

    @property
    def schema_name(self) -> str:
        """Return the snake-case spelling used in schemas."""
        return self.value.replace("-", "_")


class DraftSource(Enum):
    """Where draft weights live: a bundle of their own, or the target's."""

    SEPARATE = "separate"
    EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The model advertises no executable draft."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The target declares an interface for the source; preparation is still due."""

    source: DraftSource


@dataclass(frozen=True, slots=True)
class Ready:
    """The source can be executed now."""

    source: DraftSource


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Draft weights exist, but this engine cannot execute their architecture."""

    source: DraftSource
    architecture: str


SpeculativeCapability = Unavailable | Declared | Ready | Unsupported


def draft_source(capability: SpeculativeCapability) -> DraftSource | None:
    """Return the declared source, one that is not ready yet included."""
    return None if isinstance(capability, Unavailable) else capability.source


def admits_source(capability: SpeculativeCapability, requested: DraftSource) -> bool:
    """Return whether preparation of the source may be attempted."""
    return isinstance(capability, Declared | Ready) and capability.source is requested


def is_ready_for(capability: SpeculativeCapability, requested: DraftSource) -> bool:
    """Return whether the source can be executed now."""
    return isinstance(capability, Ready) and capability.source is requested

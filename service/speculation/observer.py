"""The lifecycle boundaries of speculative work, and who may watch or stop them."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class LifecycleStage(Enum):
    """A boundary, observed before the work it names.

    ADMISSION precedes the compatibility check; COMPATIBILITY follows it and
    precedes native construction; TRANSFER precedes a cross-device copy, which
    an engine that makes one shows to the model's observer, as it shows the rest.
    """

    ADMISSION = "admission"
    COMPATIBILITY = "compatibility"
    INPUT = "input"
    EXECUTION = "execution"
    TRANSFER = "transfer"
    COMPLETION = "completion"
    OBSERVATION = "observation"
    CACHE_PERSISTENCE = "cache_persistence"
    PUBLICATION = "publication"
    CANCELLATION = "cancellation"


class LifecycleObserver(Protocol):
    """Watches boundaries; raising an OutriderError keeps that one from starting."""

    def __call__(self, stage: LifecycleStage) -> None:
        """Observe one boundary before its work."""


def ignore_lifecycle(stage: LifecycleStage) -> None:
    """Observe nothing."""

"""Settings of the samplers that have several: DRY, XTC, Mirostat, and the order of steps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SamplerOrder(Enum):
    """Where the temperature stands among the truncations."""

    TEMPERATURE_FIRST = "temperature_first"
    TEMPERATURE_LAST = "temperature_last"


@dataclass(frozen=True, slots=True)
class SequenceBreakers:
    """Texts at which a repeated run ends."""

    texts: tuple[str, ...]


DEFAULT_BREAKERS = SequenceBreakers(("\n", ":", '"', "*"))


@dataclass(frozen=True, slots=True)
class DrySettings:
    """Penalises the token that would make a repeated run longer; a multiplier of zero is off.

    Source: "Don't Repeat Yourself" sampling, text-generation-webui, pull request 5677.
    """

    multiplier: float = 0.0
    base: float = 1.75
    allowed_length: int = 2
    sequence_breakers: SequenceBreakers = DEFAULT_BREAKERS


@dataclass(frozen=True, slots=True)
class XtcSettings:
    """Drops all but the least likely of the tokens above a threshold; probability zero is off.

    Source: "Exclude Top Choices" sampling, text-generation-webui, pull request 6335.
    """

    probability: float = 0.0
    threshold: float = 0.1


@dataclass(frozen=True, slots=True)
class MirostatSettings:
    """Keeps the surprise of the output at `tau` bits, adapting at the rate `eta`.

    Source: Basu et al. 2021, arXiv:2007.14966; version 2 is llama.cpp's simplification.
    """

    version: int = 2
    tau: float = 5.0
    eta: float = 0.1

"""What a measurement found, and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any


class Better(Enum):
    """On which side of its goal a figure should be."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that people look for; `goal` is None where there is none to reach."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    better: Better = Better.HIGHER

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached, None without one."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.better is Better.HIGHER else self.value <= self.goal


@dataclass(frozen=True, slots=True)
class Result:
    """A measurement's figures, the most important ones first, and everything behind them.

    `identical` says whether all outputs that had to be equal were, None where
    nothing was compared.
    """

    figures: tuple[Figure, ...]
    identical: bool | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values."""
        return {
            "figures": [
                {**asdict(figure), "better": figure.better.value, "reached": figure.reached}
                for figure in self.figures
            ],
            "identical": self.identical,
            "details": dict(self.details),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Result:
        """Return the result that such values describe."""
        figures = tuple(
            Figure(each["name"], each["value"], each["unit"], each["goal"], Better(each["better"]))
            for each in values["figures"]
        )
        return cls(figures, values["identical"], values["details"])


class ResultFile:
    """One JSON file: the machine, and each measurement with when and where it was made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.measurements: dict[str, dict[str, object]] = {}
        if path.is_file():
            self.measurements = json.loads(path.read_text(encoding="utf-8"))["measurements"]

    def results(self) -> dict[str, Result]:
        """Return what every measurement in the file found."""
        return {name: Result.from_json(each) for name, each in self.measurements.items()}

    def keep(self, name: str, measurement: Mapping[str, object]) -> None:
        """Add or replace one measurement, on disk as well."""
        self.measurements[name] = dict(measurement)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        document = json.dumps({"measurements": self.measurements}, indent=2)
        self._path.write_text(document + "\n", encoding="utf-8")

"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table: a claim, held on one engine.

    `worst` is the number that came nearest to a failure, with its bound, in words. `failures`
    name each case that broke the claim, and how.
    """

    check: str
    engine: str
    cases: int
    worst: str
    failures: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether there were cases, and none failed."""
        return self.cases > 0 and not self.failures

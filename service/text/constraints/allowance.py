"""The processor time that following one output may take."""

from __future__ import annotations

from dataclasses import dataclass

from service.text.constraints.limits import Limits


@dataclass(slots=True)
class Allowance:
    """What the steps of one output have taken beyond what each has for free.

    Quick steps make good what slow ones took: a single slow step is borne, many of them are not,
    however little each is above.
    """

    limits: Limits
    is_spent: bool = False
    _excess: float = 0.0

    def charge(self, seconds: float) -> None:
        """Count one step; once it is spent, an allowance stays so."""
        self._excess = max(0.0, self._excess + seconds - self.limits.step_seconds)
        self.is_spent = self.is_spent or self._excess > self.limits.excess_seconds

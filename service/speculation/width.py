"""How many proposals are worth verifying: expected tokens against the measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

Outlook = tuple[float, ...]
"""By position, the probability that a proposal there and all before it are accepted."""

INITIAL_ACCEPTANCE = 0.7
MARGIN = 1.05
"""What a wider pass must promise over a narrower one: host work is not in the measured cost."""

_LEARNING_RATE = 0.1
_PROBE_INTERVAL = 32
_PROBE_BURST = 8


def paying_width(
    outlooks: Sequence[Outlook], costs: Sequence[float], pass_lanes: int, floor: int = 0
) -> int:
    """Return the width that commits most tokens a millisecond, for all lanes of a pass.

    A pass is padded to its widest lane, so its lanes share one width: each
    proposes as much of it as it has, and lanes without an outlook commit one
    token all the same. `costs` are milliseconds of a round by width, from zero;
    widths beyond it are not considered. `floor` is a width that the pass has
    anyway; wider ones must be better by a margin, so in doubt a step is plain.
    """
    lanes = max(pass_lanes, len(outlooks), 1)
    widest = min(max(map(len, outlooks), default=0), len(costs) - 1)
    best = min(floor, len(costs) - 1)
    tokens = lanes + sum(sum(outlook[:best]) for outlook in outlooks)
    best_rate = MARGIN * tokens / costs[best]
    for width in range(best + 1, widest + 1):
        tokens += sum(outlook[width - 1] for outlook in outlooks if width <= len(outlook))
        rate = tokens / costs[width]
        if rate > best_rate:
            best, best_rate = width, rate
    return best


@dataclass(frozen=True, slots=True)
class AcceptanceEstimate:
    """A moving estimate of one lane's acceptance by position in the block.

    `rates[i]` estimates that position i is accepted once all before it were.
    `skipped` counts rounds since this lane last proposed; after a while it
    probes with one proposal, and goes on for a burst while probes are accepted.
    """

    rates: tuple[float, ...]
    skipped: int = 0

    @classmethod
    def fresh(cls, max_width: int) -> AcceptanceEstimate:
        """Return the estimate of a lane that has judged nothing yet."""
        return cls((INITIAL_ACCEPTANCE,) * max_width)

    @property
    def wants_probe(self) -> bool:
        """Whether it is time to propose once although it does not seem to pay."""
        return self.skipped >= _PROBE_INTERVAL

    def outlook(self, limit: int) -> Outlook:
        """Return the outlook of a block of at most `limit` proposals."""
        return tuple(accumulate(self.rates[:limit], mul))

    def skip(self) -> AcceptanceEstimate:
        """Return the estimate after a round without a proposal."""
        return replace(self, skipped=self.skipped + 1)

    def observe(self, proposed: int, accepted: int) -> AcceptanceEstimate:
        """Return the estimate after a round that accepted `accepted` of `proposed`.

        Positions after the first rejection were not judged and stay. After full
        acceptance the deeper ones drift to the last judged rate, or a width that
        was once too wide would never be tried again.
        """
        judged = min(proposed, accepted + 1, len(self.rates))
        rates = list(self.rates)
        for position in range(judged):
            rates[position] = _towards(rates[position], float(position < accepted))
        if 0 < judged == accepted:
            rates[judged:] = [_towards(rate, rates[judged - 1]) for rate in rates[judged:]]
        return AcceptanceEstimate(tuple(rates), self._probes_after(accepted))

    def _probes_after(self, accepted: int) -> int:
        goes_on = self.wants_probe and accepted
        return (self.skipped + 1) % (_PROBE_INTERVAL + _PROBE_BURST) if goes_on else 0


def _towards(rate: float, target: float) -> float:
    return rate + _LEARNING_RATE * (target - rate)

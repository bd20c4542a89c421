"""A proposer that knows the answers, and errs where its script says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle

from engines.sampling.one_hot import OneHot
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    Proposal,
    ProposerCommit,
    ProposerTraits,
    Tokens,
)

MAX_WIDTH = 8

SCRIPT = tuple((width, right) for width in range(1, MAX_WIDTH + 1) for right in range(width + 1))
"""Every width with every number of right proposals before the first wrong one."""

_STRIDE = 7  # shares no factor with the script's 44 entries, so that neighbours differ


class KnowingProposer:
    """Proposes the known continuation of a prompt, with one wrong token where the script errs.

    `outcomes` counts the blocks of whole width by their width and how much of
    them was accepted.
    """

    traits = ProposerTraits(
        name="knowing",
        source=None,
        max_proposals=MAX_WIDTH,
        has_distribution=False,
        can_branch=False,
    )

    def __init__(self, answers: Mapping[Tokens, Tokens]) -> None:
        self.outcomes: Counter[tuple[int, int]] = Counter()
        self._answers = answers
        self._script = cycle(SCRIPT[i * _STRIDE % len(SCRIPT)] for i in range(len(SCRIPT)))
        self._widths: dict[int, int] = {}

    def open(self, slot: int, prompt: Tokens) -> None:
        pass

    def close(self, slot: int) -> None:
        self._widths.pop(slot, None)

    def draft(self, requests: Sequence[DraftRequest], pass_lanes: int) -> list[DraftBlock | None]:
        return [self._draft(request) for request in requests]

    def take_timings(self) -> None:
        pass

    def commit(self, lanes: Sequence[ProposerCommit]) -> list[None]:
        for lane in lanes:
            width = self._widths.pop(lane.slot, None)
            if width is not None:
                self.outcomes[width, lane.accepted] += 1
        return [None] * len(lanes)

    def _draft(self, request: DraftRequest) -> DraftBlock | None:
        width, right = next(self._script)
        said = len(request.history.generated)
        tokens = list(self._answers[request.history.prompt][said : said + width])
        tokens = tokens[: request.width]
        if right < len(tokens):
            tokens[right] += 1
        if not tokens:
            return None
        if len(tokens) == width:
            self._widths[request.slot] = width
        return DraftBlock(None, tuple(Proposal(token, OneHot(token)) for token in tokens))

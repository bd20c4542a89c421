"""The proposer: each lane's index, and one width for the pass from the measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from engines.proposers.prompt_lookup.index import TextIndex
from engines.sampling.one_hot import OneHot
from service.errors import OutriderError, UnknownSlot
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    Proposal,
    ProposerCommit,
    ProposerTraits,
    Tokens,
)
from service.speculation.cost import CostCurve
from service.speculation.width import Outlook, paying_width

MAX_PROPOSALS = 15

_NEGLIGIBLE = 0.1
_FIXED_FLOOR = 0.35
"""At a fixed width every guess at least this probable is proposed, whatever it costs."""


@dataclass(frozen=True, slots=True)
class Path:
    """Guesses one after another, and by position how likely all of them up to there are right."""

    tokens: Tokens
    outlook: Outlook


class PromptLookup:
    """Copies what followed the longest earlier occurrence of a lane's last tokens.

    A lane's index is built when it first drafts, from its prompt, and grows
    with what it commits; assumed tokens are looked up without entering it.
    """

    def __init__(
        self, curve: CostCurve, name: str = "prompt_lookup", max_proposals: int = MAX_PROPOSALS
    ) -> None:
        self.traits = ProposerTraits(
            name=name,
            source=None,
            max_proposals=max_proposals,
            has_distribution=False,
            can_branch=True,
        )
        self._indexes: dict[int, TextIndex | None] = {}
        self._costs = lru_cache(lambda lanes: curve.by_width(lanes, max_proposals))

    def open(self, slot: int, prompt: Tokens) -> None:
        del prompt
        self._indexes[slot] = None

    def close(self, slot: int) -> None:
        self._indexes.pop(slot, None)

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> Sequence[DraftBlock | OutriderError | None]:
        paths = [self._look_up(request) for request in requests]
        width = self._shared_width(requests, paths, pass_lanes)
        return [
            _block(request, path, width) if isinstance(path, Path) else path
            for request, path in zip(requests, paths, strict=True)
        ]

    def take_timings(self) -> None:
        """Return nothing: no device drafts."""

    def commit(self, lanes: Sequence[ProposerCommit]) -> Sequence[OutriderError | None]:
        return [self._follow(lane) for lane in lanes]

    def _look_up(self, request: DraftRequest) -> Path | OutriderError:
        """Guess on from a lane's history; whatever of it is assumed leaves the index again."""
        if request.slot not in self._indexes:
            return UnknownSlot(request.slot)
        index = self._indexes[request.slot]
        if index is None:
            index = self._indexes[request.slot] = TextIndex()
        if request.state is None:
            _catch_up(index, request.history)
        committed = len(index)
        _catch_up(index, request.history)
        try:
            return _path(index, request)
        finally:
            index.truncate(committed)

    def _follow(self, lane: ProposerCommit) -> OutriderError | None:
        if lane.slot not in self._indexes:
            return UnknownSlot(lane.slot)
        index = self._indexes[lane.slot]
        if index is not None:
            _catch_up(index, lane.history)
        return None

    def _shared_width(
        self,
        requests: Sequence[DraftRequest],
        paths: Sequence[Path | OutriderError],
        pass_lanes: int,
    ) -> int:
        """Return the width that pays for the pass, given what fixed lanes propose anyway."""
        found = [
            (path, request.fixed_width)
            for request, path in zip(requests, paths, strict=True)
            if isinstance(path, Path)
        ]
        floor = max((len(path.tokens) for path, fixed in found if fixed), default=0)
        outlooks = [path.outlook for path, _ in found]
        lanes = max(pass_lanes, len(requests), 1)
        return paying_width(outlooks, self._costs(lanes), lanes, floor)


def _catch_up(index: TextIndex, history: History) -> None:
    """Index the part of a history that is new."""
    indexed, prompt = len(index), history.prompt
    if indexed >= len(prompt):
        index.extend(history.generated[indexed - len(prompt) :])
    else:
        index.extend(prompt[indexed:] + history.generated)


def _path(index: TextIndex, request: DraftRequest) -> Path:
    """Guess token by token, up to the width, the end of the output, or what is too unlikely.

    A token that may not follow ends the path before it: its row would be for nothing.
    """
    tokens: list[int] = []
    outlook: list[float] = []
    generated = request.history.generated
    likely = 1.0
    while len(tokens) < request.width:
        guess = index.guess()
        if guess is None or not request.sampler.may_follow(generated, guess.token):
            break
        likely *= guess.probability
        # A fixed block must not depend on where it began, so neither may its end.
        if guess.probability < _FIXED_FLOOR if request.fixed_width else likely < _NEGLIGIBLE:
            break
        tokens.append(guess.token)
        outlook.append(likely)
        generated = (*generated, guess.token)
        if _ends(request, generated):
            break
        index.extend((guess.token,))
    return Path(tuple(tokens), tuple(outlook))


def _ends(request: DraftRequest, generated: Tokens) -> bool:
    """Whether nothing can follow an output."""
    is_end = generated[-1] in request.eos_token_ids
    return is_end or request.sampler.prefix_is_complete(generated)


def _block(request: DraftRequest, path: Path, width: int) -> DraftBlock | None:
    """Return the path as a block of at most `width`, which no fixed path exceeds."""
    tokens = path.tokens[:width]
    if not tokens:
        return None
    proposals = tuple(Proposal(token, OneHot(token)) for token in tokens)
    return DraftBlock(len(request.history.generated) + len(tokens), proposals)

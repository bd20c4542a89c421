"""One lane's part of one draft pass: tokens go in, proposals come out."""

from __future__ import annotations

from dataclasses import dataclass, field

from engines.proposers.draft_model.decoder import Logits
from engines.proposers.draft_model.lane import DraftLane
from engines.sampling.rows import process
from service.errors import OutriderError, RequestError
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    Proposal,
    Tokens,
)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How much of a backlog a turn feeds, and the ids that the tokenizer really has."""

    chunk_tokens: int
    vocabulary_size: int


@dataclass(slots=True)
class DraftTurn:
    """A lane on its way to a block of at most `width` proposals.

    `pending` is what the cache lacks. A backlog of more than a chunk is fed for
    one chunk only, and the turn ends without a proposal.
    """

    lane: DraftLane
    request: DraftRequest
    pending: Tokens
    width: int
    limits: TurnLimits
    proposals: list[Proposal] = field(default_factory=list)
    error: OutriderError | None = None
    is_done: bool = False

    @property
    def fed(self) -> Tokens:
        """Return the tokens of the next step."""
        return self.pending[: self.limits.chunk_tokens]

    @property
    def wanted(self) -> int:
        """Return how many rows the next step is for: none while there is a backlog."""
        return int(len(self.pending) <= self.limits.chunk_tokens)

    @property
    def result(self) -> DraftBlock | OutriderError | None:
        """Return the block, the lane's error, or None where nothing was proposed.

        The block's state is the output's length after it.
        """
        if self.error is not None or not self.proposals:
            return self.error
        end = len(self.request.history.generated) + len(self.proposals)
        return DraftBlock(end, tuple(self.proposals))

    def fail(self, error: OutriderError) -> None:
        """End the turn with the lane's error."""
        self.error, self.is_done = error, True

    def take(self, rows: Logits) -> None:
        """Record a step: its tokens are cached, and its last row `[1, vocabulary]` proposes."""
        self.lane.cached += self.fed
        if not self.wanted:
            self.is_done = True
            return
        try:
            self._propose(rows)
        except RequestError:
            # Whether the request has come to its end here is for the target alone to say: the
            # tokens before may be rejected, and the draft may know fewer tokens.
            self.is_done = True
        except OutriderError as error:
            self.fail(error)

    def _propose(self, rows: Logits) -> None:
        request = self.request
        generated = request.history.generated + self._tokens
        history = History(request.history.prompt, generated)
        row = rows[-1, : self.limits.vocabulary_size]
        distribution = process(row, request.sampler, history)
        randomness = request.randomness
        draw = None if randomness is None else randomness.at(len(generated))
        token = distribution.sample(draw)
        self.proposals.append(Proposal(token, distribution))
        self.pending = (token,)
        self.is_done = (
            len(self.proposals) == self.width
            or token in request.eos_token_ids
            or request.sampler.prefix_is_complete((*generated, token))
        )

    @property
    def _tokens(self) -> Tokens:
        return tuple(proposal.token for proposal in self.proposals)

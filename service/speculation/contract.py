"""What the core asks of engines and proposers: typed protocols and the values they exchange.

Tensors, caches, queues and model state stay behind handles. A *slot* is a
lane's place in the target's cache, an opaque integer; a *checkpoint* is a
length in that slot. A pass carries many lanes and has one completion; each
lane resolves by itself. Probabilities are looked up as scalars: the
mathematics over rows belongs to the engine, for all rows of a pass at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.errors import EmptyProposalBlock, OutriderError
from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import AddressedRandomness
from service.speculation.capability import DraftSource, ExecutionTopology
from service.speculation.completion import Completion, CompletionCancellation

Tokens = tuple[int, ...]


Alternative = tuple[int, float]
"""A token and the natural logarithm of its probability."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The natural logarithm of a token's probability, and the likeliest tokens beside it.

    `alternatives` are sorted, likeliest first and the lower id first among equals; the token is
    always among them. Only tokens with probability are listed.
    """

    logprob: float
    alternatives: tuple[Alternative, ...] = ()


class Distribution(Protocol):
    """One processed distribution over the vocabulary (or the one-hot of a greedy row)."""

    def probability(self, token: int) -> float:
        """Return the normalised probability of one token."""

    def sample(self, draw: float | None) -> int:
        """Return the token of one uniform in [0, 1) by inverse CDF; None is argmax.

        Ties go to the lowest id.
        """

    def excess_over(self, draft: Distribution) -> Distribution | None:
        """Return max(0, self - draft) divided by its own sum; None without usable mass."""


class Constraint(Protocol):
    """What the output must match, at one point of it: an immutable value.

    Keeping one is a checkpoint, and dropping one leaves no trace. All rows and drafts of one
    history share one value, so that its mask is computed once.
    """

    @property
    def field(self) -> str:
        """Return the field of the request that asked for it, for errors."""

    def after(self, token: int) -> Constraint:
        """Return the state after one more token; one that may not follow leads to a dead end."""

    def permits(self, token: int) -> bool:
        """Whether this token may follow, without computing the whole mask."""

    def mask(self) -> bytes:
        """Return which tokens may follow: one bit for each id, bit `id % 8` of byte `id // 8`.

        Ids beyond the mask may not follow; a dead end permits none.

        Raises:
            ConstraintFailed: it cannot be computed within the limits.
        """

    def prefetch(self) -> None:
        """Let the mask be computed beside other work, where that pays."""

    def is_complete(self) -> bool:
        """Whether the output matches and nothing but its end may follow."""


@dataclass(frozen=True, slots=True)
class SamplingInput:
    """What a request's sampling state is made from.

    Ids from `vocabulary_size` on are padding and are never chosen. Those in `end_token_ids`
    are not before `config.min_new_tokens`; those in `run_breakers` end a run for DRY.
    """

    config: ResolvedGenerationConfig
    prompt: Tokens
    vocabulary_size: int
    end_token_ids: frozenset[int] = frozenset()
    run_breakers: frozenset[int] = frozenset()
    coins: AddressedRandomness | None = None
    constraint: Constraint | None = None


class Sampler(Protocol):
    """A lane's sampling state: an immutable value that advances on committed tokens."""

    @property
    def temperature(self) -> float:
        """Return the temperature; zero is greedy and draws nothing."""

    @property
    def supports_optimistic_promotion(self) -> bool:
        """Whether a branch drafted under this state may be promoted exactly."""

    def advance(self, distribution: Distribution, token: int) -> Sampler:
        """Return the state after `token` was committed from `distribution`."""

    def grammar_is_complete(self) -> bool:
        """Whether the grammar accepts what was committed and only the end may follow."""

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether a tentative output completes the grammar: drafting stops there."""

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        """Whether a token may follow a tentative output; proposing another wastes a row.

        Only what settings and grammar forbid is False, not what is merely unlikely.
        """


@dataclass(frozen=True, slots=True)
class History:
    """What a row's processing may look at: the prompt, and the output before it."""

    prompt: Tokens
    generated: Tokens


@dataclass(frozen=True, slots=True)
class PrefillInput:
    """One chunk of one lane's prompt; the last one asks for the row after it.

    With `every_row`, a row is wanted after each token of the chunk, for the log-probabilities
    of the prompt; the last of them is the row after it.
    """

    slot: int
    checkpoint: int
    tokens: Tokens
    is_last: bool
    history: History
    sampler: Sampler
    every_row: bool = False


@dataclass(frozen=True, slots=True)
class VerificationInput:
    """The leading input and the proposals after it (none on a plain step).

    Row i is the distribution of the token after `tokens[: i + 1]`; its history
    is `history` plus the proposals before it. `history.generated` ends with the
    leading input.
    """

    slot: int
    checkpoint: int
    tokens: Tokens
    history: History
    sampler: Sampler


class TargetRows(Protocol):
    """One lane's rows of a completed pass."""

    def distribution(self, row: int, sampler: Sampler) -> Distribution:
        """Return row `row` processed for the lane.

        `sampler` is the state advanced over the tokens before this row; only
        samplers whose state depends on them (Mirostat) look at it.

        Raises:
            OutriderError: this lane's row cannot be processed; others can.
        """

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        """Return the log-probability of a token in the row's processed distribution.

        At temperature zero it is that of the processed logits (mask, bias and penalties) at
        temperature one. The `alternatives` likeliest come with it, and the token behind them where
        it is not among them; zero gives none.

        Raises:
            OutriderError: this lane's row cannot be processed; others can.
        """

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        """Return the same in the model's own distribution: unprocessed, at temperature one."""


class PassOutput(Protocol):
    """What a pass computed; readable only after its completion was waited for."""

    def rows(self, lane: int) -> TargetRows:
        """Return the rows of the lane at this index of the submitted list.

        A prefill lane has one row, after its last chunk, and none before; with `every_row` it
        has one for each token of its chunk.
        """

    def release(self) -> None:
        """Give the pass's buffers back; its rows are invalid afterwards. Idempotent."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Submitted work: its output and its exact completion."""

    output: PassOutput
    completion: Completion


@dataclass(frozen=True, slots=True)
class ComponentTimings:
    """Device seconds by component, as far as the engine measures them."""

    draft_context: float = 0.0
    draft_assistant: float = 0.0
    draft_head: float = 0.0
    target_verification: float = 0.0


@dataclass(frozen=True, slots=True)
class CommitInput:
    """Keep exactly `inputs` of one lane's inputs after `checkpoint`; `lane` is its index."""

    lane: int
    slot: int
    checkpoint: int
    inputs: int


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The seed state that matches the committed cache, and tokens replayed to reach it.

    `seed` is opaque to the core (hidden states, say); proposers read it.
    """

    seed: object = None
    replayed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """What an engine can hold and do; `max_rows` counts padded rows, lanes times the widest."""

    vocabulary_size: int
    max_context: int
    max_slots: int
    max_pass_lanes: int
    max_pass_rows: int
    cancellations: frozenset[CompletionCancellation]
    topology: ExecutionTopology = ExecutionTopology.SINGLE
    can_overlap_drafting: bool = False
    supports_component_timings: bool = False


class Target(Protocol):
    """The target engine: caches by slot, passes, exact commits.

    Called from one thread. Every method either does what it says or raises
    and leaves the slots' committed contents as they were.
    """

    @property
    def limits(self) -> TargetLimits:
        """Return the engine's fixed limits."""

    def sampler(self, request: SamplingInput) -> Sampler:
        """Return a fresh sampling state for one request."""

    def open(self) -> int:
        """Take a free slot with an empty cache.

        Raises:
            NoFreeSlot: every slot is taken, or quarantined.
        """

    def close(self, slot: int) -> None:
        """Free a slot; one that unfinished work may still write stays unusable until it ends."""

    def abandon(self, slot: int) -> None:
        """Retire a slot whose contents are unknowable; it is never handed out again."""

    def checkpoint(self, slot: int) -> int:
        """Return the exact cache boundary of a slot."""

    def restore(self, slot: int, checkpoint: int) -> None:
        """Return a slot to a boundary that it has passed; host bookkeeping only."""

    def prefill(self, lanes: Sequence[PrefillInput]) -> Submission:
        """Submit one pass of prompt chunks."""

    def submit(self, lanes: Sequence[VerificationInput]) -> Submission:
        """Submit one verification pass; widths may differ and plain lanes have one token."""

    def commit(
        self, output: PassOutput, lanes: Sequence[CommitInput]
    ) -> Sequence[CommitResult | OutriderError]:
        """Make exact prefixes of a completed pass canonical: one result for each lane."""

    def take_timings(self, output: PassOutput) -> ComponentTimings | None:
        """Return the device seconds of a completed pass, None where not collected."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed token and the distribution it was drawn from, never an empty one."""

    token: int
    distribution: Distribution


@dataclass(frozen=True, slots=True)
class DraftBlock:
    """The proposals of one round, at least one, and the proposer's state after them.

    `state` is an immutable value: keeping an old one is a checkpoint.
    """

    state: object
    proposals: tuple[Proposal, ...]

    def __post_init__(self) -> None:
        """Refuse an empty block: nothing proposed is None, not a block."""
        if not self.proposals:
            raise EmptyProposalBlock

    @property
    def tokens(self) -> Tokens:
        """Return the proposed token ids in order."""
        return tuple(proposal.token for proposal in self.proposals)


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """One lane's part of a draft pass.

    `history.generated` ends with the token to continue from, assumed
    proposals included. `state` continues a block (None begins from `seed`, the
    target's last commit). At most `width` proposals are wanted; a proposer may
    give fewer or none unless `fixed_width` asks for as many as it has. It stops
    after an end-of-sequence token and where `sampler.prefix_is_complete`.
    """

    slot: int
    seed: object
    state: object | None
    history: History
    width: int
    fixed_width: bool
    sampler: Sampler
    randomness: AddressedRandomness | None
    eos_token_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class ProposerCommit:
    """What a lane really committed in a round.

    `state` is the judged block's (None on a plain step, after prefill, and
    where a promoted block lives on); `committed` are the round's tokens, the
    first `accepted` of them proposals. `history` includes them.
    """

    slot: int
    seed: object
    state: object | None
    history: History
    committed: Tokens
    accepted: int


@dataclass(frozen=True, slots=True)
class ProposerTraits:
    """A proposer's capabilities, as data.

    `can_branch`: a block's state may be continued while it is being verified,
    and promoted on an exact match. `source` is None where no weights draft.
    """

    name: str
    source: DraftSource | None
    max_proposals: int
    has_distribution: bool
    can_branch: bool
    needs_hidden_states: bool = False
    greedy_only: bool = False


class Proposer(Protocol):
    """A draft: proposes blocks for many lanes at once, and follows what was committed.

    Lanes are named by their target slot. Called from the engine's thread.
    """

    @property
    def traits(self) -> ProposerTraits:
        """Return the proposer's capabilities."""

    def open(self, slot: int, prompt: Tokens) -> None:
        """Begin a lane; the prompt is not yet in the target's cache."""

    def close(self, slot: int) -> None:
        """Forget a lane, if it is open."""

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> Sequence[DraftBlock | OutriderError | None]:
        """Propose for each lane: a block, None for a plain step, or that lane's error.

        `pass_lanes` is how many lanes the next verification is expected to
        carry: the cost of a width depends on it.
        """

    def take_timings(self) -> ComponentTimings | None:
        """Return the device seconds of the last draft pass, None where not collected."""

    def commit(self, lanes: Sequence[ProposerCommit]) -> Sequence[OutriderError | None]:
        """Follow committed rounds (or a finished prefill): None or the error of each lane."""

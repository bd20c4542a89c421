"""One lane of a draft: what its cache holds, and how well it has been doing."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from service.speculation.contract import History, Tokens
from service.speculation.width import AcceptanceEstimate


@dataclass(slots=True)
class DraftLane:
    """A slot of the draft's decoder, with a record of the tokens in its cache.

    What to feed and what to roll back follows from comparing that record with
    the history, so full acceptance, rejection, plain steps and branches need no
    cases. The first `agreed` tokens are known to be committed and are not
    compared again.
    """

    slot: int
    estimate: AcceptanceEstimate
    cached: list[int] = field(default_factory=list)
    agreed: int = 0

    def rewind(self, history: History, *, committed: bool) -> tuple[int, Tokens]:
        """Forget what the history does not begin with; return what is kept and what to feed.

        At least the last token is fed, for a row to come back. `committed` says
        that no token of the history is merely assumed.
        """
        tokens = _tokens_from(history, self.agreed)
        held = islice(self.cached, self.agreed, None)
        equal = 0
        for ours, theirs in zip(held, tokens, strict=False):
            if ours != theirs:
                break
            equal += 1
        equal = min(equal, len(tokens) - 1)
        kept = self.agreed + equal
        del self.cached[kept:]
        if committed:
            self.agreed = kept
        return kept, tokens[equal:]


def _tokens_from(history: History, position: int) -> Tokens:
    if position >= len(history.prompt):
        return history.generated[position - len(history.prompt) :]
    return history.prompt[position:] + history.generated

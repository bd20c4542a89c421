"""The tie rule: where rows may round differently, only a tie may be decided differently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from engines.scripted.law import Logits
from exactness.checks.greedy import check_greedy
from exactness.models.scripted import FEW, scripted_small
from service.speculation import resolution
from service.speculation.policy import Accept

NOTHING_SHOWN = "proposals were all right or all wrong: nothing is shown"


@dataclass(frozen=True, slots=True)
class NearLaw:
    """Three letters, each so much less likely than the one before."""

    step: float

    def logits(self, history: Sequence[int]) -> Logits:
        return tuple((letter, -self.step * place) for place, letter in enumerate(FEW))


def judged_carelessly(monkeypatch, *, step: float, bit_exact: bool):
    """Accept whatever is proposed, and return the result on a law of near ties."""
    monkeypatch.setattr(resolution, "judge", lambda target, proposal, stream: (Accept(), stream))
    subject = scripted_small(takes_time=False, law=NearLaw(step))
    model = replace(
        subject.model, information=replace(subject.model.information, bit_exact=bit_exact)
    )
    return check_greedy(replace(subject, model=model), 6, all_of_them=False)


def test_first_difference_at_a_tie_is_counted_and_borne(monkeypatch) -> None:
    result = judged_carelessly(monkeypatch, step=1e-4, bit_exact=False)

    assert (NOTHING_SHOWN,) == result.failures
    assert " ties; " in result.worst


@pytest.mark.parametrize(("step", "bit_exact"), [(1e-2, False), (1e-4, True)])
def test_difference_elsewhere_fails(step, bit_exact, monkeypatch) -> None:
    """Without a tie, or on an engine whose rows are bit-exact."""
    result = judged_carelessly(monkeypatch, step=step, bit_exact=bit_exact)

    assert any("differs" in failure for failure in result.failures)

"""The three penalties against their definition, at exact histories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.logits import LARGEST
from engines.sampling.penalties import Penalties
from service.speculation.contract import History
from tests.engines.sampling.reference import Settings, penalised

SIZE = 8
TOKENS = st.lists(st.integers(0, SIZE - 1), max_size=12).map(tuple)
ROWS = arrays(np.float32, SIZE, elements=st.floats(-9, 9, width=32))


def apply(row, settings: Settings, prompt, generated):
    penalties = Penalties(
        settings.repetition, settings.frequency, settings.presence, settings.last_n
    )
    return penalties.apply(row, History(prompt, generated))


@given(
    row=ROWS,
    settings=st.builds(
        Settings,
        repetition=st.sampled_from([0.5, 1.0, 1.3]),
        frequency=st.sampled_from([-0.5, 0.0, 0.7]),
        presence=st.sampled_from([-0.2, 0.0, 1.1]),
        last_n=st.integers(-1, 26),
    ),
    prompt=TOKENS,
    generated=TOKENS,
)
def test_penalties_change_what_their_definition_changes(row, settings, prompt, generated) -> None:
    before = row.copy()

    result = apply(row, settings, prompt, generated)

    expected = penalised(row.astype(float).tolist(), settings, prompt, generated)
    assert expected == pytest.approx(result.tolist(), rel=1e-5, abs=1e-5)
    assert before.tolist() == row.tolist()


def test_repetition_below_one_encourages() -> None:
    row = np.array([2.0, -2.0, 1.0], np.float32)

    result = apply(row, Settings(repetition=0.5), (0,), (1,))

    assert [4.0, -1.0, 1.0] == result.tolist()


def test_frequency_and_presence_ignore_the_prompt() -> None:
    row = np.zeros(3, np.float32)

    result = apply(row, Settings(frequency=0.5, presence=1.0), (0, 0, 0), (1, 1))

    assert [0.0, -2.0, 0.0] == result.tolist()


@pytest.mark.parametrize(
    "penalties", [Penalties(), Penalties(repetition=2.0, last_n=0), Penalties(last_n=-1)]
)
def test_neutral_penalties_return_the_row_itself(penalties) -> None:
    """A greedy row without penalties is not copied."""
    row = np.zeros(3, np.float32)

    assert penalties.is_neutral
    assert penalties.apply(row, History((0,), (1,))) is row


def test_ids_beyond_the_row_are_ignored() -> None:
    """A draft's vocabulary may be shorter than the target's."""
    row = np.ones(3, np.float32)

    assert [0.5, 1.0, 1.0] == apply(row, Settings(repetition=2.0), (0, 99), ()).tolist()


def test_absurd_penalties_saturate() -> None:
    """Boosted and punished ids stay finite, so that the row can still be sampled from."""
    row = np.array([5.0, -5.0, 0.0], np.float32)

    boosted = apply(row, Settings(repetition=1e-300), (0,), ())
    punished = apply(row, Settings(frequency=1e300), (), (1,))

    assert [LARGEST, -5.0, 0.0] == boosted.tolist()
    assert [5.0, -LARGEST, 0.0] == punished.tolist()


def test_penalties_leave_forbidden_ids_forbidden() -> None:
    """However strong a reward is, and be it beyond any number."""
    row = np.array([-np.inf, 0.0], np.float32)

    result = apply(row, Settings(repetition=0.5, frequency=-1e308), (0,), (0, 0, 0))

    assert [-np.inf, 0.0] == result.tolist()

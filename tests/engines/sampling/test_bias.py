"""What a request adds to single logits."""

import numpy as np

from engines.sampling.bias import Bias
from engines.sampling.logits import LARGEST
from service.speculation.contract import History

EMPTY = History((), ())


def biased(row, amounts) -> list[float]:
    values = np.array(row, np.float32)
    result = Bias.of(amounts).apply(values, EMPTY)
    assert values.tolist() == [np.float32(each) for each in row]
    return result.tolist()


def test_amounts_are_added_to_their_ids() -> None:
    assert [1.5, 2.0, -1.0] == biased([1.0, 2.0, 3.0], {2: -4.0, 0: 0.5})


def test_amounts_beyond_any_number_saturate() -> None:
    """A bias never forbids a token and never lets a row be unreadable."""
    assert [LARGEST, -LARGEST, 0.0] == biased([1.0, 2.0, 0.0], {0: 1e308, 1: -1e308})


def test_forbidden_ids_stay_forbidden() -> None:
    assert [-np.inf, 1.0] == biased([-np.inf, 1.0], {0: 1e308})


def test_ids_beyond_the_row_are_left_out() -> None:
    """A draft's vocabulary may be shorter than the target's."""
    assert [1.0, 3.0] == biased([1.0, 2.0], {1: 1.0, 7: 1.0})

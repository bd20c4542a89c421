"""The exact law of an output, against one that is worked out by hand."""

import math

import pytest

from exactness.fields.asking import PROMPT, drawn
from exactness.models.scripted import SMALL_LAW, scripted_small
from exactness.sample import law_of_request
from outrider.v1.settings_pb2 import XtcSettings


@pytest.fixture
def subject():
    return scripted_small(takes_time=False)


def softmax(logits):
    weights = {token: math.exp(logit) for token, logit in logits}
    return {token: weight / sum(weights.values()) for token, weight in weights.items()}


def test_law_is_the_product_of_the_rows(subject) -> None:
    law = law_of_request(subject, drawn(max_new_tokens=2))

    first = softmax(SMALL_LAW.logits(PROMPT))
    for (one, other), probability in law.items():
        second = softmax(SMALL_LAW.logits((*PROMPT, one)))
        assert probability == pytest.approx(first[one] * second[other])
    assert sum(law.values()) == pytest.approx(1.0)


def test_greedy_law_is_one_output(subject) -> None:
    law = law_of_request(subject, drawn(do_sample=False, max_new_tokens=3))

    assert [1.0] == list(law.values())


def test_law_under_coins_is_the_mean_over_their_falls(subject) -> None:
    plain = law_of_request(subject, drawn(max_new_tokens=1))
    always, half = (
        law_of_request(
            subject, drawn(max_new_tokens=1, xtc=XtcSettings(probability=p, threshold=0.05))
        )
        for p in (1.0, 0.5)
    )

    for output, probability in half.items():
        mean = (plain.get(output, 0.0) + always.get(output, 0.0)) / 2
        assert probability == pytest.approx(mean)


def test_law_of_too_many_outputs_is_refused(subject, monkeypatch) -> None:
    monkeypatch.setattr("exactness.law.MOST_OUTPUTS", 10)

    with pytest.raises(ValueError, match="more than 10 outputs"):
        law_of_request(subject, drawn(max_new_tokens=3))


def test_reading_leaves_no_slot_taken(subject) -> None:
    for _ in range(20):
        law_of_request(subject, drawn(max_new_tokens=2))

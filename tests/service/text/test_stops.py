import pytest

from service.errors import FieldViolation, InvalidRequest
from service.generation.finish import MatchedStop
from service.runtime.request import Stop
from service.text.stops import MAX_STOP_CHARACTERS, MAX_STOPS, compile_stops
from service.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary((b"<|end|>", b"a", b"b"), special=frozenset({0}))


def refused_fields(*stops):
    with pytest.raises(InvalidRequest) as refused:
        compile_stops(stops, VOCABULARY, field="settings.stops")
    return [violation.field for violation in refused.value.violations]


def test_compile_keeps_the_place_of_each_stop():
    compiled = compile_stops([Stop(token_id=2), Stop(text="x")], VOCABULARY)

    assert {2: MatchedStop(0, token_id=2)} == compiled.by_token
    assert (MatchedStop(1, text="x"),) == compiled.texts


def test_compile_reports_equal_stops_by_the_first():
    twice = [Stop(text="x"), Stop(text="x"), Stop(token_id=1), Stop(token_id=1)]
    compiled = compile_stops(twice, VOCABULARY)

    assert [0] == [stop.index for stop in compiled.texts]
    assert [2] == [stop.index for stop in compiled.by_token.values()]


def test_compile_matches_the_name_of_a_special_token_by_its_id():
    """B20: such a text would never be found, because the token adds none."""
    compiled = compile_stops([Stop(text="<|end|>")], VOCABULARY)

    assert {0: MatchedStop(0, text="<|end|>")} == compiled.by_token


@pytest.mark.parametrize("stops", [("",), ("a", "")])
def test_compile_refuses_an_empty_text_by_its_place(stops):
    """B22: it is refused before any work, naming the field."""
    assert [f"settings.stops[{len(stops) - 1}].text"] == refused_fields(
        *(Stop(text=text) for text in stops)
    )


def test_compile_names_every_bad_stop_at_once():
    """B30: 2^31 and the vocabulary's own size are no tokens."""
    bad = [Stop(text=""), Stop(token_id=2**31), Stop(text="x"), Stop(token_id=3), Stop()]

    assert [
        "settings.stops[0].text",
        "settings.stops[1].token_id",
        "settings.stops[3].token_id",
        "settings.stops[4]",
    ] == refused_fields(*bad)


def test_compile_refuses_a_stop_that_is_both_text_and_token():
    assert ["settings.stops[0]"] == refused_fields(Stop(text="x", token_id=1))


@pytest.mark.parametrize(
    ("stops", "description"),
    [
        ([Stop(text="x")] * 100_000, f"at most {MAX_STOPS} stops, got 100000"),
        (
            [Stop(text="x" * MAX_STOP_CHARACTERS), Stop(text="y")],
            f"at most {MAX_STOP_CHARACTERS} characters together, got {MAX_STOP_CHARACTERS + 1}",
        ),
    ],
)
def test_compile_refuses_more_than_its_bounds(stops, description):
    """B30: 10^5 stop strings are refused, not searched for."""
    with pytest.raises(InvalidRequest) as refused:
        compile_stops(stops, VOCABULARY)

    assert (FieldViolation("stops", description),) == refused.value.violations

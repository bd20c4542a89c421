"""Any text, any cut into tokens and rounds: what is sent is the decode up to the first stop."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from service.generation.events import Finished, TextDelta
from service.generation.finish import FinishReason, MatchedStop
from service.runtime.request import Stop
from service.text.state import GeneratedText, TextRules
from service.text.stops import compile_stops
from service.text.vocabulary import Vocabulary

# Few characters, so that stops overlap and repeat; of one to four bytes, one combining.
CHARACTERS = ["a", "b", "é", "日", "👩", "\N{ZERO WIDTH JOINER}", "\N{COMBINING ACUTE ACCENT}"]
texts = st.lists(st.sampled_from(CHARACTERS), max_size=16).map("".join)
stop_texts = st.lists(
    st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=4).map("".join), max_size=3
)
raw_bytes = st.lists(
    st.one_of(st.sampled_from(CHARACTERS).map(str.encode), st.binary(min_size=1, max_size=2)),
    max_size=14,
).map(b"".join)


@dataclass(frozen=True)
class Output:
    """What came out: the deltas by round, the stop, and how the tokens were cut."""

    deltas: list[str]
    stop: MatchedStop | None
    last: tuple[object, ...]

    @property
    def text(self):
        return "".join(self.deltas)


def cut(data, drawn):
    """Cut bytes at drawn places; the pieces are the tokens."""
    places = sorted(drawn.draw(st.sets(st.integers(0, len(data)), max_size=len(data))))
    return [data[i:j] for i, j in zip([0, *places], [*places, len(data)], strict=True)]


def commit_round(state, tokens):
    """Push a round's tokens on a fork, as a transaction does."""
    fork = state.fork()
    for token in tokens:
        if stop := fork.push_token(token):
            return fork, stop
    return fork, None


def generate(pieces, stops, drawn, *, include_stop=False):
    """Play tokens in drawn rounds, each after a tentative round that is thrown away."""
    vocabulary = Vocabulary(tuple(pieces))
    compiled = compile_stops([Stop(text=text) for text in stops], vocabulary)
    state = GeneratedText(TextRules(vocabulary, compiled, include_stop))
    position, stop, deltas = 0, None, []
    tokens = st.lists(st.integers(0, len(pieces) - 1), max_size=4)
    while position < len(pieces) and stop is None:
        commit_round(state, drawn.draw(tokens))
        width = drawn.draw(st.integers(1, 5))
        state, stop = commit_round(state, range(position, min(position + width, len(pieces))))
        position += width
        deltas += [event.text for event in state.take_events()]
    state.finish(FinishReason.STOP_SEQUENCE if stop else FinishReason.MAX_TOKENS)
    *rest, last = state.take_events()
    assert all(isinstance(event, TextDelta) for event in rest)
    return Output(deltas + [event.text for event in rest], stop, (last,))


def first_stop(text, stops):
    """Return start and index of the stop that is complete first, the longest at one place."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return end - len(longest), stops.index(longest)
    return None


@given(text=texts, stops=stop_texts, drawn=st.data())
def test_text_is_the_decode_up_to_the_first_stop(text, stops, drawn):
    output = generate(cut(text.encode(), drawn), stops, drawn)

    match first_stop(text, stops):
        case None:
            assert (text, None) == (output.text, output.stop)
            assert (Finished(FinishReason.MAX_TOKENS),) == output.last
        case start, index:
            assert text[:start] == output.text
            assert MatchedStop(index, text=stops[index]) == output.stop
            assert (Finished(FinishReason.STOP_SEQUENCE),) == output.last


@given(text=texts, stops=stop_texts, drawn=st.data())
def test_included_stop_ends_the_text(text, stops, drawn):
    output = generate(cut(text.encode(), drawn), stops, drawn, include_stop=True)

    match first_stop(text, stops):
        case None:
            assert text == output.text
        case start, index:
            assert text[:start] + stops[index] == output.text


@given(data=raw_bytes, stops=stop_texts, drawn=st.data())
def test_text_of_broken_bytes_is_their_decode_with_replacements(data, stops, drawn):
    """Bytes that are no UTF-8 neither fail nor hide a stop behind them."""
    output = generate(cut(data, drawn), stops, drawn)
    text = data.decode("utf-8", "replace")

    match first_stop(text, stops):
        case None:
            assert text == output.text
        case start, _:
            assert text[:start] == output.text


@given(text=texts, stops=stop_texts, drawn=st.data())
def test_delta_never_ends_inside_a_character(text, stops, drawn):
    """Valid text yields no replacement, wherever a token ended."""
    output = generate(cut(text.encode(), drawn), stops, drawn)

    assert "\N{REPLACEMENT CHARACTER}" not in output.text
    assert "" not in output.deltas

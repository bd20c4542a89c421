import pytest

from service.errors import SemanticError
from service.generation.events import Finished, TextDelta
from service.generation.finish import FinishReason, MatchedStop
from service.runtime.request import Stop
from service.text.parser import PLAIN_TEXT
from service.text.state import GeneratedText, TextRules
from service.text.stops import compile_stops
from service.text.vocabulary import Vocabulary

EOS, MAX, STOPPED = FinishReason.EOS, FinishReason.MAX_TOKENS, FinishReason.STOP_SEQUENCE


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def push_all(state, tokens):
    """Push tokens up to the first stop; return it."""
    return next((stop for stop in map(state.push_token, tokens) if stop), None)


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize(
    ("pieces", "stop", "text"),
    [(["DEF", "G", "HI", "J"], "DEFGHIJ", ""), (["hel", "lo ", "wor", "ld"], "lo wor", "hel")],
)
def test_stop_across_tokens_never_leaks_its_prefix(output, pieces, stop, text, size):
    """B20: whatever the block size, only what precedes the stop is sent."""
    state = output([piece.encode() for piece in pieces], Stop(text=stop))
    sent, matched = "", None
    for start in range(0, len(pieces), size):
        matched = matched or push_all(state, range(start, min(start + size, len(pieces))))
        sent += text_of(state.take_events())
    state.finish(STOPPED)

    assert (text, MatchedStop(0, text=stop)) == (sent + text_of(state.take_events()), matched)


def test_stop_drops_what_follows_it_in_its_token(output):
    """B21: "?\\n" with the stop "\\n" is "?"."""
    state = output([b"?\nmore"], Stop(text="\n"))
    matched = state.push_token(0)
    state.finish(STOPPED)

    assert MatchedStop(0, text="\n") == matched
    assert (TextDelta("?"), Finished(STOPPED)) == state.take_events()


def test_near_match_is_sent_once(output):
    """B21: " Alice!" is no "Alice:"."""
    state = output([b" Al", b"ice", b"!"], Stop(text="\n"), Stop(text="Alice:"))
    events = []
    for token in range(3):
        assert state.push_token(token) is None
        events += state.take_events()
    state.finish(EOS)

    assert [TextDelta(" "), TextDelta("Alice!")] == events
    assert (Finished(EOS),) == state.take_events()


def test_repeated_near_match_is_released_whole(output):
    """B21: "abcabcX" with the stop "abcd", then the end of the sequence."""
    state = output([b"abc", b"abcX", b"</s>"], Stop(text="abcd"), special=frozenset({2}))
    push_all(state, range(3))
    state.finish(EOS)

    assert (TextDelta("abcabcX"), Finished(EOS)) == state.take_events()


def test_finish_releases_what_is_held(output):
    """B21: the output ended inside a possible stop, so it was none."""
    state = output([b"xab"], Stop(text="abcd"))
    state.push_token(0)
    before = state.take_events()
    state.finish(MAX)

    assert (TextDelta("x"),) == before
    assert (TextDelta("ab"), Finished(MAX)) == state.take_events()


def test_finish_replaces_a_character_that_stays_unfinished(output):
    state = output([b"a\xf0\x9f"])
    state.push_token(0)
    before = state.take_events()
    state.finish(MAX)

    assert (TextDelta("a"),) == before
    assert (TextDelta("\N{REPLACEMENT CHARACTER}"), Finished(MAX)) == state.take_events()


def test_finish_sends_exactly_one_end_and_nothing_after(output):
    """B44: one terminal event, and it is the last."""
    state = output([b"a"])
    state.push_token(0)
    state.finish(MAX)

    assert (TextDelta("a"), Finished(MAX)) == state.take_events()
    assert () == state.take_events()
    with pytest.raises(SemanticError):
        state.finish(MAX)
    with pytest.raises(SemanticError):
        state.push_token(0)
    assert () == state.take_events()


def test_cancel_drops_what_is_held(output):
    state = output([b"xab", b"\xf0\x9f"], Stop(text="abcd"))
    push_all(state, range(2))
    state.cancel()

    assert (TextDelta("x"), Finished(FinishReason.CANCELLED)) == state.take_events()


def test_cancel_after_the_end_changes_nothing(output):
    state = output([b"a"])
    state.finish(EOS)
    state.cancel()

    assert (Finished(EOS),) == state.take_events()


def test_include_stop_sends_the_stop_and_nothing_after_it(output):
    state = output([b"xa", b"by"], Stop(text="ab"), include_stop=True)
    push_all(state, range(2))
    state.finish(STOPPED)

    assert (TextDelta("xab"), Finished(STOPPED)) == state.take_events()


@pytest.mark.parametrize(("include_stop", "text"), [(False, "ab"), (True, "abSTOP")])
def test_stop_token_hides_its_text_unless_included(output, include_stop, text):
    """B15, B17: a stop id ends the output; what was held for a text stop is released."""
    state = output([b"ab", b"STOP"], Stop(text="abc"), Stop(token_id=1), include_stop=include_stop)
    matched = push_all(state, range(2))
    state.finish(STOPPED)

    assert MatchedStop(1, token_id=1) == matched
    assert text == text_of(state.take_events())


def test_stop_token_counts_before_a_stop_in_its_own_text(output):
    state = output([b"xSTOP"], Stop(text="x"), Stop(token_id=0))

    assert MatchedStop(1, token_id=0) == state.push_token(0)


@pytest.mark.parametrize(
    ("stops", "first"),
    [(["cd", "b"], 1), (["c", "bc", "abc"], 2), (["bcd", "c"], 1), (["c", "c"], 0)],
)
def test_stop_that_is_complete_first_counts_then_the_longest_then_the_first(output, stops, first):
    """As the contract says of `GenerationSettings.stops`."""
    state = output([b"abcd"], *(Stop(text=stop) for stop in stops))

    assert MatchedStop(first, text=stops[first]) == state.push_token(0)


@pytest.mark.parametrize(("include_stop", "text"), [(False, "a"), (True, "a<|end|>")])
def test_stop_text_that_names_a_special_token_matches_it(output, include_stop, text):
    """B20: the token adds no text, yet the stop is not silently dead."""
    state = output(
        [b"a", b"<|end|>"],
        Stop(text="<|end|>"),
        special=frozenset({1}),
        include_stop=include_stop,
    )
    matched = push_all(state, range(2))
    state.finish(STOPPED)

    assert MatchedStop(0, text="<|end|>") == matched
    assert text == text_of(state.take_events())


def test_silent_token_adds_no_text(output):
    """B15: an end-of-sequence id that is an ordinary token stays hidden."""
    state = output([b"a", b"b"], silent=frozenset({1}))
    push_all(state, range(2))
    state.finish(EOS)

    assert (TextDelta("a"), Finished(EOS)) == state.take_events()


def test_special_token_separates_nothing(output):
    """A stop and a character may lie on both sides of a token without text."""
    pieces = [b"x\xc3", b"<s>", b"\xa9", b"nd"]
    state = output(pieces, Stop(text="én"), special=frozenset({1}))

    assert MatchedStop(0, text="én") == push_all(state, range(4))
    assert (TextDelta("x"),) == state.take_events()


@pytest.mark.parametrize("cut", range(1, 19))
def test_character_spread_over_tokens_is_never_replaced(output, cut):
    """B42: each way to cut the emoji sequence and the letters after it in two."""
    text = "👩‍💻é日本"
    data = text.encode()
    state = output([data[:cut], data[cut:]])
    deltas = []
    for token in range(2):
        state.push_token(token)
        deltas += [event.text for event in state.take_events()]
    state.finish(MAX)

    assert text == "".join(deltas)
    assert (Finished(MAX),) == state.take_events()
    assert all("\N{REPLACEMENT CHARACTER}" not in delta for delta in deltas)


def test_stop_inside_an_emoji_run_is_found(output):
    """B42: one byte a token, and the stop is the joiner between two emoji."""
    data = "a👩‍💻b".encode()
    state = output([bytes([byte]) for byte in data], Stop(text="\N{ZERO WIDTH JOINER}"))

    assert MatchedStop(0, text="\N{ZERO WIDTH JOINER}") == push_all(state, range(len(data)))
    assert "a👩" == text_of(state.take_events())


def test_neighbouring_deltas_of_a_round_are_one(output):
    state = output([b"a", b"b", b"c"])
    push_all(state, range(3))

    assert (TextDelta("abc"),) == state.take_events()


def test_fork_has_nothing_staged(output):
    state = output([b"a"])
    state.push_token(0)

    assert () == state.fork().take_events()
    assert (TextDelta("a"),) == state.take_events()


def test_fork_that_is_dropped_leaves_no_trace(output):
    state = output([b"x\xc3", b"\xa9ab", b"END", b"\xa8"], Stop(text="éabEND"))
    state.push_token(0)
    tentative = state.fork()
    push_all(tentative, [1, 2])
    tentative.finish(STOPPED)
    state.push_token(3)

    assert (TextDelta("xè"),) == state.take_events()


def test_fork_goes_on_where_its_origin_stood(output):
    state = output([b"x\xc3", b"\xa9a", b"b"], Stop(text="éab"))
    push_all(state, [0, 1])
    state.take_events()
    fork = state.fork()

    assert MatchedStop(0, text="éab") == fork.push_token(2)


def test_fork_of_an_ended_output_has_ended(output):
    state = output([b"a"])
    state.finish(EOS)
    fork = state.fork()
    fork.cancel()

    assert () == fork.take_events()


def test_push_after_a_stop_is_refused(output):
    state = output([b"a"], Stop(text="a"))
    state.push_token(0)

    with pytest.raises(SemanticError, match="already ended"):
        state.push_token(0)


@pytest.mark.parametrize("token", [-1, 1])
def test_push_of_an_id_beyond_the_vocabulary_is_refused(output, token):
    with pytest.raises(SemanticError, match=f"{token} is not a token id"):
        output([b"a"]).push_token(token)


class ShoutingParser:
    """Holds everything until the end: the extreme of a dialect that buffers."""

    def __init__(self, held=""):
        self.held = held

    def read(self, text):
        return ShoutingParser(self.held + text), ()

    def mark(self, marker):
        return self.read(marker)

    is_reasoning = False

    def finish(self):
        return (TextDelta(self.held.upper()),)


def parsed_text(*stops):
    vocabulary = Vocabulary((b"hello <tool_call", b"END"))
    compiled = compile_stops(stops, vocabulary)
    return GeneratedText(TextRules(vocabulary, compiled, parser=ShoutingParser()))


def test_stop_while_a_parser_buffers_loses_nothing():
    """B40: what the parser held is released when the stop ends the output."""
    state = parsed_text(Stop(text="END"))
    push_all(state, range(2))
    state.finish(STOPPED)

    assert (TextDelta("HELLO <TOOL_CALL"), Finished(STOPPED)) == state.take_events()


def test_fork_keeps_its_own_parser():
    origin = parsed_text()
    origin.push_token(0)
    fork = origin.fork()
    origin.push_token(0)
    fork.push_token(1)
    fork.finish(EOS)

    assert (TextDelta("HELLO <TOOL_CALLEND"), Finished(EOS)) == fork.take_events()


def rules(pieces, *stops, markers=(), min_tokens=0, parser=PLAIN_TEXT):
    """Return the state of an output whose tokens in `markers` are a dialect's."""
    vocabulary = Vocabulary(tuple(pieces), frozenset(markers))
    return GeneratedText(
        TextRules(
            vocabulary,
            compile_stops(stops, vocabulary),
            parser=parser,
            markers={token: pieces[token].decode() for token in markers},
            min_tokens=min_tokens,
        )
    )


class LiteralMarkers(ShoutingParser):
    """Shows each marker, and where the text before it ended."""

    def read(self, text):
        return self, (TextDelta(text),)

    def mark(self, marker):
        return self, (TextDelta(f"[{marker}]"),)


def test_no_stop_matches_before_the_least_number_of_tokens():
    """`min_new_tokens`: neither a text nor a token, and what they spell is text."""
    state = rules([b"a", b"END"], Stop(text="END"), Stop(text="a"), min_tokens=3)
    early = push_all(state, [1, 0, 1])
    late = state.push_token(0)
    state.finish(STOPPED)

    assert (None, MatchedStop(1, text="a")) == (early, late)
    assert (TextDelta("ENDaEND"), Finished(STOPPED)) == state.take_events()


def test_stop_token_is_text_before_the_least_number_of_tokens():
    state = rules([b"a", b"b"], Stop(token_id=1), min_tokens=2)

    assert MatchedStop(0, token_id=1) == push_all(state, [0, 1, 1])
    assert "ab" == text_of(state.take_events())


@pytest.mark.parametrize("early", [1, 2])
def test_stop_across_the_least_number_of_tokens_matches(early):
    """Complete only behind it, although it began before."""
    state = rules([b"xE", b"N", b"D"], Stop(text="END"), min_tokens=early)
    matched = push_all(state, range(3))
    state.finish(STOPPED)

    assert MatchedStop(0, text="END") == matched
    assert (TextDelta("x"), Finished(STOPPED)) == state.take_events()


def test_stop_complete_with_the_last_of_the_least_tokens_is_text():
    state = rules([b"xE", b"N", b"D", b"y"], Stop(text="END"), min_tokens=3)

    assert push_all(state, range(4)) is None
    assert "xENDy" == text_of(state.take_events())


def test_least_number_of_tokens_is_counted_by_each_fork():
    state = rules([b"a", b"b"], Stop(text="b"), min_tokens=2)
    state.push_token(0)
    state.fork().push_token(0)

    assert state.push_token(1) is None
    assert MatchedStop(0, text="b") == state.push_token(1)


def test_marker_ends_what_is_held_before_it():
    """A character and a stop end where a marker follows, and go to the parser first."""
    parser = LiteralMarkers()
    state = rules([b"x\xc3", b"<m>", b"\xa9EN", b"D"], Stop(text="END"), markers=[1], parser=parser)
    push_all(state, range(3))
    state.push_token(1)
    matched = state.push_token(3)
    state.finish(MAX)

    replaced = "\N{REPLACEMENT CHARACTER}"
    assert matched is None
    assert f"x{replaced}[<m>]{replaced}EN[<m>]D" == text_of(state.take_events())


@pytest.mark.parametrize(("min_tokens", "is_found"), [(0, True), (2, False)])
def test_stop_in_what_a_marker_cuts_off_is_found(min_tokens, is_found):
    """A character that no byte can complete any more is U+FFFD, and may be a stop."""
    stop = Stop(text="x\N{REPLACEMENT CHARACTER}")
    parser = LiteralMarkers()
    state = rules([b"ax\xc3", b"<m>"], stop, markers=[1], min_tokens=min_tokens, parser=parser)
    matched = push_all(state, range(2))
    state.finish(STOPPED if matched else MAX)

    assert is_found == (matched == MatchedStop(0, text=stop.text))
    assert ("a" if is_found else f"a{stop.text}[<m>]") == text_of(state.take_events())


@pytest.mark.parametrize("end", [None, 1], ids=["the budget", "a stop token"])
def test_end_makes_no_stop_of_an_unfinished_character(end):
    """What ended the output is already told: the U+FFFD is text, whatever it would spell."""
    replaced = "\N{REPLACEMENT CHARACTER}"
    state = rules([b"ax\xc3", b"END"], Stop(text=f"x{replaced}"), Stop(token_id=1))
    state.push_token(0)
    matched = None if end is None else state.push_token(end)
    state.finish(STOPPED if matched else MAX)

    assert (None if end is None else MatchedStop(1, token_id=1)) == matched
    assert f"ax{replaced}" == text_of(state.take_events())


def test_marker_that_is_a_stop_ends_the_output():
    """The parser is not told: the stop is recognised first."""
    state = rules([b"a", b"<m>"], Stop(text="<m>"), markers=[1], parser=LiteralMarkers())
    matched = push_all(state, range(2))
    state.finish(STOPPED)

    assert MatchedStop(0, text="<m>") == matched
    assert "a" == text_of(state.take_events())


def test_marker_that_ends_the_sequence_is_told_to_the_parser():
    """A call of the harmony format ends with such a token."""
    vocabulary = Vocabulary((b"a", b"<m>"), frozenset({1}))
    state = GeneratedText(
        TextRules(vocabulary, silent=frozenset({1}), parser=LiteralMarkers(), markers={1: "<m>"})
    )
    push_all(state, range(2))
    state.finish(EOS)

    assert "a[<m>]" == text_of(state.take_events())

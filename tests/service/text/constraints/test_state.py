"""Where an output stands: what may follow, where it may end, and what a value promises."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.constraints.state import GrammarState
from service.text.language import (
    AnyJson,
    Choice,
    Composite,
    JsonSchema,
    Lark,
    Regex,
)
from tests.service.text.constraints.words import (
    COMPILERS,
    END,
    ENDS,
    FIELD,
    PIECED,
    REPLY,
    accepts,
    permitted,
    spell,
    written,
)

ANSWER = json.dumps(
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
)
LANGUAGES = (
    Regex("(ab|abc)+(12)?"),
    Regex("[^a]{0,3}a"),
    JsonSchema(ANSWER),
    AnyJson(),
    Choice(("ye", "yes", "€", "hello")),
    Lark('start: "a" x* <|reply|>?\nx: "b" | "12"'),
    Composite('start: "ab" (@one | @two)', (("one", Regex("[0-9]{2}")), ("two", AnyJson()))),
)


def begin(compiler, language, ends=ENDS) -> GrammarState:
    return compiler.compile(language, ends, FIELD)


def test_end_may_follow_only_where_the_output_matches(compiler):
    state = begin(compiler, Regex("a+"))

    assert not state.permits(END)
    assert permitted(state) >= {ord("a")}
    assert END not in permitted(state)
    assert state.after(ord("a")).permits(END)
    assert END in permitted(state.after(ord("a")))


def test_output_that_matches_and_could_go_on_is_not_complete(compiler):
    assert not written(begin(compiler, Regex("a+")), "a").is_complete()
    assert not begin(compiler, Regex("ab")).is_complete()
    assert written(begin(compiler, Regex("ab")), "ab").is_complete()
    assert written(begin(compiler, JsonSchema(ANSWER)), '{"a": 7}').is_complete()
    assert not written(begin(compiler, Choice(("ye", "yes"))), "ye").is_complete()
    assert written(begin(compiler, Choice(("ye", "yes"))), "yes").is_complete()


def test_output_is_complete_also_where_no_token_may_end_it(compiler):
    state = written(begin(compiler, Regex("ab"), frozenset()), "ab")

    assert permitted(state) == set()
    assert state.is_complete()


def test_any_token_of_the_request_may_end_the_output_and_no_other_end_of_the_model(compiler):
    state = written(begin(compiler, Regex("a+"), frozenset({REPLY, ord("z")})), "a")

    assert permitted(state) >= {REPLY, ord("z"), ord("a")}
    assert END not in permitted(state)
    assert not state.permits(END)


def test_token_that_ends_the_output_is_no_text_of_it(compiler):
    state = begin(compiler, Regex("[az]+"), frozenset({ord("z")}))

    assert not state.permits(ord("z"))
    assert state.after(ord("z")).mask() == bytes(len(state.mask()))


def test_end_beyond_the_vocabulary_is_in_the_mask(compiler):
    beyond = PIECED.vocabulary.size + 9

    state = written(begin(compiler, Regex("a"), frozenset({beyond})), "a")

    assert permitted(state) == {beyond}
    assert state.permits(beyond)


def test_nothing_follows_an_end_and_it_is_no_error(compiler):
    """B31: what is drafted after the end is not permitted, and that is all."""
    end = written(begin(compiler, JsonSchema(ANSWER)), '{"a":1}')

    for token in (END, ord("\n"), ord("`"), REPLY, 10**9, -1):
        after = end.after(token)
        assert permitted(after) == set()
        assert not after.permits(END)
        assert not after.is_complete()
        assert after.after(END).after(0).mask() == after.mask()
        after.prefetch()
    assert permitted(end) == {END}


def test_token_that_may_not_follow_leaves_no_trace(compiler):
    """B31: a refused draft token is a rejection; the state that refused it goes on."""
    state = written(begin(compiler, Regex("abc")), "a")
    before = permitted(state)

    for token in (ord("z"), END, 10**9, -1, REPLY, ord("a")):
        assert not state.permits(token)
        assert permitted(state.after(token)) == set()
    assert permitted(state) == before
    assert written(state, "bc").is_complete()


def test_dead_end_permits_nothing_and_is_neither_complete_nor_an_error(compiler):
    state = written(begin(compiler, Lark('start: "a" X\nX: /b/ & /c/')), "a")

    assert permitted(state) == set()
    assert not state.is_complete()
    assert permitted(state.after(ord("b"))) == set()


def test_special_tokens_follow_only_where_a_grammar_names_them(compiler):
    anything = begin(compiler, Regex("(.|\n)+"))
    named = begin(compiler, Lark('start: <|reply|> "a" <[260]>'))

    assert REPLY not in permitted(anything)
    assert permitted(named) == {REPLY}
    assert permitted(named.after(REPLY).after(ord("a"))) == {REPLY}
    assert not accepts(anything, "")
    assert accepts(anything, "<|reply|>")


def test_forced_text_may_be_spelled_in_every_way():
    state = begin(COMPILERS["pieces"], Lark('start: "abc€"'))
    ids = {piece: token for token, piece in enumerate(PIECED.vocabulary.tokens)}

    assert permitted(state) == {ord("a"), ids[b"ab"], ids[b"abc"]}
    tail = state.after(ids[b"ab"]).after(ord("c"))
    assert permitted(tail) == {0xE2, ids[b"\xe2\x82"], ids["€".encode()]}
    assert tail.after(0xE2).after(ids[b"\x82\xac"]).is_complete()


def test_white_space_inside_json_is_bounded_and_none_follows_it(compiler):
    """B36: a model that always prefers white space comes to the end of the object."""
    state, output = begin(compiler, JsonSchema(ANSWER)), b""
    while not state.is_complete():
        open_to = permitted(state)
        token = next((t for t in b" \n\t\r" if t in open_to), min(open_to))
        output += bytes([token])
        state = state.after(token)

        assert len(output) < 200

    assert json.loads(output).keys() == {"a"}
    assert max(map(len, re.findall(rb"[ \n\t\r]+", output))) == 32
    assert permitted(state) == {END}


def test_unfinished_json_may_not_end(compiler):
    """B36: an output cut short by its budget never looks finished."""
    whole = '{"a": -12}'

    for length in range(len(whole)):
        assert not accepts(begin(compiler, JsonSchema(ANSWER)), whole[:length])


@st.composite
def walks(draw):
    """Draw a compiler, a language, and a walk through permitted tokens."""
    compiler = COMPILERS[draw(st.sampled_from(sorted(COMPILERS)))]
    language = draw(st.sampled_from(LANGUAGES))
    state, tokens = begin(compiler, language), []
    for _ in range(draw(st.integers(0, 12))):
        open_to = sorted(permitted(state) - ENDS)
        if not open_to:
            break
        tokens.append(draw(st.sampled_from(open_to)))
        state = state.after(tokens[-1])
    return compiler, language, tokens, state


@given(walks())
@settings(max_examples=120, deadline=None)
def test_permits_is_the_bit_of_the_mask_whether_or_not_it_was_computed(walk):
    compiler, language, tokens, state = walk
    other = begin(compiler, language)
    for token in tokens:
        other = other.after(token)

    asked = {token for token in range(PIECED.vocabulary.size + 40) if other.permits(token)}

    assert asked == permitted(state)
    assert asked == permitted(other)
    assert asked == {token for token in range(PIECED.vocabulary.size + 40) if other.permits(token)}


def is_answer(text):
    value = json.loads(text)
    return list(value) == ["a"] and isinstance(value["a"], int)


MATCHES = {
    Regex("(ab|abc)+(12)?"): lambda text: re.fullmatch("(ab|abc)+(12)?", text),
    Regex("[^a]{0,3}a|€+"): lambda text: re.fullmatch("[^a]{0,3}a|€+", text),
    JsonSchema(ANSWER): is_answer,
    Choice(("ye", "yes", "€", "hello")): {"ye", "yes", "€", "hello"}.__contains__,
    Choice(("a" * 30, "ab")): {"a" * 30, "ab"}.__contains__,
}
# What leads to the end of an object, so that one comes to it now and then.
CLOSING = frozenset(b'"a:1}')


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_is_written_with_permitted_tokens_matches_where_it_may_end(data):
    compiler = COMPILERS[data.draw(st.sampled_from(sorted(COMPILERS)))]
    language = data.draw(st.sampled_from(list(MATCHES)))
    state, tokens = begin(compiler, language), []
    for _ in range(40):
        open_to = permitted(state)
        if END in open_to:
            assert MATCHES[language](spell(tokens).decode())
            if open_to == {END}:
                assert state.is_complete()
                return
        likely = sorted(open_to - ENDS, key=lambda token: (token not in CLOSING, token))
        tokens.append(data.draw(st.sampled_from(likely[:4] + likely)))
        state = state.after(tokens[-1])


@given(walks())
@settings(max_examples=120, deadline=None)
def test_every_cut_of_a_text_into_tokens_leads_to_the_same_place(walk):
    compiler, language, tokens, state = walk
    if REPLY in tokens:
        return

    by_bytes = written(begin(compiler, language), spell(tokens))

    assert permitted(by_bytes) == permitted(state)
    assert by_bytes.is_complete() == state.is_complete()


@given(walks(), st.lists(st.integers(0, 300), max_size=6))
@settings(max_examples=80, deadline=None)
def test_branches_leave_the_state_they_left_untouched(walk, strange):
    _, _, _, state = walk
    before = permitted(state)

    branch = state
    for token in strange:
        branch = branch.after(token)
        branch.is_complete()
        branch.mask()

    assert permitted(state) == before
    for token in before - ENDS:
        assert permitted(state.after(token)) | {END}

"""What states of one output share, how long they live, and what happens when room runs out."""

import gc
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import ConstraintFailed
from service.text.constraints.compiler import GrammarCompiler
from service.text.constraints.limits import Limits
from service.text.constraints.state import GrammarState
from service.text.language import (
    AnyJson,
    Lark,
    Regex,
)
from tests.service.text.constraints.words import (
    BYTES,
    COMPILERS,
    END,
    ENDS,
    FIELD,
    PIECED,
    permitted,
    written,
)

# Its automaton needs a state for each of the last twelve letters.
GROWING = Regex("((a|b)*a(a|b){12})*")


def begin(compiler, language, ends=ENDS) -> GrammarState:
    return compiler.compile(language, ends, FIELD)


def test_states_of_one_history_are_one_object(compiler):
    state = begin(compiler, AnyJson())

    assert state.after(ord("[")) is state.after(ord("["))
    assert written(state, "[1,") is written(state, "[1,")
    assert state.mask() is state.mask()


def test_long_output_keeps_few_states_alive_though_its_beginning_is_held(compiler):
    first = begin(compiler, Regex("[ab]*"))
    others = sum(isinstance(thing, GrammarState) for thing in gc.get_objects())
    state = first
    for index in range(2000):
        state = state.after(ord("ab"[index % 2]))
        if index % 3 == 0:
            state.mask()

    alive = sum(isinstance(thing, GrammarState) for thing in gc.get_objects()) - others
    assert alive < 64
    assert state.permits(ord("a"))
    assert first.after(ord("a")).after(ord("b")).permits(END)


def test_recent_states_are_remembered(compiler):
    first = begin(compiler, Regex("[ab]*"))
    branches = [written(first, text) for text in ("abab", "abba", "bbbb")]

    assert [written(first, text) for text in ("abab", "abba", "bbbb")] == branches


def test_states_are_safe_to_use_from_several_threads(compiler):
    text = '{"a": [1, 2, {"b": "hello"}], "c": "€"}'
    with ThreadPoolExecutor(4) as pool:
        state = begin(GrammarCompiler(PIECED, ENDS, pool=pool), AnyJson())
        rows = [state := state.after(byte) for byte in text.encode()]
        for row in rows:
            row.prefetch()
        masks = list(pool.map(lambda row: row.mask(), rows * 4))
        steps = pool.map(lambda row: (row.permits(END), row.after(ord(" ")).mask()), rows * 4)
        assert len(list(steps)) == len(masks)

    alone = begin(compiler, AnyJson())
    expected = [permitted(alone := alone.after(byte)) for byte in text.encode()]
    size = BYTES.vocabulary.size
    assert [{t for t in permitted(row) if t < size} for row in rows] == [
        {t for t in found if t < size} for found in expected
    ]
    assert masks == [row.mask() for row in rows] * 4


def grown(state, letters):
    """Follow letters, computing each mask on the way."""
    for letter in letters:
        state.mask()
        state = state.after(ord(letter))
    return state


LETTERS = "".join(random.Random(1).choices("ab", k=1500))


def test_output_outlives_an_automaton_that_others_have_filled():
    small = GrammarCompiler(BYTES, ENDS, Limits(lexer_states=600, restart_seconds=60.0))
    waiting = grown(begin(small, GROWING), LETTERS[:50])
    other = begin(small, GROWING)
    with pytest.raises(ConstraintFailed):
        grown(other, LETTERS)

    assert permitted(waiting) == permitted(grown(begin(COMPILERS["bytes"], GROWING), LETTERS[:50]))
    grown(waiting, LETTERS[50:100])
    grown(begin(small, GROWING), LETTERS[:100])


def test_constraint_that_exceeds_its_limits_fails_by_its_field_and_says_nothing_of_the_output():
    small = GrammarCompiler(BYTES, ENDS, Limits(lexer_states=600))

    with pytest.raises(ConstraintFailed) as failed:
        grown(begin(small, GROWING), LETTERS)

    assert str(failed.value) == f"{FIELD} cannot be followed further within its limits"
    assert failed.value.__cause__ is None


def test_output_whose_grammar_takes_too_long_to_follow_is_given_up():
    """The library's own limits let a step of an ambiguous grammar take seconds."""
    ambiguous = Lark('start: x{0,9999}\nx: "a"?')
    state = begin(GrammarCompiler(BYTES, ENDS, Limits(excess_seconds=0.02)), ambiguous)

    with pytest.raises(ConstraintFailed):
        grown(state, "a" * 60)


def test_output_whose_steps_are_each_bearable_is_given_up_for_all_of_them():
    """Hundreds of steps below any limit of one would hold up an engine for seconds."""
    ambiguous = Lark('start: x{0,300}\nx: "a"?')
    small = Limits(step_seconds=0.0, excess_seconds=0.5)
    state = begin(GrammarCompiler(BYTES, ENDS, small), ambiguous)

    with pytest.raises(ConstraintFailed):
        grown(state, "a" * 299)


def test_output_waits_only_a_moment_for_an_automaton_of_its_own():
    """It is an engine that waits, and with it every other request."""
    patient = Limits(lexer_states=600, restart_seconds=0.0)
    waiting = grown(begin(small := GrammarCompiler(BYTES, ENDS, patient), GROWING), LETTERS[:50])
    with pytest.raises(ConstraintFailed):
        grown(begin(small, GROWING), LETTERS)

    with pytest.raises(ConstraintFailed):
        grown(waiting, LETTERS[50:])


def test_outputs_that_are_too_slow_disturb_no_other():
    small = GrammarCompiler(BYTES, ENDS, Limits(step_seconds=0.0, excess_seconds=0.0))
    state = begin(small, Regex("ab"))

    assert not state.after(ord("a")).permits(ord("b"))
    assert permitted(begin(small, Regex("ab"))) == {ord("a")}

"""Outputs that a grammar permits, found by walking through its masks, and what is read of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from service.generation.events import (
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.generation.finish import FinishReason
from service.text.constraints.compiler import GrammarCompiler
from service.text.constraints.state import GrammarState, State
from service.text.dialect import Dialect, Turn, reading
from service.text.language import Language
from service.text.state import GeneratedText, TextRules
from service.text.tokenizer import Tokenizer
from tests.service.text.dialects.families import byte_tokenizer

END = "<|end_of_turn|>"
END_ID = 0x100
ENDS = frozenset({END_ID})
MOST_TOKENS = 10_000
CLOSING = frozenset(b'"}])>:,;')
"""What leads out of a value more often than other letters."""


@cache
def tokenizer_with(*markers: str) -> Tokenizer:
    """Return a tokenizer of bytes, in which these markers are tokens."""
    return byte_tokenizer(END, *markers)


@cache
def _compiler(tokenizer: Tokenizer) -> GrammarCompiler:
    return GrammarCompiler(tokenizer, ENDS)


def beginning(language: Language, tokenizer: Tokenizer) -> GrammarState:
    """Return where an output in a language begins."""
    return _compiler(tokenizer).compile(language, ENDS, "constraint")


def may_end(state: State) -> bool:
    """Return whether the turn may end here."""
    return state.permits(END_ID)


def permits(language: Language, tokenizer: Tokenizer, text: str) -> tuple[bool, bool]:
    """Return whether the text may be written, and whether the turn may end behind it."""
    after = _taken(beginning(language, tokenizer), tokenizer.encode_markup(text))
    return after is not None, after is not None and may_end(after)


def walk(
    language: Language,
    tokenizer: Tokenizer,
    random: Random,
    start: str = "",
    ways: Sequence[str] = (),
) -> list[int]:
    """Return the tokens of a random output that begins with `start` and may end where it does.

    `ways` are texts that lead out of what could go on for ever.
    """
    tokens = list(tokenizer.encode_markup(start))
    state = _taken(beginning(language, tokenizer), tokens)
    assert state is not None, f"{start!r} is not permitted"
    while not (may_end(state) and (state.is_complete() or random.random() < 0.5)):
        assert len(tokens) < MOST_TOKENS, "the walk does not end"
        chosen = _way(state, tokenizer, random, ways) or [_step(state, random)]
        state = _taken(state, chosen)
        tokens += chosen
    return tokens


def _taken(state: State, tokens: Sequence[int]) -> State | None:
    for token in tokens:
        if not state.permits(token):
            return None
        state = state.after(token)
    return state


def _way(state: State, tokenizer: Tokenizer, random: Random, ways: Sequence[str]) -> list[int]:
    """Return one of the ways, if it is open."""
    if not ways or random.random() < 0.7:
        return []
    tokens = list(tokenizer.encode_markup(random.choice(ways)))
    return [] if _taken(state, tokens) is None else tokens


def _step(state: State, random: Random) -> int:
    bits = int.from_bytes(state.mask(), "little") & ~(1 << END_ID)
    permitted = [token for token in range(bits.bit_length()) if bits >> token & 1]
    closing = [token for token in permitted if token in CLOSING or token > END_ID]
    return random.choice(closing if closing and random.random() < 0.6 else permitted)


@dataclass(frozen=True)
class Heard:
    """What a client hears of an output."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]
    ended: int


def hear(dialect: Dialect, turn: Turn, tokenizer: Tokenizer, tokens: list[int]) -> Heard:
    """Return what the dialect's parser makes of an output."""
    how = reading(dialect, turn, None, tokenizer.vocabulary)
    state = GeneratedText(TextRules(tokenizer.vocabulary, parser=how.parser, markers=how.markers))
    for token in tokens:
        state.push_token(token)
    state.finish(FinishReason.EOS)
    text, reasoning, names, arguments, ended = "", "", [], [], 0
    for event in state.take_events():
        match event:
            case TextDelta(piece):
                text += piece
            case ReasoningDelta(piece):
                reasoning += piece
            case ToolCallStart(name=name):
                names.append(name)
                arguments.append("")
            case ToolArgumentsDelta(index, fragment):
                arguments[index] += fragment
            case ToolCallEnd():
                ended += 1
            case Finished():
                pass
    return Heard(text, reasoning, tuple(zip(names, arguments, strict=True)), ended)

"""Turns of the harmony format: messages on channels, of which calls and answers are the last."""

from __future__ import annotations

from service.text.dialect import Spell, Turn, quoted
from service.text.dialects.grammars.calls import open_calls
from service.text.dialects.grammars.words import GAP, FreeText, grammar
from service.text.dialects.harmony import CALL, CHANNEL, CONSTRAIN, END, MARKERS, MESSAGE, START
from service.text.language import Composite, Language
from service.text.tools import ToolChoice

_TEXT = FreeText("TEXT", MARKERS)


def harmony_language(turn: Turn, answer: Language | None, spell: Spell) -> Language | None:
    """Return what a turn must match, None where nothing is asked of it.

    Reasoning and, with tools, remarks to the user may come before the turn's last message. One
    turn holds one call: its last token ends the output.
    """
    if answer is not None:
        start = f"{_before(spell, 'analysis')} {_final(spell)} @answer"
        return Composite(grammar(start, *_definitions(spell)), (("answer", answer),))
    if not turn.tools:
        return None
    if turn.choice is ToolChoice.NONE:
        before = _before(spell, "analysis", "commentary")
        return Composite(
            grammar(f"{before} {_final(spell)} {_TEXT.terminal}", *_definitions(spell)), ()
        )
    return _with_calls(turn, spell)


def _with_calls(turn: Turn, spell: Spell) -> Language:
    calls = open_calls(turn, lambda name, arguments: _call(name, arguments, spell))
    if turn.choice is ToolChoice.AUTO:
        before = _before(spell, "analysis", "commentary")
        start = f"{before} (call | {_final(spell)} {_TEXT.terminal})"
    else:
        start = f"{_before(spell, 'analysis')} call"
    return Composite(grammar(start, f"call: {calls.rule}", *_definitions(spell)), calls.parts)


def _definitions(spell: Spell) -> tuple[str, ...]:
    return (_TEXT.definition, *_TEXT.until(END, spell)[1])


def _before(spell: Spell, *channels: str) -> str:
    """Return the rule's part for any messages on some channels, each up to the next one's role."""
    named = " | ".join(map(quoted, channels))
    body, _ = _TEXT.until(END, spell)
    return f'({spell(CHANNEL)} ({named}) {spell(MESSAGE)} {body} {spell(START)} "assistant")*'


def _final(spell: Spell) -> str:
    return f'{spell(CHANNEL)} "final" {spell(MESSAGE)}'


def _call(name: str, arguments: str, spell: Spell) -> str:
    """Write a call; models name the recipient after the channel, and templates before it."""
    recipient, channel = quoted(f" to=functions.{name}"), f'{spell(CHANNEL)} "commentary"'
    form = f'({GAP} {spell(CONSTRAIN)} "json" | " json")?'
    body = f"{form} {spell(MESSAGE)} {arguments} {spell(CALL)}?"
    return f"(({channel} {recipient} | {recipient} {channel}) {body})"

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
    words = _Words(spell)
    opened = words.opened(turn.prompt)
    if answer is not None:
        start = f"{opened} {words.before('analysis')} {words.final} @answer"
        return Composite(grammar(start, *words.definitions), (("answer", answer),))
    if not turn.tools:
        return None
    before = words.before("analysis", "commentary")
    if turn.choice is ToolChoice.NONE:
        start = f"{opened} {before} {words.final} {_TEXT.terminal}"
        return Composite(grammar(start, *words.definitions), ())
    calls = open_calls(turn, words.call)
    start = f"{opened} {words.before('analysis')} call"
    if turn.choice is ToolChoice.AUTO:
        start = f"{opened} {before} (call | {words.final} {_TEXT.terminal})"
    return Composite(grammar(start, f"call: {calls.rule}", *words.definitions), calls.parts)


class _Words:
    """The parts of rules, as a tokenizer spells the markers."""

    def __init__(self, spell: Spell) -> None:
        self._body, joined = _TEXT.until(END, spell)
        self._next = f'{self._body} {spell(START)} "assistant"'
        self._channel, self._message = spell(CHANNEL), spell(MESSAGE)
        self._constrain, self._called = spell(CONSTRAIN), spell(CALL)
        self.definitions = (_TEXT.definition, *joined)
        self.final = f'{self._channel} "final" {self._message}'

    def before(self, *channels: str) -> str:
        """Return the part for any messages on some channels, each up to the next one's role."""
        named = " | ".join(map(quoted, channels))
        return f"({self._channel} ({named}) {self._message} {self._next})*"

    def opened(self, prompt: str) -> str:
        """Return the part for the rest of a message that the prompt has opened, if it has."""
        _, message, body = prompt.rpartition(START)[2].partition(MESSAGE)
        return self._next if message and END not in body else ""

    def call(self, name: str, arguments: str) -> str:
        """Return the part for a call.

        Models name the recipient behind the channel, and templates before it.
        """
        recipient, channel = quoted(f" to=functions.{name}"), f'{self._channel} "commentary"'
        form = f'({GAP} {self._constrain} "json" | " json")?'
        body = f"{form} {self._message} {arguments} {self._called}?"
        return f"(({channel} {recipient} | {recipient} {channel}) {body})"

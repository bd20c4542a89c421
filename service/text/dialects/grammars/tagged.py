"""Turns of reasoning, text and calls that markers set apart: most dialects are of this kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.text.dialect import Spell, Turn, quoted
from service.text.dialects.grammars.calls import Calls, WriteCall, open_calls
from service.text.dialects.grammars.words import (
    ANYTHING,
    GAP,
    FreeText,
    grammar,
    regex_literal,
)
from service.text.language import Composite, Language, Lark, Regex
from service.text.tools import ToolChoice


@dataclass(frozen=True, slots=True)
class Section:
    """What surrounds calls, in Lark: before the first, after each, between two, after the last."""

    call: WriteCall
    head: str = ""
    tail: str = ""
    between: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A syntax by its markers.

    `reasoning` opens and closes it. `trigger` begins a section of calls. Where it is empty, the
    turn's first letter tells a call from text; text is then limited by `text_only`.
    """

    markers: tuple[str, ...] = ()
    reasoning: tuple[str, str] | None = None
    trigger: str = ""
    section: Callable[[Spell], Section] | None = None
    text_only: str = ""


def tagged_language(
    syntax: Tagged, turn: Turn, answer: Language | None, spell: Spell
) -> Language | None:
    """Return what a turn of the syntax must match, None where nothing is asked of it."""
    if answer is not None:
        return _answer(syntax, turn, answer, spell)
    if not turn.tools or syntax.section is None:
        return None
    if turn.choice is ToolChoice.NONE:
        return _text_only(syntax, turn, spell)
    return _with_calls(syntax, syntax.section(spell), turn, spell)


def _answer(syntax: Tagged, turn: Turn, answer: Language, spell: Spell) -> Language:
    if syntax.reasoning is None:
        return answer
    thinking, definitions = _thinking(syntax, turn, spell, then=GAP)
    told_apart = _told_apart(answer, syntax.reasoning[0])
    return Composite(grammar(f"{thinking} @answer", *definitions), (("answer", told_apart),))


def _told_apart(answer: Language, opening: str) -> Language:
    """Return an answer that does not begin as reasoning does, where its language might have it."""
    if not isinstance(answer, Regex):
        return answer
    pattern = regex_literal(answer.pattern)
    reasoning = f"(/[ \\t\\r\\n]*/ {quoted(opening)} {ANYTHING})"
    return Lark(f"start: ANSWER\nANSWER: {pattern} & ~{reasoning}")


def _text_only(syntax: Tagged, turn: Turn, spell: Spell) -> Language:
    thinking, definitions = _thinking(syntax, turn, spell)
    text = _text(syntax)
    return Composite(grammar(f"{thinking} {text.terminal}", text.definition, *definitions), ())


def _with_calls(syntax: Tagged, section: Section, turn: Turn, spell: Spell) -> Language:
    calls = open_calls(turn, section.call)
    made, opening = _made(section, calls), spell(syntax.trigger) if syntax.trigger else ""
    if turn.choice is not ToolChoice.AUTO:
        thinking, definitions = _thinking(syntax, turn, spell, then=GAP)
        return Composite(
            grammar(f"{thinking} {opening} {made}", f"call: {calls.rule}", *definitions),
            calls.parts,
        )
    thinking, definitions = _thinking(syntax, turn, spell)
    text = _text(syntax)
    triggered, joined = text.until(syntax.trigger, spell) if syntax.trigger else ("", ())
    start = f"{thinking} ({text.terminal} | {triggered} {made})"
    return Composite(
        grammar(start, f"call: {calls.rule}", text.definition, *joined, *definitions), calls.parts
    )


def _made(section: Section, calls: Calls) -> str:
    """Return the rule's part for the calls that follow a trigger."""
    one = f"call {section.tail}"
    more = f"({section.between} {one})*" if calls.several else ""
    return f"{section.head} {one} {more} {section.end}"


def _text(syntax: Tagged) -> FreeText:
    return FreeText("TEXT", syntax.markers, syntax.text_only)


def _thinking(
    syntax: Tagged, turn: Turn, spell: Spell, then: str = ""
) -> tuple[str, Sequence[str]]:
    """Return the rule's part for the reasoning and `then`, and its definitions.

    It may be left out, unless the prompt has opened it.
    """
    if syntax.reasoning is None:
        return "", ()
    opening, closing = syntax.reasoning
    thought = FreeText("THOUGHT", syntax.reasoning)
    until, joined = thought.until(closing, spell)
    if turn.prompt.rstrip().endswith(opening):
        return f"{until} {then}", (thought.definition, *joined)
    if spell(opening) != quoted(opening):
        return f"({spell(opening)} {until} {then})?", (thought.definition, *joined)
    # One terminal: else an answer that may begin with these letters would take them.
    whole = f"THINKING: {spell(opening)} {until}"
    return f"(THINKING {then})?", (thought.definition, *joined, whole)

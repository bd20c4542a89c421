"""The dialects that markers set apart, each as data."""

from __future__ import annotations

from functools import partial

from service.text.dialect import Spell, quoted
from service.text.dialects.grammars.calls import json_call
from service.text.dialects.grammars.tagged import Section, Tagged
from service.text.dialects.grammars.words import GAP

_THINK = ("<think>", "</think>")
_DEEPSEEK = tuple(
    f"<\uff5ctool▁{name}\uff5c>"
    for name in ("calls▁begin", "call▁begin", "sep", "call▁end", "calls▁end")
)
_CALLS, _CALL, _SEP, _CALLED, _ALL_CALLED = _DEEPSEEK
_NOT_AN_OBJECT = " & ~(/[ \\t\\r\\n]*\\{/ ANY)"


def _hermes(spell: Spell) -> Section:
    return Section(
        call=partial(json_call, key="arguments"),
        head=GAP,
        tail=f"{GAP} {spell('</tool_call>')}",
        between=f"{GAP} {spell('<tool_call>')} {GAP}",
    )


def _llama3(spell: Spell) -> Section:
    del spell
    return Section(call=partial(json_call, key="parameters"), between=f'{GAP} ";" {GAP}')


def _mistral(spell: Spell) -> Section:
    del spell
    named = f'({GAP} "," {GAP} "\\"id\\"" {GAP} ":" {GAP} /"[A-Za-z0-9]{{9}}"/)?'
    return Section(
        call=partial(json_call, key="arguments", more=f" {named}"),
        head=f'{GAP} "[" {GAP}',
        between=f'{GAP} "," {GAP}',
        end=f'{GAP} "]"',
    )


def _mistral_args(spell: Spell) -> Section:
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {spell('[ARGS]')} {arguments})",
        between=spell("[TOOL_CALLS]"),
    )


def _deepseek_v3(spell: Spell) -> Section:
    begin, sep = spell(_CALL), spell(_SEP)
    fence, close = quoted("\n```json\n"), quoted("\n```")
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {fence} {arguments} {close})",
        head=f'{begin} "function" {sep}',
        tail=spell(_CALLED),
        between=f'{GAP} {begin} "function" {sep}',
        end=f"{GAP} {spell(_ALL_CALLED)}",
    )


def _deepseek_v31(spell: Spell) -> Section:
    begin, sep = spell(_CALL), spell(_SEP)
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {sep} {arguments})",
        head=begin,
        tail=spell(_CALLED),
        between=begin,
        end=spell(_ALL_CALLED),
    )


THINK = Tagged(markers=_THINK, reasoning=_THINK)
HERMES = Tagged(
    markers=(*_THINK, "<tool_call>", "</tool_call>"),
    reasoning=_THINK,
    trigger="<tool_call>",
    section=_hermes,
)
LLAMA3_JSON = Tagged(text_only=_NOT_AN_OBJECT, section=_llama3)
LLAMA3_PYTHON = Tagged(markers=("<|python_tag|>",), trigger="<|python_tag|>", section=_llama3)
MISTRAL = Tagged(
    markers=("[TOOL_CALLS]", "[THINK]", "[/THINK]"),
    reasoning=("[THINK]", "[/THINK]"),
    trigger="[TOOL_CALLS]",
    section=_mistral,
)
MISTRAL_ARGS = Tagged(
    markers=(*MISTRAL.markers, "[ARGS]"),
    reasoning=MISTRAL.reasoning,
    trigger="[TOOL_CALLS]",
    section=_mistral_args,
)
DEEPSEEK_V3 = Tagged(
    markers=(*_THINK, *_DEEPSEEK),
    reasoning=_THINK,
    trigger=_CALLS,
    section=_deepseek_v3,
)
DEEPSEEK_V31 = Tagged(
    markers=(*_THINK, *_DEEPSEEK),
    reasoning=_THINK,
    trigger=_CALLS,
    section=_deepseek_v31,
)

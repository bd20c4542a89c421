"""The dialects that markers set apart, each as data."""

from __future__ import annotations

from functools import partial

from service.text.dialect import Spell, quoted
from service.text.dialects import deepseek, hermes, llama3_python, mistral, think
from service.text.dialects.grammars.calls import json_call
from service.text.dialects.grammars.tagged import Section, Tagged
from service.text.dialects.grammars.words import GAP

_NOT_AN_OBJECT = " & ~(/[ \\t\\r\\n]*\\{/ ANY)"


def _hermes(spell: Spell) -> Section:
    return Section(
        call=partial(json_call, key="arguments"),
        head=GAP,
        tail=f"{GAP} {spell(hermes.CLOSE)}",
        between=f"{GAP} {spell(hermes.OPEN)} {GAP}",
    )


def _llama3(spell: Spell) -> Section:
    del spell
    return Section(call=partial(json_call, key="parameters"), between=f'{GAP} ";" {GAP}')


def _mistral(spell: Spell) -> Section:
    del spell
    id_ = f'({GAP} "," {GAP} "\\"id\\"" {GAP} ":" {GAP} /"[A-Za-z0-9]{{9}}"/)?'
    return Section(
        call=partial(json_call, key="arguments", more=f" {id_}"),
        head=f'{GAP} "[" {GAP}',
        between=f'{GAP} "," {GAP}',
        end=f'{GAP} "]"',
    )


def _mistral_args(spell: Spell) -> Section:
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {spell(mistral.ARGS)} {arguments})",
        between=spell(mistral.OPEN),
    )


def _deepseek_v3(spell: Spell) -> Section:
    begin = f'{spell(deepseek.CALL_OPEN)} "function" {spell(deepseek.SEPARATOR)}'
    fence, close = quoted(f"\n{deepseek.FENCE_OPEN}\n"), quoted(f"\n{deepseek.FENCE_CLOSE}")
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {fence} {arguments} {close})",
        head=begin,
        tail=spell(deepseek.CALL_CLOSE),
        between=f"{GAP} {begin}",
        end=f"{GAP} {spell(deepseek.CLOSE)}",
    )


def _deepseek_v31(spell: Spell) -> Section:
    begin, separator = spell(deepseek.CALL_OPEN), spell(deepseek.SEPARATOR)
    return Section(
        call=lambda name, arguments: f"({quoted(name)} {separator} {arguments})",
        head=begin,
        tail=spell(deepseek.CALL_CLOSE),
        between=begin,
        end=spell(deepseek.CLOSE),
    )


THINK = Tagged(think.MARKERS, think.TAGS)
HERMES = Tagged(hermes.MARKERS, think.TAGS, hermes.OPEN, _hermes)
LLAMA3_JSON = Tagged(section=_llama3, text_only=_NOT_AN_OBJECT)
LLAMA3_PYTHON = Tagged(llama3_python.MARKERS, None, llama3_python.TAG, _llama3)
MISTRAL = Tagged(mistral.MARKERS, mistral.TAGS, mistral.OPEN, _mistral)
MISTRAL_ARGS = Tagged(mistral.MARKERS, mistral.TAGS, mistral.OPEN, _mistral_args)
DEEPSEEK_V3 = Tagged(deepseek.MARKERS, think.TAGS, deepseek.OPEN, _deepseek_v3)
DEEPSEEK_V31 = Tagged(deepseek.MARKERS, think.TAGS, deepseek.OPEN, _deepseek_v31)

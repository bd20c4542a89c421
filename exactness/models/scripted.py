"""Scripted models: laws instead of weights, and passes that take time or none."""

from __future__ import annotations

from dataclasses import replace

from engines.proposers.prompt_lookup.proposer import PromptLookup
from engines.scripted.clock import ManualClock
from engines.scripted.law import HashLaw, Law
from engines.scripted.model import (
    DRAFT_RULES,
    ScriptedSettings,
    draft_rule,
    scripted_proposer,
    scripted_target,
)
from engines.scripted.timetable import Timetable
from engines.scripted.vocabulary import CHAT_TEMPLATE, Special, tokenizer_json
from exactness.models.free import FREE
from exactness.subject import Subject
from service.generation.config import GenerationOverrides
from service.runtime.models import LoadedModel, LoadedProposer, ModelInformation
from service.runtime.request import SpeculationMode
from service.runtime.text import ModelText
from service.speculation.contract import Tokens
from service.text.chat import ChatTemplate
from service.text.tokenizer import parse_tokenizer

LETTERS = tuple(b"abcdefghijkl")
LAW = HashLaw(LETTERS, candidates=4, end_one_in=40)
FEW = LETTERS[:3]
SMALL_LAW = HashLaw(FEW, candidates=6)
CONTEXT = 512


def scripted(*, takes_time: bool) -> Subject:
    """Make a scripted model with each of its drafts and with prompt lookup."""
    return _scripted(LAW, takes_time=takes_time)


def scripted_small(*, takes_time: bool, law: Law = SMALL_LAW) -> Subject:
    """Make one whose law knows three letters, so that all its outputs can be counted."""
    return replace(_scripted(law, takes_time=takes_time), is_small=True)


def _scripted(law: Law, *, takes_time: bool) -> Subject:
    clock = ManualClock()
    settings = ScriptedSettings(
        law=law,
        max_context=CONTEXT,
        timetable=Timetable(1.0 if takes_time else 0.0),
        is_synchronous=not takes_time,
    )
    drafts = [
        LoadedProposer(name, SpeculationMode.DRAFT_MODEL, scripted_proposer(name, rule))
        for name, rule in ((name, draft_rule(name, law)) for name in DRAFT_RULES)
    ]
    lookup = LoadedProposer("prompt_lookup", SpeculationMode.PROMPT_LOOKUP, PromptLookup(FREE))
    model = LoadedModel(
        name="scripted",
        target=scripted_target(settings, clock),
        text=_text(),
        eos_token_ids=frozenset({int(Special.EOS)}),
        proposers=(*drafts, lookup),
        defaults=GenerationOverrides(do_sample=False),
        information=ModelInformation(bit_exact=True),
    )
    name = "scripted, passes take time" if takes_time else "scripted"
    return Subject(name, model, prompts(), FEW, clock if takes_time else None)


def prompts() -> tuple[Tokens, ...]:
    """Return eight prompts of one to forty tokens; half of them repeat themselves."""
    return tuple(
        tuple(
            LETTERS[(place % period * 5 + index) % len(LETTERS)] for place in range(1 + index * 5)
        )
        for index, period in enumerate((1, 2, 41, 3, 41, 5, 41, 41))
    )


def _text() -> ModelText:
    template = ChatTemplate(
        CHAT_TEMPLATE,
        path="scripted",
        bos_token=Special.BOS.text,
        eos_token=Special.EOS.text,
    )
    return ModelText("scripted", parse_tokenizer(tokenizer_json(), "scripted"), template)

"""Models that say what a case needs: laws, words beside the bytes, and who drafts for them."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from engines.build.build import write_bundle
from engines.build.description import llama_description
from engines.build.onnx_emitter import EmitOptions
from engines.build.progress import SilentProgress
from engines.build.synthetic import RandomWeights, synthetic_parts, tiny_geometry
from engines.bundle.bundle import load_bundle
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from engines.proposers.draft_model.proposer import DraftCosts, DraftModel, DraftSettings
from engines.proposers.prompt_lookup.proposer import PromptLookup
from engines.scripted.clock import ManualClock
from engines.scripted.device import Device
from engines.scripted.law import HashLaw, Law, Logits
from engines.scripted.model import ScriptedSettings, draft_rule, scripted_proposer
from engines.scripted.proposer import ScriptedProposer
from engines.scripted.rules import DraftRule, FollowScript
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.target import ScriptedTarget
from engines.scripted.vocabulary import (
    CHAT_TEMPLATE,
    VOCABULARY_SIZE,
    Special,
    tokenizer_json,
)
from service.__main__ import load_models
from service.errors import OutriderError
from service.generation.config import GenerationOverrides
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.request import SpeculationMode
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.runtime.text import ModelText
from service.speculation.contract import DraftBlock, DraftRequest, Tokens
from service.speculation.cost import CostCurve
from service.text.chat import ChatTemplate
from service.text.tokenizer import Tokenizer, parse_tokenizer

EOS = int(Special.EOS)
FIRST_WORD = VOCABULARY_SIZE
CHEAP_ROWS = CostCurve.from_points({(1, 1): 10.0, (1, 9): 11.0, (8, 1): 20.0, (8, 9): 22.0})
"""Rows cost next to nothing, so that prompt lookup proposes whatever it finds."""
NO_COST = CostCurve.from_points({(1, 1): 0.01, (1, 9): 0.01, (8, 1): 0.01, (8, 9): 0.01})
SLOTS = 4


@dataclass(frozen=True, slots=True)
class FixedLaw:
    """The same probabilities after every history."""

    probabilities: tuple[tuple[int, float], ...]

    def logits(self, history: Sequence[int]) -> Logits:
        return tuple((token, math.log(mass)) for token, mass in self.probabilities)


def fixed(**probabilities: float) -> FixedLaw:
    """Return a law over letters."""
    return FixedLaw(tuple(sorted((ord(letter), p) for letter, p in probabilities.items())))


@dataclass(frozen=True, slots=True)
class ReplyLaw:
    """Says the same in the reply to a conversation, then ends; off its script, another law rules.

    `opened` is how many tokens the template writes behind the one that opens the reply.
    """

    output: Tokens
    opened: int = 0
    otherwise: Law = field(default_factory=HashLaw)

    def logits(self, history: Sequence[int]) -> Logits:
        turn = tuple(history)
        reply = turn[turn.index(Special.REPLY) + 1 + self.opened :]
        script = (*self.output, EOS)
        follows = len(reply) < len(script) and script[: len(reply)] == reply
        return ((script[len(reply)], 0.0),) if follows else self.otherwise.logits(history)


@dataclass(frozen=True, slots=True)
class VisibleLaw:
    """Any visible character is as likely as another; a number ends before long."""

    def logits(self, history: Sequence[int]) -> Logits:
        closing = 3.0 if chr(history[-1]).isdigit() else 0.0
        logits = dict.fromkeys(range(ord("!"), ord("~") + 1), 0.0)
        return tuple(sorted({**logits, ord("}"): closing, EOS: closing}.items()))


def distinct(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that need tokens of their own: no byte is one, and each counts once."""
    return tuple(dict.fromkeys(word for word in words if len(word.encode()) > 1))


def word_ids(words: Sequence[str], among: Sequence[str] = ()) -> Tokens:
    """Return the tokens of words, for a model that was given them, or those `among` which they are.

    A word of one byte is that byte's token.
    """
    known = distinct(among or words)
    return tuple(FIRST_WORD + known.index(word) if word in known else ord(word) for word in words)


def tokenizer_with(words: Sequence[str]) -> Tokenizer:
    """Return the byte-level tokenizer, with one more token for each word."""
    document = json.loads(tokenizer_json())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    document["added_tokens"] += [
        {"id": FIRST_WORD + place, "content": word, **flags}
        for place, word in enumerate(distinct(words))
    ]
    return parse_tokenizer(json.dumps(document), "staged")


DRAFTS = ("mostly-right", "right", "wrong", "own-law")


def staged(
    law: Law,
    *,
    words: Sequence[str] = (),
    drafts: Mapping[str, DraftRule] | None = None,
    max_context: int = 1024,
    opening: str = "",
) -> LoadedModel:
    """Return a scripted model; "lookup" is prompt lookup, the other proposers draft by a rule.

    Its chat template ends with `opening`.
    """
    settings = ScriptedSettings(law=law, max_context=max_context)
    limits = replace(settings.limits(), vocabulary_size=VOCABULARY_SIZE + len(distinct(words)))
    rules = drafts or {name: draft_rule(name, law) for name in DRAFTS}
    lookup = LoadedProposer("lookup", SpeculationMode.PROMPT_LOOKUP, PromptLookup(CHEAP_ROWS))
    template = ChatTemplate(CHAT_TEMPLATE + opening, path="staged", bos_token=Special.BOS.text)
    return LoadedModel(
        name="staged",
        target=ScriptedTarget(law, limits, Device(ManualClock(), is_synchronous=True)),
        text=ModelText("staged", tokenizer_with(words), template, eos_token_ids=frozenset({EOS})),
        eos_token_ids=frozenset({EOS}),
        proposers=(
            *(
                LoadedProposer(name, SpeculationMode.DRAFT_MODEL, scripted_proposer(name, rule))
                for name, rule in rules.items()
            ),
            lookup,
        ),
        defaults=GenerationOverrides(do_sample=False),
    )


class Heedless:
    """A draft that says its script whatever ends the output or is forbidden in it."""

    def __init__(self, inner: ScriptedProposer) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> Sequence[DraftBlock | OutriderError | None]:
        return self.inner.draft([*map(_freed, requests)], pass_lanes)


def _freed(request: DraftRequest) -> DraftRequest:
    """Return a request that nothing ends and no grammar binds."""
    sampler = request.sampler
    assert isinstance(sampler, ScriptedSampler)
    free = replace(sampler, request=replace(sampler.request, constraint=None))
    return replace(request, eos_token_ids=frozenset(), sampler=free)


def with_heedless(model: LoadedModel, name: str, script: Tokens) -> LoadedModel:
    """Return a model with one more draft, which says a script and heeds nothing."""
    draft = Heedless(scripted_proposer(name, FollowScript(script)))
    proposer = LoadedProposer(name, SpeculationMode.DRAFT_MODEL, draft)
    return replace(model, proposers=(*model.proposers, proposer))


def tiny(
    *,
    padding: int = 0,
    draft_seed: int = 0,
    max_context: int = 512,
    draft_context: int = 512,
) -> LoadedModel:
    """Return a tiny random model on ONNX Runtime; draft model and prompt lookup draft for it.

    `padding` rows of its embedding are of no token. Of the same seed, 0, the draft is the model
    itself. Costs are made up, so that drafting always pays.
    """
    wanted = ModelSettings(
        engine=EngineKind.ONNX,
        bundles=(str(tiny_bundle(0, padding)),),
        max_slots=SLOTS,
        max_context=max_context,
        threads=1,
    )
    (model,) = load_models(Settings(model=wanted), lambda _: None)
    bundle = load_bundle(tiny_bundle(draft_seed))
    draft = DraftModel(
        Decoder(bundle, max_slots=SLOTS, max_context=draft_context, threads=1),
        LaneInput,
        DraftCosts(CHEAP_ROWS, NO_COST),
        DraftSettings(SLOTS, model.target.limits.vocabulary_size),
    )
    return replace(
        model,
        proposers=(
            LoadedProposer("draft", SpeculationMode.DRAFT_MODEL, draft),
            LoadedProposer("lookup", SpeculationMode.PROMPT_LOOKUP, PromptLookup(CHEAP_ROWS)),
        ),
    )


@cache
def tiny_bundle(seed: int = 0, padding: int = 0) -> Path:
    """Build a bundle in a directory that lasts as long as the run."""
    folder = tempfile.TemporaryDirectory(prefix="outrider-cases-")
    _folders.append(folder)
    path = Path(folder.name) / f"tiny-{seed}-{padding}"
    parts = synthetic_parts(path.name, seed=seed)
    geometry = tiny_geometry(parts.tokenizer.tokenizer.get_vocab_size() + padding)
    padded = replace(
        parts,
        description=llama_description(geometry, tied=True, scaled_rope=False),
        weights=RandomWeights(geometry, seed),
    )
    write_bundle(padded, path, EmitOptions(), SilentProgress())
    return path


_folders: list[tempfile.TemporaryDirectory[str]] = []

"""Models on ONNX Runtime: a tiny random one with drafts of its own, and any other bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engines.build.build import write_bundle
from engines.build.description import Floats, WeightSource
from engines.build.onnx_emitter import EmitOptions
from engines.build.progress import SilentProgress
from engines.build.synthetic import build_tiny_bundle, synthetic_parts
from engines.bundle.bundle import load_bundle
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from engines.proposers.draft_model.proposer import DraftCosts, DraftModel, DraftSettings
from engines.proposers.prompt_lookup.proposer import PromptLookup
from exactness.drafts import Guessing, Knowing, RuledProposer
from exactness.models.free import FREE
from exactness.served import Crowd, Served
from exactness.subject import Subject, generation
from outrider.v1.settings_pb2 import GenerationSettings
from service.__main__ import load_models
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.request import SpeculationMode
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.speculation.contract import Proposer, Tokens

SLOTS = 8
CONTEXT = 512
NEARNESS = 0.2
"""How much of another model's weights the draft that is often right has mixed into its own."""

_FOREIGN = 7
"""A token that no request here allows; drafts that guess propose it all the same."""

_PATTERNS = {
    "knows": (True,),
    "knows nothing": (False,),
    "knows most": (True, True, True, False),
}


@dataclass(frozen=True, slots=True)
class _Mixed:
    """The weights of one model with a little of another's in them."""

    own: WeightSource
    other: WeightSource

    def array(self, name: str) -> Floats:
        mixed: Floats = self.own.array(name) + np.float32(NEARNESS) * self.other.array(name)
        return mixed


def tiny(folder: Path) -> Subject:
    """Build a tiny random model and two drafts with its tokenizer: one near to it, one not."""
    build_tiny_bundle(folder / "tiny")
    build_tiny_bundle(folder / "far", seed=1)
    parts = synthetic_parts("near", seed=0)
    other = synthetic_parts("other", seed=2)
    near = replace(parts, weights=_Mixed(parts.weights, other.weights))
    write_bundle(near, folder / "near", EmitOptions(), SilentProgress())
    model = _loaded(folder / "tiny", threads=1)
    drafts = [_draft_model(name, folder / name, model) for name in ("near", "far")]
    return _subject("onnx, tiny model", model, drafts, _tiny_prompts(), alphabet=(35, 60, 80))


def bundled(path: Path | None) -> Subject:
    """Load a bundle, the default one without a path; its own proposers come first."""
    model = _loaded(path, threads=2)
    prompts = tuple(model.text.encode(text, add_special_tokens=False) for text in _TEXTS)
    likely = _likely(model, prompts[0], count=6)
    return _subject(f"onnx, {model.name}", model, list(model.proposers), prompts, alphabet=likely)


def _subject(
    name: str,
    model: LoadedModel,
    proposers: Sequence[LoadedProposer],
    prompts: Sequence[Tokens],
    *,
    alphabet: Tokens,
) -> Subject:
    """Add prompt lookup, drafts that know the answers and one that guesses."""
    bare = Subject(name, model, tuple(prompts), alphabet)
    answers = _answers(bare)
    added: dict[str, Proposer] = {"prompt lookup": PromptLookup(FREE, "prompt lookup")}
    added |= {
        name: RuledProposer(name, Knowing(answers, pattern)) for name, pattern in _PATTERNS.items()
    }
    added["guesses"] = RuledProposer("guesses", Guessing(tuple(sorted((*alphabet, _FOREIGN)))))
    loaded = [LoadedProposer(name, _mode(name), each) for name, each in added.items()]
    return replace(bare, model=replace(model, proposers=(*proposers, *loaded)))


def _mode(name: str) -> SpeculationMode:
    is_lookup = name == "prompt lookup"
    return SpeculationMode.PROMPT_LOOKUP if is_lookup else SpeculationMode.DRAFT_MODEL


def _answers(subject: Subject) -> dict[Tokens, Tokens]:
    """Return what the target says to each prompt by itself."""
    settings = GenerationSettings(temperature=0.0, max_new_tokens=32)
    asked = [generation(prompt, settings) for prompt in subject.prompts]
    said = Served(subject).answers(asked, Crowd(lanes=1))
    return {prompt: answer.tokens for prompt, answer in zip(subject.prompts, said, strict=True)}


def _loaded(path: Path | None, threads: int) -> LoadedModel:
    wanted = ModelSettings(
        engine=EngineKind.ONNX,
        bundles=() if path is None else (str(path),),
        max_slots=SLOTS,
        max_context=CONTEXT,
        threads=threads,
    )
    (model,) = load_models(Settings(model=wanted), lambda _: None)
    return model


def _draft_model(name: str, path: Path, model: LoadedModel) -> LoadedProposer:
    decoder = Decoder(load_bundle(path), max_slots=SLOTS, max_context=CONTEXT, threads=1)
    settings = DraftSettings(SLOTS, model.vocabulary_size, name)
    proposer = DraftModel(decoder, LaneInput, DraftCosts(FREE, FREE), settings)
    return LoadedProposer(name, SpeculationMode.DRAFT_MODEL, proposer)


def _likely(model: LoadedModel, prompt: Tokens, count: int) -> Tokens:
    """Return the likeliest tokens after a prompt."""
    settings = GenerationSettings(temperature=0.0, max_new_tokens=1, logprobs=count)
    bare = Subject(model.name, model, (prompt,), ())
    (answer,) = Served(bare).answers([generation(prompt, settings)])
    return tuple(sorted(token for token, _ in answer.logprobs[0].alternatives))


def _tiny_prompts() -> tuple[Tokens, ...]:
    """Return eight prompts of one to forty-five tokens; half of them repeat themselves."""
    periods = (1, 2, 97, 3, 97, 5, 97, 97)
    return tuple(
        tuple(3 + (place % period * 37 + index * 11) % 262 for place in range(3 + index * 6))
        for index, period in enumerate(periods)
    )


_TEXTS = (
    "The capital of France is",
    "one two three one two three one two",
    "def add(a, b):\n    return",
    "Once upon a time, in a village by the sea, there lived",
    "Q: What is the tallest mountain on Earth?\nA:",
    "name,age\nAda,36\nAlan,41\nGrace,",
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "Dear Sir or Madam, I am writing to",
)

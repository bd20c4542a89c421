"""The models a server holds, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.errors import InvalidSettings, UnknownModel
from service.generation.config import GenerationOverrides
from service.runtime.request import SpeculationMode
from service.runtime.text import ModelText
from service.speculation.capability import SpeculativeCapability, Unavailable
from service.speculation.contract import Proposer, Target
from service.speculation.observer import LifecycleObserver, ignore_lifecycle
from service.speculation.options import SchedulerOptions


@dataclass(frozen=True, slots=True)
class LoadedProposer:
    """A proposer that is ready, under the name that requests use, and its mode."""

    name: str
    mode: SpeculationMode
    proposer: Proposer


@dataclass(frozen=True, slots=True)
class ModelInformation:
    """What people want to know of a model; nothing here decides anything.

    `tokenizer_fingerprint` is 32 bytes; `cache_bytes` is the KV cache's size
    when every slot is full, None where the engine does not say.
    """

    architecture: str = ""
    engine: str = ""
    weights: str = ""
    tokenizer_fingerprint: bytes = b""
    bit_exact: bool = False
    cache_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A target with its text side, its proposers (the preferred one first) and its defaults.

    `defaults` are the checkpoint's generation settings, None where it has none.
    """

    name: str
    target: Target
    text: ModelText
    eos_token_ids: frozenset[int]
    proposers: tuple[LoadedProposer, ...] = ()
    defaults: GenerationOverrides | None = None
    capability: SpeculativeCapability = field(default_factory=Unavailable)
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    information: ModelInformation = field(default_factory=ModelInformation)
    aliases: tuple[str, ...] = ()
    observer: LifecycleObserver = ignore_lifecycle

    @property
    def vocabulary_size(self) -> int:
        """Return how many token ids mean something; the target's rows may be padded."""
        return min(self.text.vocabulary_size, self.target.limits.vocabulary_size)

    @property
    def max_characters(self) -> int:
        """Return the length of text that is worked on: no window holds the tokens of more."""
        return self.target.limits.max_context * self.text.tokenizer.longest_token


class ModelRegistry:
    """Finds models by name or alias; the first one is the default.

    Raises:
        InvalidSettings: there is none, or two have one name.
    """

    def __init__(self, models: Sequence[LoadedModel]) -> None:
        if not models:
            raise InvalidSettings("model.bundles", "names no model")
        self._models = tuple(models)
        self._by_name: dict[str, LoadedModel] = {}
        for model in models:
            for name in (model.name, *model.aliases):
                if name in self._by_name:
                    raise InvalidSettings("model.bundles", f"two models are named {name!r}")
                self._by_name[name] = model

    def all(self) -> tuple[LoadedModel, ...]:
        """Return the models, the default one first."""
        return self._models

    def find(self, name: str) -> LoadedModel:
        """Return the model of a name or alias; the default one where the name is empty.

        Raises:
            UnknownModel: no model has this name.
        """
        if not name:
            return self._models[0]
        if name not in self._by_name:
            raise UnknownModel(name, tuple(model.name for model in self._models))
        return self._by_name[name]

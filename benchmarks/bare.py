"""The engine without anything around it: one lane, one token a pass, the highest logit."""

from __future__ import annotations

from dataclasses import dataclass

from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from engines.onnx.target import OnnxTarget
from service.__main__ import load_models
from service.runtime.models import LoadedModel
from service.runtime.request import ChatPrompt
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.speculation.contract import Tokens
from service.text.conversation import ChatMessage


def default_model(max_slots: int) -> LoadedModel:
    """Load the default model into this process, as the server does."""
    wanted = Settings(model=ModelSettings(engine=EngineKind.ONNX, max_slots=max_slots))
    (model,) = load_models(wanted, lambda _: None)
    return model


def decoder_of(model: LoadedModel) -> Decoder:
    """Return the decoder behind a model of ONNX Runtime."""
    if not isinstance(model.target, OnnxTarget):
        raise TypeError(f"{model.name} runs on another engine")
    return model.target.decoder


def chat(model: LoadedModel, text: str) -> Tokens:
    """Return the tokens of a conversation of one user turn."""
    rendered = model.text.render(
        ChatPrompt((ChatMessage("user", text),)), max_characters=model.max_characters
    )
    return model.text.encode_rendered(rendered)


@dataclass(frozen=True, slots=True)
class BareLoop:
    """Decodes greedily, lane by lane, on a decoder that nothing else uses meanwhile."""

    decoder: Decoder
    ends: frozenset[int] = frozenset()

    def say(self, prompt: Tokens, max_tokens: int) -> Tokens:
        """Return the tokens after a prompt, up to `max_tokens` or the first that ends."""
        slot, chunk = self.decoder.open(), self.decoder.max_rows
        *earlier, last = (prompt[at : at + chunk] for at in range(0, len(prompt), chunk))
        for tokens in earlier:
            self._follow(slot, tokens)
        said = [self._follow(slot, last)]
        while len(said) < max_tokens and said[-1] not in self.ends:
            said.append(self._follow(slot, (said[-1],)))
        self.decoder.close(slot)
        return tuple(said)

    def _follow(self, slot: int, tokens: Tokens) -> int:
        """Append tokens to a lane and return the likeliest one after them."""
        lane = LaneInput(slot, self.decoder.length(slot), tokens, 1)
        return int(self.decoder.forward([lane])[0][0].argmax())

"""The default model without a service around it: decoder, tokenizer and chat template."""

from __future__ import annotations

from dataclasses import dataclass

from engines.build.default_model import default_bundle_path
from engines.bundle.bundle import Bundle, load_bundle
from engines.onnx.decoder import Decoder
from engines.onnx.threads import configure_threads
from service.runtime.request import ChatMessage
from service.speculation.contract import Tokens
from service.text.chat import ChatTemplate
from service.text.tokenizer import Tokenizer, load_tokenizer

THREADS = 2


@dataclass(frozen=True, slots=True)
class LoadedDefault:
    """The default model's parts."""

    bundle: Bundle
    decoder: Decoder
    tokenizer: Tokenizer
    template: ChatTemplate

    @property
    def ends(self) -> frozenset[int]:
        """Return the tokens that end an output."""
        return frozenset(self.bundle.manifest.tokens.eos)

    def chat(self, text: str) -> Tokens:
        """Return the tokens of a conversation of one user turn."""
        return self.tokenizer.encode_markup(self.template.render([ChatMessage("user", text)]))


def load_default(*, max_slots: int, max_context: int) -> LoadedDefault:
    """Load the built bundle of the default model."""
    bundle = load_bundle(default_bundle_path())
    source = bundle.chat_template()
    assert source is not None
    configure_threads(THREADS)
    return LoadedDefault(
        bundle=bundle,
        decoder=Decoder(bundle, max_slots=max_slots, max_context=max_context),
        tokenizer=load_tokenizer(bundle.tokenizer_path),
        template=ChatTemplate(source, path="chat_template.jinja"),
    )

"""A model's text side in one place: its tokenizer, its chat template and its text states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.errors import NoChatTemplate
from service.runtime.request import ChatMessage, Stop
from service.speculation.contract import Tokens
from service.speculation.publication import TextState
from service.text.chat import ChatLimits, ChatTemplate
from service.text.state import GeneratedText, TextRules
from service.text.stops import compile_stops
from service.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ModelText:
    """Encodes, renders and decodes for one model; safe to call from any thread."""

    model: str
    tokenizer: Tokenizer
    template: ChatTemplate | None = None

    @property
    def vocabulary_size(self) -> int:
        """Return the number of token ids."""
        return self.tokenizer.vocabulary.size

    @property
    def has_chat_template(self) -> bool:
        """Whether conversations can be rendered."""
        return self.template is not None

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Tokens:
        """Return the tokens of plain text, which never spells a special token."""
        return self.tokenizer.encode_text(text, add_special=add_special_tokens)

    def lost_characters(self, text: str) -> str:
        """Return the distinct characters of a text that its tokens do not spell."""
        return self.tokenizer.lost_characters(text)

    def decode(self, tokens: Tokens, *, skip_special_tokens: bool = True) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become U+FFFD.

        Raises:
            InvalidRequest: some ids are no tokens.
        """
        return self.tokenizer.decode(tokens, skip_special=skip_special_tokens)

    def render(self, messages: Sequence[ChatMessage], *, max_characters: int) -> str:
        """Return the prompt of a conversation.

        Raises:
            NoChatTemplate: the model has none.
            InvalidRequest: the template refuses the conversation, or it or its prompt is longer.
        """
        if self.template is None:
            raise NoChatTemplate(self.model)
        return self.template.render(messages, limits=ChatLimits(max_characters=max_characters))

    def encode_rendered(self, text: str) -> Tokens:
        """Return the tokens of a rendered conversation, special tokens parsed."""
        return self.tokenizer.encode_markup(text)

    def new_state(
        self, stops: Sequence[Stop], *, include_stop: bool, silent: frozenset[int]
    ) -> TextState:
        """Return the text state of a new output; `silent` tokens add no text.

        Raises:
            InvalidRequest: a stop is refused.
        """
        vocabulary = self.tokenizer.vocabulary
        compiled = compile_stops(stops, vocabulary, "settings.stops")
        return GeneratedText(TextRules(vocabulary, compiled, include_stop, silent))

"""What the runtime asks of a model's text side; `service.text` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from service.runtime.request import ChatMessage, Stop
from service.speculation.contract import Tokens
from service.speculation.publication import TextState


class ModelText(Protocol):
    """A model's tokenizer, chat template and decoder; safe to call from any thread."""

    @property
    def has_chat_template(self) -> bool:
        """Whether conversations can be rendered."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Tokens:
        """Return the tokens of plain text, which never spells a special token."""

    def decode(self, tokens: Tokens, *, skip_special_tokens: bool = True) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become U+FFFD."""

    def render(self, messages: Sequence[ChatMessage]) -> str:
        """Return the prompt of a conversation.

        Raises:
            InvalidRequest: the template refuses the conversation.
        """

    def encode_rendered(self, text: str) -> Tokens:
        """Return the tokens of a rendered conversation, special tokens parsed."""

    def new_state(self, stops: Sequence[Stop], *, include_stop: bool) -> TextState:
        """Return the text state of a new output."""

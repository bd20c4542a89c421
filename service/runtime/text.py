"""A model's text side in one place: its tokenizer, its chat template and its constraints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.errors import NoChatTemplate
from service.runtime.request import ChatPrompt, Stop
from service.speculation.contract import Constraint, Tokens
from service.text.chat import ChatTemplate
from service.text.constraints.compiler import GrammarCompiler
from service.text.conversation_rules import ChatLimits
from service.text.dialect import PLAIN_DIALECT, Dialect, Reading, Turn, reading
from service.text.dialects.registry import dialect_named
from service.text.language import Language
from service.text.stops import StopSet, compile_stops
from service.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ModelText:
    """Encodes, renders, decodes and constrains for one model; safe to call from any thread.

    `eos_token_ids` are the model's own ends, which no constraint may name.
    """

    model: str
    tokenizer: Tokenizer
    template: ChatTemplate | None = None
    dialect: Dialect = PLAIN_DIALECT
    eos_token_ids: frozenset[int] = frozenset()
    _compiler: GrammarCompiler = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile constraints for this tokenizer; nothing is done before the first one."""
        compiler = GrammarCompiler(self.tokenizer, self.eos_token_ids)
        object.__setattr__(self, "_compiler", compiler)

    @property
    def vocabulary_size(self) -> int:
        """Return the number of token ids."""
        return self.tokenizer.vocabulary.size

    @property
    def shows_tools(self) -> bool:
        """Whether the chat template does anything with tools."""
        return self.template is not None and self.template.reads_tools

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

    def render(self, chat: ChatPrompt, *, max_characters: int) -> str:
        """Return the prompt of a conversation.

        Raises:
            NoChatTemplate: the model has none.
            InvalidRequest: the template refuses the conversation, or it or its prompt is longer.
        """
        if self.template is None:
            raise NoChatTemplate(self.model)
        return self.template.render(chat, limits=ChatLimits(max_characters=max_characters))

    def encode_rendered(self, text: str) -> Tokens:
        """Return the tokens of a rendered conversation, special tokens parsed."""
        return self.tokenizer.encode_markup(text)

    def find_dialect(self, name: str) -> Dialect:
        """Return the dialect of a name; the one recognised from the template where it is empty.

        Raises:
            InvalidRequest: there is none of the name.
        """
        return dialect_named(name, "chat.dialect") if name else self.dialect

    def read(self, dialect: Dialect, turn: Turn, answer: Language | None) -> Reading:
        """Return how a coming turn is read, and what it must match."""
        return reading(dialect, turn, answer, self.tokenizer.vocabulary)

    def constraint(self, language: Language, ends: frozenset[int], field: str) -> Constraint:
        """Compile what an output must match; any of `ends` may end it where it does.

        Raises:
            InvalidRequest: it is malformed, or beyond the limits; it is named inside `field`.
            GrammarsBusy: too many others are being compiled.
        """
        return self._compiler.compile(language, ends, field)

    def prepare_constraints(self) -> None:
        """Read the vocabulary for constraints now; no other thread runs meanwhile."""
        self._compiler.prepare()

    def compile_stops(self, stops: Sequence[Stop]) -> StopSet:
        """Prepare the stops of a request.

        Raises:
            InvalidRequest: some are refused.
        """
        return compile_stops(stops, self.tokenizer.vocabulary, "settings.stops")

    def run_breakers(self, texts: Sequence[str]) -> frozenset[int]:
        """Return the tokens that contain one of the texts."""
        if not texts:
            return frozenset()
        # Many texts are sought at once: one after the other takes the interpreter up to a second.
        contains = re.compile(b"|".join(re.escape(text.encode()) for text in texts)).search
        tokens = self.tokenizer.vocabulary.tokens
        return frozenset(token for token, spelled in enumerate(tokens) if contains(spelled))

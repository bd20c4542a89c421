"""A scripted model whose template shows every field of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engines.scripted.law import Law, Logits
from engines.scripted.vocabulary import CHAT_TEMPLATE, Special, encode, tokenizer_json
from exactness.models.scripted import SMALL_LAW, scripted_small
from exactness.subject import Subject
from service.runtime.text import ModelText
from service.text.chat import ChatTemplate
from service.text.dialects.registry import DIALECTS
from service.text.tokenizer import parse_tokenizer

_CALL = """{"name": "{{ call['function']['name'] }}\""""
_ANSWER = "<tool_response>{{ '\\n' +"


CUE = "Call!"
"""What a user says to have the model call tools; it rambles otherwise."""

_ONE_CALL = '<tool_call>\n{"name": "ab", "arguments": {}}\n</tool_call>'
_PREFERENCE = 9.0


@dataclass(frozen=True, slots=True)
class CallingLaw:
    """Two calls of a tool after the cue, as likely as logits make them; else another law."""

    other: Law
    cue: tuple[int, ...] = encode(CUE)
    calls: tuple[int, ...] = encode(f"{_ONE_CALL}\n{_ONE_CALL}")

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the other law's candidates, and the next token of the calls above them."""
        rivals, tokens = self.other.logits(history), tuple(history)
        if Special.REPLY not in tokens:
            return rivals
        reply = len(tokens) - tokens[::-1].index(Special.REPLY)
        place = len(tokens) - reply
        if place >= len(self.calls) or tokens[reply - 1 - len(self.cue) : reply - 1] != self.cue:
            return rivals
        return tuple(sorted({**dict(rivals), self.calls[place]: _PREFERENCE}.items()))


def staged() -> Subject:
    """Make a model of three letters that calls tools, and is shown the ids of calls, too."""
    subject = scripted_small(takes_time=True, law=CallingLaw(SMALL_LAW))
    shown = CHAT_TEMPLATE.replace(_CALL, "{{ call['id'] }}" + _CALL)
    shown = shown.replace(_ANSWER, "<tool_response>{{ message['tool_call_id'] + '\\n' +")
    template = ChatTemplate(
        shown, path="staged", bos_token=Special.BOS.text, eos_token=Special.EOS.text
    )
    tokenizer = parse_tokenizer(tokenizer_json(), "staged")
    text = ModelText("staged", tokenizer, template, DIALECTS["hermes"], subject.model.eos_token_ids)
    return replace(subject, name="scripted, three letters", model=replace(subject.model, text=text))

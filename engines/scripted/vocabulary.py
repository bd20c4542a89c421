"""A byte-level vocabulary: token i is byte i, and five special tokens follow the bytes."""

from __future__ import annotations

import json
from enum import IntEnum

from service.speculation.contract import Tokens

BYTES = 256


class Special(IntEnum):
    """Tokens that stand for no text; user and reply tokens open the turns of a chat."""

    BOS = BYTES
    EOS = BYTES + 1
    PAD = BYTES + 2
    USER = BYTES + 3
    REPLY = BYTES + 4

    @property
    def text(self) -> str:
        """Return the token as it is written in templates."""
        return f"<|{self.name.lower()}|>"


VOCABULARY_SIZE = BYTES + len(Special)

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% if date_string %}Today is {{ date_string + '.\\n' }}{% endif %}"
    "{% if tools %}"
    "Call a tool like <tool_call>{{ '\\n' }}"
    """{"name": "the name", "arguments": {"the": "arguments"}}{{ '\\n' }}"""
    "</tool_call>, one of <tools>"
    "{% for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}"
    "{{ '\\n' }}</tools>"
    "{% endif %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "<|reply|>"
    "{% if message['reasoning_content'] %}"
    "<think>{{ '\\n' + message['reasoning_content'] + '\\n' }}</think>{{ '\\n\\n' }}"
    "{% endif %}"
    "{{ message['content'] }}"
    "{% for call in message['tool_calls'] %}"
    "{% if message['content'] or not loop.first %}{{ '\\n' }}{% endif %}"
    "<tool_call>{{ '\\n' }}"
    """{"name": "{{ call['function']['name'] }}", "arguments": """
    "{{ call['function']['arguments'] | tojson }}}{{ '\\n' }}"
    "</tool_call>"
    "{% endfor %}"
    "{{ eos_token }}"
    "{% elif message['role'] == 'tool' %}"
    "<|user|><tool_response>{{ '\\n' + message['content'] + '\\n' }}</tool_response>"
    "{% else %}"
    "<|user|>{{ message['content'] }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|reply|>{% endif %}"
)
"""Tools and reasoning are written as Hermes and Qwen write them; `date_string` may be given."""


def encode(text: str) -> Tokens:
    """Return the bytes of a text as tokens; special tokens are not parsed."""
    return tuple(text.encode())


def decode(tokens: Tokens) -> str:
    """Return the text of tokens: specials are silent, broken characters become U+FFFD."""
    return bytes(token for token in tokens if token < BYTES).decode(errors="replace")


def _byte_symbols() -> tuple[str, ...]:
    """Return the visible character that byte-level tokenizers write for each byte.

    A visible Latin-1 character stands for itself; the others, in order, for
    the characters from U+0100 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(BYTES) if byte not in visible]
    shifted = {byte: BYTES + place for place, byte in enumerate(hidden)}
    return tuple(chr(shifted.get(byte, byte)) for byte in range(BYTES))


def _added_token(special: Special) -> dict[str, object]:
    return {
        "id": int(special),
        "content": special.text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def tokenizer_json() -> str:
    """Return the content of the `tokenizer.json` that describes this vocabulary."""
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    symbols = {symbol: byte for byte, symbol in enumerate(_byte_symbols())}
    specials = {special.text: int(special) for special in Special}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [_added_token(special) for special in Special],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": symbols | specials,
                "merges": [],
            },
        }
    )

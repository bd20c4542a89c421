"""Templates in the manner of each family, and byte-level tokenizers that know some markers."""

import json
from dataclasses import dataclass

from service.text.tokenizer import Tokenizer, parse_tokenizer

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
SYMBOLS = [
    chr(byte) if byte in PRINTABLE else chr(0x100 + byte - sum(p < byte for p in PRINTABLE))
    for byte in range(0x100)
]


def byte_tokenizer(*special: str) -> Tokenizer:
    """Return a tokenizer of bytes, behind which the special tokens follow."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": 0x100 + place, "content": content, "special": True, **flags}
            for place, content in enumerate(special)
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": False},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {symbol: byte for byte, symbol in enumerate(SYMBOLS)},
            "merges": [],
        },
    }
    return parse_tokenizer(json.dumps(document), "tokenizer.json")


@dataclass(frozen=True)
class Family:
    """How a family of models has its conversations written; `end` closes an assistant's turn."""

    template: str
    end: str
    special: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    def tokenizer(self, *markers: str) -> Tokenizer:
        """Return a tokenizer that has the family's special tokens, and these."""
        return byte_tokenizer(*dict.fromkeys((self.end, *self.special, *markers)))


def _chatml(tools: str, assistant: str, prompt: str = "") -> str:
    return (
        f"{tools}{{% for m in messages %}}"
        "{% if m.role == 'assistant' %}<|im_start|>assistant\n"
        f"{assistant}<|im_end|>\n"
        "{% elif m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n"
        "</tool_response><|im_end|>\n"
        "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
        f"{prompt}{{% endif %}}"
    )


_TOOLS_IN_XML = (
    "{% if tools %}<|im_start|>system\nCall by <tool_call>\n"
    '{"name": <name>, "arguments": <object>}\n</tool_call>\n<tools>'
    "{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools><|im_end|>\n{% endif %}"
)
_CALLS_IN_XML = (
    "{{ m.content }}{% for call in m.tool_calls or [] %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}"
)
_THOUGHT = "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"

_LLAMA3 = (
    "{% if tools %}<|start_header_id|>system<|end_header_id|>\n\n{{ tools | tojson }}<|eot_id|>"
    "{% endif %}{% for m in messages %}"
    "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{% if m.tool_calls %}CALL{% else %}{{ m.content | trim }}{% endif %}<|eot_id|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_LLAMA3_CALL = (
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}"
    "{% set call = m.tool_calls[0].function %}"
    '{"name": "{{ call.name }}", "parameters": {{ call.arguments | tojson }}}'
)

_MISTRAL = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'user' %}"
    "{% if tools and loop.last %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "[INST]{{ m.content }}[/INST]"
    "{% elif m.tool_calls is defined %}CALLS</s>"
    "{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]"
    "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)
_MISTRAL_LIST = (
    "[TOOL_CALLS] [{% for call in m.tool_calls %}"
    "{% if call.id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif %}"
    '{{ (call.function | tojson)[:-1] }}, "id": "{{ call.id }}"}'
    "{% if not loop.last %}, {% endif %}{% endfor %}]"
)
_MISTRAL_ARGS = (
    "{% for call in m.tool_calls %}[TOOL_CALLS]{{ call.function.name }}[ARGS]"
    "{{ call.function.arguments | tojson }}{% endfor %}"
)

_BAR = "\uff5c"
_DEEPSEEK = (
    "{{ bos_token }}{{ tools | tojson }}{% for m in messages %}"
    "{% if m.role == 'user' %}<|User|>{{ m.content }}"
    "{% elif m.tool_calls and m.content is none %}<|Assistant|>CLOSED"
    "<|tool▁calls▁begin|>{% for call in m.tool_calls %}<|tool▁call▁begin|>CALL"
    "<|tool▁call▁end|>{% endfor %}ENDED"
    "{% elif m.role == 'assistant' %}<|Assistant|>CLOSED{{ m.content.split('</think>')[-1] }}"
    "<|end▁of▁sentence|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|Assistant|>OPENED{% endif %}"
)
_DEEPSEEK_END = "<|tool▁calls▁end|><|end▁of▁sentence|>"
_DEEPSEEK_V3_CALL = (
    "function<|tool▁sep|>{{ call.function.name }}\n```json\n"
    "{{ '' + call.function.arguments + '' }}\n```"
)
_DEEPSEEK_V31_CALL = "{{ call.function.name + '<|tool▁sep|>' + call.function.arguments }}"


def _deepseek(call: str, *, opened: str = "", closed: str = "", ended: str = "ENDED") -> Family:
    template = _DEEPSEEK.replace("CALL", call)
    template = template.replace("ENDED", ended).replace("ENDED", _DEEPSEEK_END)
    template = template.replace("OPENED", opened).replace("CLOSED", closed)
    template = template.replace("<|", f"<{_BAR}").replace("|>", f"{_BAR}>")
    names = ("User", "Assistant")
    return Family(
        template,
        end=f"<{_BAR}end▁of▁sentence{_BAR}>",
        special=tuple(f"<{_BAR}{name}{_BAR}>" for name in names),
    )


_HARMONY = (
    "<|start|>system<|message|>Today is {{ strftime_now('%Y') }}.<|end|>"
    "{% if tools %}<|start|>developer<|message|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}"
    "{% if m.tool_calls %}"
    "{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
    "{% endif %}{% set call = m.tool_calls[0].function %}"
    "<|start|>assistant to=functions.{{ call.name }}<|channel|>commentary json<|message|>"
    "{{ call.arguments | tojson }}<|call|>"
    "{% elif m.role == 'assistant' %}"
    "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|return|>"
    "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)

CHATML_SPECIAL = ("<|im_start|>",)
LLAMA3_SPECIAL = ("<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>")
MISTRAL_SPECIAL = ("<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]")
HARMONY_SPECIAL = (
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|channel|>",
    "<|constrain|>",
    "<|call|>",
)

FAMILIES = {
    "hermes": Family(_chatml(_TOOLS_IN_XML, _CALLS_IN_XML), "<|im_end|>", CHATML_SPECIAL),
    "hermes, reasoning": Family(
        _chatml(_TOOLS_IN_XML, _THOUGHT + _CALLS_IN_XML), "<|im_end|>", CHATML_SPECIAL
    ),
    "hermes, always reasoning": Family(
        _chatml(_TOOLS_IN_XML, "<think>\n{{ m.reasoning_content }}\n</think>\n\n" + _CALLS_IN_XML),
        "<|im_end|>",
        CHATML_SPECIAL,
    ),
    "hermes, reasoning opened": Family(
        _chatml(_TOOLS_IN_XML, _CALLS_IN_XML, "<think>\n"), "<|im_end|>", CHATML_SPECIAL
    ),
    "llama3_json": Family(_LLAMA3.replace("CALL", _LLAMA3_CALL), "<|eot_id|>", LLAMA3_SPECIAL),
    "llama3_python": Family(
        _LLAMA3.replace("CALL", "<|python_tag|>" + _LLAMA3_CALL), "<|eot_id|>", LLAMA3_SPECIAL
    ),
    "mistral": Family(_MISTRAL.replace("CALLS", _MISTRAL_LIST), "</s>", MISTRAL_SPECIAL),
    "mistral_args": Family(_MISTRAL.replace("CALLS", _MISTRAL_ARGS), "</s>", MISTRAL_SPECIAL),
    "deepseek_v3": _deepseek(_DEEPSEEK_V3_CALL),
    "deepseek_v3, reasoning opened": _deepseek(_DEEPSEEK_V3_CALL, opened="<think>\n"),
    "deepseek_v3, closed behind a second call": _deepseek(
        _DEEPSEEK_V3_CALL.replace("function", "{{ call['type'] + '' }}", 1),
        ended="{% if m.tool_calls | length > 1 %}ENDED{% endif %}",
    ),
    "deepseek_v31": _deepseek(_DEEPSEEK_V31_CALL, opened="</think>", closed="</think>"),
    "harmony": Family(_HARMONY, "<|return|>", HARMONY_SPECIAL, ends=("<|call|>",)),
    "think, opened": Family(
        _chatml("", "{{ m.content }}", "<think>\n"), "<|im_end|>", CHATML_SPECIAL
    ),
    "think, shown": Family(_chatml("", _THOUGHT + "{{ m.content }}"), "<|im_end|>", CHATML_SPECIAL),
    "think, taken out": Family(
        _chatml("", "{{ m.content.split('</think>')[-1] | trim }}"), "<|im_end|>", CHATML_SPECIAL
    ),
    "plain": Family(_chatml("", "{{ m.content }}"), "<|im_end|>", CHATML_SPECIAL),
    "plain, tools in words": Family(
        _chatml("{{ tools | tojson }}", "{{ m.content }}"), "<|im_end|>", CHATML_SPECIAL
    ),
    "plain, calls in another syntax": Family(
        _chatml(
            "{{ tools | tojson }}",
            "{% for c in m.tool_calls or [] %}{{ c.function.name }}(**{{ c.function.arguments }})"
            "{% endfor %}{{ m.content or '' }}",
        ),
        "<|im_end|>",
        CHATML_SPECIAL,
    ),
    "plain, refuses all": Family("{{ raise_exception('no') }}", "</s>"),
    "plain, fails": Family("{{ messages[0].content / 2 }}", "</s>"),
    "plain, empty": Family("", "</s>"),
}
"""Each family by its dialect and what is particular about it."""

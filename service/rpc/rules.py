"""What each field of a request must satisfy, keyed by the proto's own names.

Every field of every message listed here is classified: a check means that the
server serves it, `UNSERVED` that it exists in the contract and is refused by
name. A test holds the table to the descriptors, so that no new field can be
dropped silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from outrider.v1 import settings_pb2
from service.rpc.checks import (
    Check,
    anything,
    at_least,
    at_most_bytes,
    at_most_items,
    finite,
    finite_above,
    finite_at_least,
    fraction,
    known,
    lasting,
    lasting_at_least,
    nonempty,
    nonempty_at_most_bytes,
)
from service.rpc.enums import SPECULATION_MODES
from service.text.stops import MAX_STOPS

MAX_REQUEST_ID_BYTES = 128
MAX_NAME_BYTES = 256
MAX_STOP_BYTES = 1024
MAX_CHAT_MESSAGES = 4096
MIN_WATCH_SECONDS = 0.1


class Unserved(Enum):
    """The one value that marks a field which is refused by name."""

    UNSERVED = "unserved"


UNSERVED = Unserved.UNSERVED
Rule = Check | Unserved

_name = at_most_bytes(MAX_NAME_BYTES)
_mode = known(frozenset({settings_pb2.SPECULATION_MODE_UNSPECIFIED, *SPECULATION_MODES.values()}))
_request_id = at_most_bytes(MAX_REQUEST_ID_BYTES)

RULES: Mapping[str, Mapping[str, Rule]] = {
    "outrider.v1.GenerateRequest": {
        "request_id": _request_id,
        "start": anything,
        "cancel": anything,
    },
    "outrider.v1.GenerateRequest.Cancel": {},
    "outrider.v1.StreamGenerateRequest": {"request_id": _request_id, "generation": anything},
    "outrider.v1.CompleteRequest": {"request_id": _request_id, "generation": anything},
    "outrider.v1.Generation": {
        "model": _name,
        "text": nonempty,
        "token_ids": anything,
        "chat": anything,
        "settings": anything,
        "speculation": anything,
        "timeout": lasting,
        "priority": UNSERVED,
        "component_timings": anything,
    },
    "outrider.v1.TokenIds": {"ids": anything},
    "outrider.v1.Chat": {
        "messages": at_most_items(MAX_CHAT_MESSAGES),
        "tools": UNSERVED,
        "tool_choice": UNSERVED,
        "parallel_tool_calls": UNSERVED,
        "template_arguments": UNSERVED,
        "dialect": UNSERVED,
    },
    "outrider.v1.ChatMessage": {
        "role": _name,
        "content": anything,
        "reasoning": UNSERVED,
        "tool_calls": UNSERVED,
        "tool_call_id": UNSERVED,
    },
    "outrider.v1.GenerationSettings": {
        "do_sample": anything,
        "temperature": finite_at_least(0),
        "top_k": at_least(0),
        "top_p": fraction,
        "min_p": fraction,
        "top_a": UNSERVED,
        "typical_p": UNSERVED,
        "repetition_penalty": finite_above(0),
        "repeat_last_n": anything,
        "frequency_penalty": finite,
        "presence_penalty": finite,
        "dry": UNSERVED,
        "xtc": UNSERVED,
        "mirostat": UNSERVED,
        "sampler_order": UNSERVED,
        "logit_bias": UNSERVED,
        "seed": anything,
        "max_new_tokens": at_least(1),
        "min_new_tokens": UNSERVED,
        "max_context": at_least(1),
        "stops": at_most_items(MAX_STOPS),
        "include_stop": anything,
        "stop_on_eos": anything,
        "eos_token_id": anything,
        "allowed_token_ids": UNSERVED,
        "banned_token_ids": UNSERVED,
        "logprobs": UNSERVED,
        "prompt_logprobs": UNSERVED,
        "constraint": UNSERVED,
    },
    "outrider.v1.Stop": {
        "text": nonempty_at_most_bytes(MAX_STOP_BYTES),
        "token_id": anything,
    },
    "outrider.v1.SpeculationSettings": {
        "mode": _mode,
        "proposer": nonempty_at_most_bytes(MAX_NAME_BYTES),
        "num_speculative_tokens": at_least(1),
        "lookahead": anything,
    },
    "outrider.v1.ListModelsRequest": {},
    "outrider.v1.GetModelRequest": {"model": _name},
    "outrider.v1.TokenizeRequest": {
        "model": _name,
        "text": anything,
        "add_special_tokens": anything,
    },
    "outrider.v1.DetokenizeRequest": {
        "model": _name,
        "token_ids": anything,
        "skip_special_tokens": anything,
    },
    "outrider.v1.RenderChatRequest": {"model": _name, "chat": anything},
    "outrider.v1.GetStatisticsRequest": {"model": _name},
    "outrider.v1.WatchStatisticsRequest": {
        "model": _name,
        "interval": lasting_at_least(MIN_WATCH_SECONDS),
    },
    "outrider.v1.GetLoadRequest": {"model": _name},
}

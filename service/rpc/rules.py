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
from service.generation.setting_rules import MAX_LOGPROBS
from service.rpc.chats import CHOICE_MODES
from service.rpc.checks import (
    Check,
    Each,
    anything,
    at_least,
    at_most_bytes,
    at_most_items,
    between,
    finite,
    finite_above,
    finite_at_least,
    fraction,
    json_values_of_at_most,
    known,
    lasting,
    lasting_at_least,
    nonempty,
    nonempty_at_most_bytes,
    positive_fraction,
    tool_name,
    turns_of_at_most,
)
from service.rpc.enums import SAMPLER_ORDERS, SPECULATION_MODES
from service.text.stops import MAX_STOPS

MAX_REQUEST_ID_BYTES = 128
MAX_NAME_BYTES = 256
MAX_STOP_BYTES = 1024
MAX_PROMPT_IDS = 2**20
"""Above any window; to look at each of them before the window is known takes the event loop."""
MAX_CHAT_MESSAGES = 4096
MAX_CHAT_CALLS = 4096
"""In all turns together: a message of 4 MB could hold half a million, checked one by one."""
MAX_BREAKERS = 64
MAX_BREAKER_BYTES = 256
MAX_BIASES = 1024
MAX_LISTED_IDS = 65_536
"""Of tokens allowed or banned: of any vocabulary up to twice this, one list or the other fits."""
MAX_SOURCE_BYTES = 128 * 1024
MAX_CHOICES = 10_000
MAX_TOOLS = 128
MAX_TEMPLATE_ARGUMENT_BYTES = 64 * 1024
MIN_WATCH_SECONDS = 0.1


class Unserved(Enum):
    """The one value that marks a field which is refused by name."""

    UNSERVED = "unserved"


UNSERVED = Unserved.UNSERVED
Rule = Check | Each | Unserved

_name = at_most_bytes(MAX_NAME_BYTES)
_mode = known(frozenset({settings_pb2.SPECULATION_MODE_UNSPECIFIED, *SPECULATION_MODES.values()}))
_order = known(frozenset({settings_pb2.SAMPLER_ORDER_UNSPECIFIED, *SAMPLER_ORDERS.values()}))
_source = nonempty_at_most_bytes(MAX_SOURCE_BYTES)
_count = between(0, MAX_LOGPROBS)
_ids = at_most_items(MAX_LISTED_IDS)
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
    "outrider.v1.TokenIds": {"ids": at_most_items(MAX_PROMPT_IDS)},
    "outrider.v1.Chat": {
        "messages": turns_of_at_most(MAX_CHAT_MESSAGES, MAX_CHAT_CALLS),
        "tools": at_most_items(MAX_TOOLS),
        "tool_choice": anything,
        "parallel_tool_calls": anything,
        "template_arguments": json_values_of_at_most(MAX_TEMPLATE_ARGUMENT_BYTES),
        "dialect": _name,
    },
    "outrider.v1.ChatMessage": {
        "role": _name,
        "content": anything,
        "reasoning": anything,
        "tool_calls": at_most_items(MAX_TOOLS),
        "tool_call_id": nonempty_at_most_bytes(MAX_NAME_BYTES),
    },
    "outrider.v1.Tool": {
        "name": tool_name,
        "description": anything,
        "parameters_json_schema": at_most_bytes(MAX_SOURCE_BYTES),
    },
    "outrider.v1.ToolChoice": {"mode": known(CHOICE_MODES), "name": tool_name},
    "outrider.v1.ToolCall": {"id": _name, "name": tool_name, "arguments_json": anything},
    "outrider.v1.GenerationSettings": {
        "do_sample": anything,
        "temperature": finite_at_least(0),
        "top_k": at_least(0),
        "top_p": fraction,
        "min_p": fraction,
        "top_a": finite_at_least(0),
        "typical_p": positive_fraction,
        "repetition_penalty": finite_above(0),
        "repeat_last_n": anything,
        "frequency_penalty": finite,
        "presence_penalty": finite,
        "dry": anything,
        "xtc": anything,
        "mirostat": anything,
        "sampler_order": _order,
        "logit_bias": Each(at_most_items(MAX_BIASES), finite),
        "seed": anything,
        "max_new_tokens": at_least(1),
        "min_new_tokens": at_least(0),
        "max_context": at_least(1),
        "stops": at_most_items(MAX_STOPS),
        "include_stop": anything,
        "stop_on_eos": anything,
        "eos_token_id": anything,
        "allowed_token_ids": _ids,
        "banned_token_ids": _ids,
        "logprobs": _count,
        "prompt_logprobs": _count,
        "constraint": anything,
    },
    "outrider.v1.DrySettings": {
        "multiplier": finite_at_least(0),
        "base": finite_at_least(1),
        "allowed_length": at_least(1),
        "sequence_breakers": anything,
    },
    "outrider.v1.SequenceBreakers": {
        "texts": Each(at_most_items(MAX_BREAKERS), nonempty_at_most_bytes(MAX_BREAKER_BYTES)),
    },
    "outrider.v1.XtcSettings": {"probability": fraction, "threshold": fraction},
    "outrider.v1.MirostatSettings": {
        "version": between(1, 2),
        "tau": finite_above(0),
        "eta": finite_above(0),
    },
    "outrider.v1.Constraint": {
        "json": anything,
        "json_schema": _source,
        "regex": _source,
        "lark": _source,
        "choice": anything,
    },
    "outrider.v1.Constraint.AnyJson": {},
    "outrider.v1.Constraint.Choice": {
        "texts": Each(at_most_items(MAX_CHOICES), _source),
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
        "token_ids": at_most_items(MAX_PROMPT_IDS),
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

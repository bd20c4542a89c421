"""Requests in a few words."""

from __future__ import annotations

from outrider.v1.chat_pb2 import Chat
from outrider.v1.generation_pb2 import Generation, TokenIds
from outrider.v1.settings_pb2 import GenerationSettings

PROMPT = tuple(b"abcabbacab")
TOKENS = 16
DRAWN = 3
"""How many tokens are drawn where whole outputs are counted."""


def greedy(**settings: object) -> Generation:
    """Return a request for the likeliest tokens."""
    fields = {"temperature": 0.0, "max_new_tokens": TOKENS, **settings}
    return Generation(token_ids=TokenIds(ids=PROMPT), settings=GenerationSettings(**fields))  # type: ignore[arg-type]  # the names are the proto's


def drawn(**settings: object) -> Generation:
    """Return a request for a few tokens from the whole distribution."""
    fields = {
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "max_new_tokens": DRAWN,
        **settings,
    }
    return Generation(token_ids=TokenIds(ids=PROMPT), settings=GenerationSettings(**fields))  # type: ignore[arg-type]  # the names are the proto's


def said(chat: Chat, **settings: object) -> Generation:
    """Return a request to go on with a conversation, greedily."""
    fields = {"temperature": 0.0, "max_new_tokens": TOKENS, **settings}
    return Generation(chat=chat, settings=GenerationSettings(**fields))  # type: ignore[arg-type]  # the names are the proto's

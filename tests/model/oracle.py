"""What the target alone says: one lane, one token a pass, the highest logit; no core involved."""

from __future__ import annotations

from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from service.speculation.contract import Tokens

MAX_TOKENS = 24


def continuation(decoder: Decoder, prompt: Tokens, ends: frozenset[int]) -> Tokens:
    """Return the greedy output, its end token included."""
    slot = decoder.open()
    for start in range(0, len(prompt), decoder.max_rows):
        following = _follow(decoder, slot, prompt[start : start + decoder.max_rows])
    said = [following]
    while len(said) < MAX_TOKENS and said[-1] not in ends:
        said.append(_follow(decoder, slot, (said[-1],)))
    decoder.close(slot)
    return tuple(said)


def _follow(decoder: Decoder, slot: int, tokens: Tokens) -> int:
    """Append tokens to a lane and return the likeliest one after them."""
    logits = decoder.forward([LaneInput(slot, decoder.length(slot), tokens, 1)])
    return int(logits[0][0].argmax())

"""Settings of every kind that shapes the output, sampled or greedy."""

from __future__ import annotations

from collections.abc import Mapping

from exactness.subject import Subject
from outrider.v1.settings_pb2 import (
    SAMPLER_ORDER_TEMPERATURE_LAST,
    Constraint,
    DrySettings,
    GenerationSettings,
    MirostatSettings,
    SequenceBreakers,
    Stop,
    XtcSettings,
)

_WHOLE = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def sampled(subject: Subject, **changes: object) -> GenerationSettings:
    """Return settings that sample from the whole distribution over a few tokens."""
    allowed = () if subject.is_small else subject.alphabet
    fields = {**_WHOLE, "allowed_token_ids": allowed, **changes}
    return GenerationSettings(**fields)  # type: ignore[arg-type]  # the names are the proto's


def variants(subject: Subject) -> Mapping[str, GenerationSettings]:
    """Return settings by a name; every sampling parameter acts in one of them."""
    first, second = subject.alphabet[:2]
    texts = [_literal(subject.model.text.decode((token,))) for token in subject.alphabet]
    changes: dict[str, dict[str, object]] = {
        "temperature 1": {},
        "temperature 0.5": {"temperature": 0.5},
        "temperature 2": {"temperature": 2.0},
        "top-k": {"top_k": 2},
        "top-p": {"top_p": 0.7},
        "min-p": {"min_p": 0.4},
        "top-a": {"top_a": 0.9},
        "typical-p": {"typical_p": 0.6},
        "all truncations": {
            "temperature": 1.5,
            "top_k": 3,
            "top_p": 0.9,
            "min_p": 0.1,
            "top_a": 0.2,
            "typical_p": 0.9,
        },
        "temperature last": {
            "temperature": 2.0,
            "top_p": 0.7,
            "sampler_order": SAMPLER_ORDER_TEMPERATURE_LAST,
        },
        "penalties": {
            "repetition_penalty": 1.5,
            "frequency_penalty": 0.6,
            "presence_penalty": 0.3,
            "repeat_last_n": 2,
        },
        "DRY": {
            "dry": DrySettings(
                multiplier=1.0, allowed_length=1, sequence_breakers=SequenceBreakers()
            )
        },
        "XTC": {"xtc": XtcSettings(probability=0.5, threshold=0.2)},
        "XTC, temperature last": {
            "temperature": 1.5,
            "xtc": XtcSettings(probability=0.7, threshold=0.1),
            "sampler_order": SAMPLER_ORDER_TEMPERATURE_LAST,
        },
        "Mirostat 1": {"mirostat": MirostatSettings(version=1, tau=0.8, eta=0.7)},
        "Mirostat 2": {"mirostat": MirostatSettings(version=2, tau=0.8, eta=0.7)},
        "Mirostat 2, XTC": {
            "mirostat": MirostatSettings(version=2, tau=1.0, eta=0.5),
            "xtc": XtcSettings(probability=0.5, threshold=0.1),
        },
        "bias": {"logit_bias": {first: 1.0, second: -1.0}},
        "banned": {"banned_token_ids": [second]},
        "regex": {"constraint": Constraint(regex=f"({'|'.join(texts[:2])})({'|'.join(texts)})*")},
    }
    return {name: sampled(subject, **each) for name, each in changes.items()}


def _literal(text: str) -> str:
    """Return a regular expression for a text alone."""
    return "".join(f"\\{letter}" if letter in "\\.+*?()|[]{}^$" else letter for letter in text)


def shaped(subject: Subject) -> Mapping[str, GenerationSettings]:
    """Return settings by a name, each of which shapes greedy output in a way of its own."""
    first, second, *_ = subject.alphabet
    breakers = SequenceBreakers(texts=["."])
    schema = '{"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}'
    changes: dict[str, dict[str, object]] = {
        "repetition penalty": {"repetition_penalty": 1.4, "repeat_last_n": 8},
        "frequency and presence penalties": {"frequency_penalty": 0.5, "presence_penalty": 0.3},
        "DRY": {"dry": DrySettings(multiplier=2.0, allowed_length=1, sequence_breakers=breakers)},
        "bias": {"logit_bias": {first: 2.0, second: -2.0}},
        "bans": {"banned_token_ids": [first, second]},
        "few tokens": {"allowed_token_ids": subject.alphabet},
        "least tokens": {"stops": [Stop(token_id=first)], "min_new_tokens": 4},
        "stops": {"stops": [Stop(text="a"), Stop(text="e")], "include_stop": True},
        "JSON schema": {"constraint": Constraint(json_schema=schema)},
        "regex": {"constraint": Constraint(regex="([a-f]{2}[g-z ]){2,3}[.]")},
        "grammar": {"constraint": Constraint(lark='start: ("ab" | "b" | " ")+ "!"')},
    }
    return {name: GenerationSettings(**each) for name, each in changes.items()}  # type: ignore[arg-type]  # the names are the proto's

"""The fields of `Generation` and of `SpeculationSettings`, and those of a prompt in tokens."""

from __future__ import annotations

from collections.abc import Mapping

from exactness.answer import Answer
from exactness.fields.asking import greedy
from exactness.proof import Elsewhere, Proof, Refused, Shows, Steers
from outrider.v1.generation_pb2 import Generation, TokenIds
from outrider.v1.settings_pb2 import (
    SPECULATION_MODE_AUTO,
    SPECULATION_MODE_NONE,
    GenerationSettings,
    SpeculationSettings,
)


def _speculation(answer: Answer) -> object:
    return str(answer.admitted.speculation)


def _timed(answer: Answer) -> object:
    return answer.ended.statistics.component_timings_collected


def _texts(text: str) -> Generation:
    settings = GenerationSettings(temperature=0.0, max_new_tokens=16)
    return Generation(text=text, settings=settings)


def _asked(**fields: object) -> Generation:
    asked = greedy()
    asked.MergeFrom(Generation(**fields))  # type: ignore[arg-type]  # the names are the proto's
    return asked


def _tokens(*ids: int) -> Generation:
    settings = GenerationSettings(temperature=0.0, max_new_tokens=16)
    return Generation(token_ids=TokenIds(ids=ids), settings=settings)


def _steers(without: SpeculationSettings, given: SpeculationSettings) -> Steers:
    return Steers(without, given, greedy(), _speculation)


GENERATION: Mapping[str, Proof] = {
    "model": Elsewhere(
        "tests/service/runtime/test_models.py",
        "test_registry_finds_a_model_by_name_alias_or_default",
    ),
    "text": Shows(_texts("abc"), _texts("abd")),
    "timeout": Elsewhere(
        "tests/service/runtime/test_engine.py",
        "test_timed_out_request_fails_with_what_was_delivered_intact",
    ),
    "priority": Refused(_asked(priority=1), "priority"),
    "component_timings": Shows(
        greedy(), _asked(component_timings=True), _timed, "what is measured"
    ),
}

TOKEN_IDS: Mapping[str, Proof] = {"ids": Shows(_tokens(97, 98, 99), _tokens(97, 98, 98))}

SPECULATION_SETTINGS: Mapping[str, Proof] = {
    "mode": _steers(
        SpeculationSettings(mode=SPECULATION_MODE_NONE),
        SpeculationSettings(mode=SPECULATION_MODE_AUTO),
    ),
    "proposer": _steers(
        SpeculationSettings(proposer="wrong"), SpeculationSettings(proposer="mostly-right")
    ),
    "num_speculative_tokens": _steers(
        SpeculationSettings(num_speculative_tokens=2), SpeculationSettings(num_speculative_tokens=5)
    ),
    "lookahead": _steers(SpeculationSettings(lookahead=False), SpeculationSettings(lookahead=True)),
}

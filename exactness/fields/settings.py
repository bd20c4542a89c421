"""The fields of `GenerationSettings`, and of the messages inside it."""

from __future__ import annotations

from collections.abc import Mapping

from exactness.answer import Answer
from exactness.fields.asking import PROMPT, drawn, greedy
from exactness.proof import Proof, Seeds, Shifts, Shows
from outrider.v1.settings_pb2 import (
    SAMPLER_ORDER_TEMPERATURE_FIRST,
    SAMPLER_ORDER_TEMPERATURE_LAST,
    Constraint,
    DrySettings,
    MirostatSettings,
    SequenceBreakers,
    Stop,
    XtcSettings,
)

A, B, C = b"abc"
NO_BREAKERS = SequenceBreakers()
JSON = Constraint(json=Constraint.AnyJson())


def _scores(answer: Answer) -> object:
    return answer.logprobs


def _prompt_scores(answer: Answer) -> object:
    return answer.prompt_logprobs


def _dry(**changes: object) -> DrySettings:
    fields = {
        "multiplier": 3.0,
        "allowed_length": 1,
        "sequence_breakers": NO_BREAKERS,
        **changes,
    }
    return DrySettings(**fields)  # type: ignore[arg-type]  # the names are the proto's


def _constrained(constraint: Constraint) -> Shows:
    return Shows(greedy(), greedy(constraint=constraint))


GENERATION_SETTINGS: Mapping[str, Proof] = {
    "do_sample": Shifts(drawn(do_sample=False), drawn(do_sample=True)),
    "temperature": Shifts(drawn(), drawn(temperature=0.3)),
    "top_k": Shifts(drawn(), drawn(top_k=1)),
    "top_p": Shifts(drawn(), drawn(top_p=0.4)),
    "min_p": Shifts(drawn(), drawn(min_p=0.8)),
    "top_a": Shifts(drawn(), drawn(top_a=1.5)),
    "typical_p": Shifts(drawn(), drawn(typical_p=0.3)),
    "repetition_penalty": Shows(greedy(), greedy(repetition_penalty=3.0, repeat_last_n=1)),
    "repeat_last_n": Shows(
        greedy(repetition_penalty=3.0, repeat_last_n=1),
        greedy(repetition_penalty=3.0, repeat_last_n=2),
    ),
    "frequency_penalty": Shows(greedy(), greedy(frequency_penalty=1.0)),
    "presence_penalty": Shows(
        greedy(repeat_last_n=2), greedy(repeat_last_n=2, presence_penalty=2.0)
    ),
    "sampler_order": Shifts(
        drawn(temperature=5.0, top_p=0.5, sampler_order=SAMPLER_ORDER_TEMPERATURE_FIRST),
        drawn(temperature=5.0, top_p=0.5, sampler_order=SAMPLER_ORDER_TEMPERATURE_LAST),
    ),
    "logit_bias": Shows(greedy(), greedy(logit_bias={A: 2.0, C: -2.0})),
    "seed": Seeds(drawn(max_new_tokens=24)),
    "max_new_tokens": Shows(greedy(), greedy(max_new_tokens=9)),
    "min_new_tokens": Shows(greedy(eos_token_id=A), greedy(eos_token_id=A, min_new_tokens=9)),
    "max_context": Shows(greedy(), greedy(max_context=len(PROMPT) + 7)),
    "include_stop": Shows(
        greedy(stops=[Stop(text="a")]), greedy(stops=[Stop(text="a")], include_stop=True)
    ),
    "stop_on_eos": Shows(greedy(eos_token_id=A), greedy(eos_token_id=A, stop_on_eos=False)),
    "eos_token_id": Shows(greedy(), greedy(eos_token_id=A)),
    "allowed_token_ids": Shows(greedy(), greedy(allowed_token_ids=[A, C])),
    "banned_token_ids": Shows(greedy(), greedy(banned_token_ids=[A])),
    "logprobs": Shows(greedy(), greedy(logprobs=2), _scores, "what is said of output"),
    "prompt_logprobs": Shows(
        greedy(), greedy(prompt_logprobs=2), _prompt_scores, "what is said of the prompt"
    ),
}

DRY_SETTINGS: Mapping[str, Proof] = {
    "multiplier": Shows(greedy(), greedy(dry=_dry())),
    "base": Shows(
        greedy(dry=_dry(multiplier=0.3, base=1.0)), greedy(dry=_dry(multiplier=0.3, base=4.0))
    ),
    "allowed_length": Shows(greedy(dry=_dry()), greedy(dry=_dry(allowed_length=3))),
}

SEQUENCE_BREAKERS: Mapping[str, Proof] = {
    "texts": Shows(
        greedy(dry=_dry()), greedy(dry=_dry(sequence_breakers=SequenceBreakers(texts=["a", "b"])))
    ),
}

XTC_SETTINGS: Mapping[str, Proof] = {
    "probability": Shifts(drawn(), drawn(xtc=XtcSettings(probability=0.9))),
    "threshold": Shifts(
        drawn(xtc=XtcSettings(probability=0.9, threshold=0.1)),
        drawn(xtc=XtcSettings(probability=0.9, threshold=0.45)),
    ),
}

MIROSTAT_SETTINGS: Mapping[str, Proof] = {
    "version": Shifts(
        drawn(mirostat=MirostatSettings(version=1, tau=0.6)),
        drawn(mirostat=MirostatSettings(version=2, tau=0.6)),
    ),
    "tau": Shifts(
        drawn(mirostat=MirostatSettings(tau=3.0)), drawn(mirostat=MirostatSettings(tau=0.3))
    ),
    "eta": Shifts(
        drawn(mirostat=MirostatSettings(tau=0.5, eta=0.01)),
        drawn(mirostat=MirostatSettings(tau=0.5, eta=3.0)),
    ),
}

STOP: Mapping[str, Proof] = {
    "text": Shows(greedy(), greedy(stops=[Stop(text="ab")])),
    "token_id": Shows(greedy(), greedy(stops=[Stop(token_id=A)])),
}

CONSTRAINT: Mapping[str, Proof] = {
    "json": _constrained(JSON),
    "json_schema": _constrained(Constraint(json_schema='{"enum": ["ab", "ba"]}')),
    "regex": _constrained(Constraint(regex="(ab|bc)+x")),
    "lark": _constrained(Constraint(lark='start: "b" ("a" | "c")+ "!"')),
}

CHOICE: Mapping[str, Proof] = {
    "texts": Shows(
        greedy(constraint=Constraint(choice=Constraint.Choice(texts=["cab", "bac"]))),
        greedy(constraint=Constraint(choice=Constraint.Choice(texts=["aab", "bab"]))),
    ),
}

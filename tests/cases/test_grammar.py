"""Constrained output: drafts past its end, malformed grammars, their sizes, and white space."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import pytest
from grpc import aio
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from engines.scripted.law import Logits
from outrider.v1 import generation_pb2, settings_pb2
from service.runtime.models import LoadedModel
from tests.cases.asking import GRAMMAR, LENGTH, NONE, asked, one, output_of, played
from tests.cases.refusing import beside_a_control, refused, violations_of
from tests.cases.stage import EOS as END
from tests.cases.stage import VisibleLaw, staged, tiny, with_heedless
from tests.service.rpc.harness import complete, served

INVALID = grpc.StatusCode.INVALID_ARGUMENT
_Constraint = settings_pb2.Constraint
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def matching(**language: object) -> dict[str, settings_pb2.Constraint]:
    """Return the setting that constrains an output."""
    return {"constraint": _Constraint(**language)}


def schema(document: object) -> dict[str, settings_pb2.Constraint]:
    return matching(json_schema=document if isinstance(document, str) else json.dumps(document))


PAST_THE_END = (*b"}", END, *b"\n\n```")


@pytest.mark.parametrize("width", [4, 8, 15])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b31_a_draft_past_the_end_of_the_grammar_is_rejected_and_no_error(width, temperature):
    """B31: the matcher is fed the proposals behind an end, and a valid answer is aborted.

    Two hundred runs over three widths and two temperatures; the draft proposes a brace, the end,
    two line breaks and a fence, again and again.
    """
    model = with_heedless(staged(VisibleLaw()), "fence", PAST_THE_END * 20)
    settings = {"temperature": temperature, "max_new_tokens": 100, **schema(SCHEMA)}
    runs = 34
    plain = played(model, [asked("x", NONE, seed=seed, **settings) for seed in range(runs)])
    fast = played(
        model, [asked("x", "fence", width, seed=seed, **settings) for seed in range(runs)]
    )

    for answer in (*plain, *fast):
        assert GRAMMAR == answer.finished.reason
        value = json.loads(answer.text)
        assert ["a"] == [*value]
        assert isinstance(value["a"], int)
    statistics = [answer.finished.statistics for answer in fast]
    assert any(each.accepted_tokens for each in statistics)
    assert all(each.accepted_tokens < each.judged_tokens < each.draft_tokens for each in statistics)
    if temperature == 0.0:
        assert [*map(output_of, plain)] == [*map(output_of, fast)]
    else:
        assert 1 < len({answer.text for answer in fast})


@pytest.mark.parametrize("proposer", ["draft", "lookup"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b31_a_real_engines_drafts_end_with_the_grammar(proposer, temperature):
    """B31: the same on ONNX Runtime; the prompt repeats an answer and the fence behind it."""
    model = tiny(draft_seed=1)
    prompt = '{"a":12}\n\n```' * 4
    likely = dict.fromkeys(one_token_each(model, '{"a":1}'), 40.0)
    settings = {
        "temperature": temperature,
        "max_new_tokens": 60,
        "logit_bias": likely,
        **schema(SCHEMA),
    }
    plain, *fast = played(
        model,
        [
            asked(prompt, NONE, seed=0, **settings),
            *(asked(prompt, proposer, 8, seed=seed, **settings) for seed in range(8)),
        ],
    )

    for answer in (plain, *fast):
        assert GRAMMAR == answer.finished.reason
        assert isinstance(json.loads(answer.text)["a"], int)
    assert any(answer.finished.statistics.judged_tokens for answer in fast)
    if temperature == 0.0:
        assert {output_of(plain)} == {*map(output_of, fast)}


def one_token_each(model: LoadedModel, text: str) -> set[int]:
    """Return the tokens of a text's characters."""
    return {token for character in text for token in model.text.encode(character)}


NUL = "\N{NULL}"
MALFORMED = {
    "open class": ("regex", "[a-z"),
    "open group": ("regex", "(abc"),
    "nothing to repeat": ("regex", "*abc"),
    "look-ahead": ("regex", "(?=a)b"),
    "back-reference": ("regex", r"(a)\1"),
    "empty": ("lark", ""),
    "no start": ("lark", 'other: "test"'),
    "unfinished rule": ("lark", 'start: / "test"'),
    "no JSON": ("json_schema", "{"),
    "unknown type": ("json_schema", '{"type":"objekt"}'),
    "nothing matches": ("json_schema", "false"),
    "minimum above maximum": ("json_schema", '{"type":"integer","minimum":3,"maximum":1}'),
    "remote reference": ("json_schema", '{"$ref":"http://127.0.0.1:9/schema.json"}'),
}


@pytest.mark.parametrize(("language", "source"), MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.asyncio
async def test_b33_a_malformed_grammar_is_refused_in_the_parsers_words(language, source):
    """B33: it takes the engine down, or is fetched for; another stream is undisturbed."""
    async with beside_a_control(staged(VisibleLaw())) as server:
        error = await refused(server, asked("x", **matching(**{language: source})))

    assert INVALID == error.code()
    ((field, told),) = violations_of(error).items()
    assert f"settings.constraint.{language}" == field
    assert 3 < len(told) < 1000
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("language", "source"),
    [("regex", NUL), ("json_schema", json.dumps({"type": "string", "pattern": NUL}))],
)
@pytest.mark.asyncio
async def test_b33_a_nul_is_matched_or_refused_and_ends_nothing(language, source):
    """B33: a leading NUL crashes some libraries."""
    async with beside_a_control(staged(VisibleLaw())) as server:
        message = asked("x", max_new_tokens=8, **matching(**{language: source}))
        (outcome,) = await asyncio.gather(complete(server, message), return_exceptions=True)
    if isinstance(outcome, aio.AioRpcError):
        assert INVALID == outcome.code()
    else:
        assert outcome.finished.reason in {GRAMMAR, LENGTH}


def test_b35_long_strings_may_be_asked_for():
    """B35: a bound of ten thousand characters is refused as too large."""
    document = {"type": "string", "maxLength": 10_000}
    answer = one(staged(VisibleLaw()), asked("x", max_new_tokens=200, **schema(document)))

    assert answer.finished.reason in {GRAMMAR, LENGTH}
    assert answer.text.startswith('"')


def test_b35_a_pattern_keeps_its_bound_of_length():
    """B35: `pattern` makes `maxLength` forgotten."""
    document = {"type": "string", "pattern": "^[ -~]+$", "maxLength": 8}
    model = staged(VisibleLaw())
    settings = {"temperature": 1.0, "max_new_tokens": 100, **schema(document)}
    answers = played(model, [asked("x", "own-law", 4, seed=s, **settings) for s in range(20)])

    assert {GRAMMAR} == {answer.finished.reason for answer in answers}
    assert all(1 <= len(json.loads(answer.text)) <= 8 for answer in answers)
    assert any(len(json.loads(answer.text)) == 8 for answer in answers)


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '{"type":"null"}' + "}" * depth


HUGE = {
    "100 000 of a choice": json.dumps({"enum": [f"word {place}" for place in range(100_000)]}),
    "2 000 deep": nested(2000),
}


@pytest.mark.parametrize("document", HUGE.values(), ids=HUGE.keys())
@pytest.mark.asyncio
async def test_b35_a_huge_schema_is_refused_soon_and_holds_up_nobody(document):
    """B35: it stalls the server, or overflows a stack; health is asked for meanwhile."""
    async with served(staged(VisibleLaw())) as server:
        health = HealthStub(server.channel)
        waits: list[float] = []

        async def watch() -> None:
            while True:
                asked_at = time.perf_counter()
                await health.Check(HealthCheckRequest())
                waits.append(time.perf_counter() - asked_at)

        watching = asyncio.create_task(watch())
        for _ in range(5):
            began = time.perf_counter()
            error = await refused(server, asked("x", **schema(document)))
            assert time.perf_counter() - began < 1.0
            assert INVALID == error.code()
            assert {"settings.constraint.json_schema"} == set(violations_of(error))
        watching.cancel()

    assert waits
    assert sum(wait > 0.25 for wait in waits) <= len(waits) / 100


FRUIT = "^(A fruit\nA nice fruit|A vegetable\nA nice vegetable)$"


def test_b35_anchors_and_line_breaks_of_a_regex_are_no_text():
    """B35: a line break is mangled, or an anchor becomes part of the output."""
    settings = {"temperature": 1.0, "max_new_tokens": 100, **matching(regex=FRUIT)}
    model = staged(VisibleLaw())
    answers = played(model, [asked("x", "own-law", 4, seed=s, **settings) for s in range(20)])

    wanted = {"A fruit\nA nice fruit", "A vegetable\nA nice vegetable"}
    assert wanted == {answer.text for answer in answers}


@dataclass(frozen=True, slots=True)
class BlankLaw:
    """Prefers white space to everything."""

    def logits(self, history: Sequence[int]) -> Logits:
        others = dict.fromkeys(range(ord("!"), ord("~") + 1), -5.0)
        return tuple(sorted({**others, ord(" "): 1.0, ord("\n"): 0.9, ord("\t"): 0.8}.items()))


@pytest.mark.parametrize("proposer", [NONE, "right", "wrong"])
def test_b36_white_space_ends_and_the_object_closes(proposer):
    """B36: legal white space goes on until the budget is spent, and the JSON is cut off."""
    width = None if proposer == NONE else 4
    document = {**SCHEMA, "properties": {"a": {"enum": [1]}}}
    message = asked("x", proposer, width, max_new_tokens=200, **schema(document))
    answer = one(staged(BlankLaw()), message)

    assert GRAMMAR == answer.finished.reason
    assert {"a": 1} == json.loads(answer.text)
    assert max(map(len, re.findall(r"\s+", answer.text))) <= 32
    assert answer.text == answer.text.rstrip()


@pytest.mark.parametrize("proposer", [NONE, "right"])
def test_b36_what_is_cut_off_says_so(proposer):
    """B36: a truncated object ends for its budget, never as if it had ended itself."""
    width = None if proposer == NONE else 4
    answer = one(
        staged(BlankLaw()), asked("x", proposer, width, max_new_tokens=20, **schema(SCHEMA))
    )

    assert (20, LENGTH) == (len(answer.tokens.token_ids), answer.finished.reason)
    assert generation_pb2.FINISH_REASON_EOS != answer.finished.reason

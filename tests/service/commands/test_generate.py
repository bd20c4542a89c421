"""`outrider generate` as people run it, against the scripted engine."""

import json

import pytest

from tests.service.commands.process import outrider, serving

QUESTION = ("generate", "Hello", "--max-tokens", "16")
ANSWER = "You wrote: Hello\n"


@pytest.fixture(scope="module")
def server():
    with serving() as process:
        yield process


def test_generate_streams_the_text_of_a_server(server):
    ended = outrider(*QUESTION, "--target", server.address)

    assert (0, ANSWER, "") == (ended.returncode, ended.stdout, ended.stderr)


def test_generate_without_a_server_starts_one_for_the_answer():
    ended = outrider(*QUESTION, "--engine", "scripted")

    assert (0, ANSWER) == (ended.returncode, ended.stdout)


def test_generate_reads_a_question_from_standard_input_and_counts(server):
    ended = outrider("generate", "-", "--stats", "--target", server.address, stdin="Hello")

    text, _, statistics = ended.stdout.rpartition("\n\n")
    assert text.startswith("You wrote: Hello")
    assert "acceptance length" in statistics


def test_generate_in_json_is_the_same_with_and_without_speculation(server):
    asked = (
        "generate",
        "--raw",
        "Hm. ",
        "--max-tokens",
        "60",
        "--json",
        "--target",
        server.address,
    )

    fast, plain = (
        json.loads(outrider(*asked, "--json", "--speculation", mode).stdout)
        for mode in ("auto", "none")
    )

    assert fast["token_ids"] == plain["token_ids"]
    assert fast["text"] == plain["text"]
    assert (0, 59) == (plain["rounds"], plain["plain_steps"])
    assert 0 < fast["accepted_tokens"]


def test_generate_shows_the_reasoning_beside_the_answer(server):
    """The scripted engine thinks where a constraint leaves it nothing else to say first."""
    ended = outrider(*QUESTION, "--regex", "a", "--target", server.address)

    assert (0, "\n") == (ended.returncode, ended.stdout)
    assert ended.stderr.startswith("You wro")


def test_generate_shows_log_probabilities(server):
    asked = (*QUESTION, "--logprobs", "1", "--target", server.address)

    shown = outrider(*asked).stdout
    told = json.loads(outrider(*asked, "--json").stdout)

    text, _, lines = shown.partition("\n\n")
    assert f"{text}\n" == ANSWER
    assert 16 == len(lines.splitlines()) == len(told["logprobs"])
    assert "'Y'" in lines.splitlines()[0]
    assert [[token] for token in told["token_ids"]] == [
        [other for other, _ in each["alternatives"]] for each in told["logprobs"]
    ]


def test_generate_holds_back_the_end(server):
    asked = (*QUESTION, "--stop", "wrote", "--json", "--target", server.address)

    early, late = (
        json.loads(outrider(*asked, *flags).stdout) for flags in ((), ("--min-tokens", "12"))
    )

    assert ("You ", "You wrote: Hello") == (early["text"], late["text"])
    assert ("STOP_SEQUENCE", "MAX_TOKENS") == (early["reason"], late["reason"])


@pytest.mark.parametrize(
    "flags",
    [
        ["--json-schema", '{"type": "object", "properties": {}, "additionalProperties": false}'],
        ["--json-schema", "schema.json"],
        ["--regex", r"\{\}"],
        ["--choice", "{}"],
    ],
)
def test_generate_constrains_the_answer(server, tmp_path, flags):
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "maxProperties": 0}')
    given = [str(schema) if flag == "schema.json" else flag for flag in flags]

    asked = ("generate", "--raw", "Hello", "--max-tokens", "40", "--target", server.address)
    ended = outrider(*asked, *given)

    assert ("", {}) == (ended.stderr, json.loads(ended.stdout))


@pytest.mark.parametrize(
    ("flags", "status", "complaint"),
    [
        (["--temperature", "-1"], 2, "settings.temperature"),
        (["--seed", "-1"], 2, "out of range"),
        (["--logprobs", "21"], 2, "settings.logprobs: must be 0 to 20, got 21"),
        (["--regex", ""], 2, "settings.constraint.regex: must not be empty"),
        (["--regex", "a", "--choice", "b"], 2, "not allowed with argument --regex"),
        (["--json-schema", "/nowhere/schema.json"], 2, "--json-schema: /nowhere/schema.json"),
        (["--timeout", "inf"], 2, "argument --timeout: must be 0 to 31536000 seconds, got 'inf'"),
        (["--timeout", "nan"], 2, "argument --timeout"),
        (["--timeout", "1e10"], 2, "argument --timeout"),
        (["--name", "other"], 1, "NOT_FOUND: unknown model 'other'"),
        (["--speculation", "eagle3"], 1, "FAILED_PRECONDITION"),
    ],
)
def test_refused_request_ends_in_one_line(server, flags, status, complaint):
    ended = outrider("generate", "--raw", "x", "--target", server.address, *flags)

    assert (status, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert complaint in ended.stderr


def test_no_server_at_the_target_ends_with_status_one():
    ended = outrider("generate", "x", "--target", "127.0.0.1:1", "--timeout", "5")

    assert (1, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert "outrider: UNAVAILABLE" in ended.stderr

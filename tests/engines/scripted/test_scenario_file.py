"""Scenario files: what they mean, and how their mistakes are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engines.scripted.device import HANG
from engines.scripted.fault import Operation
from engines.scripted.law import EchoLaw, ScriptLaw
from engines.scripted.scenario import (
    AfterSteps,
    AtTime,
    CancelAfterTokens,
    CancelAtStage,
    ScenarioFault,
)
from engines.scripted.scenario_file import OPERATIONS, load_scenario
from engines.scripted.vocabulary import encode
from service.errors import InvalidSettings
from service.speculation.completion import CompletionCancellation

FULL = """
title = "Everything"

[engine]
law = "echo"
mode = "asynchronous"
slots = 3
context = 64
pass_lanes = 2
pass_rows = 32
pass_seconds = 1
seconds_of_pass = { 2 = inf, 5 = 0.5 }

[scheduler]
lookahead = false
passes_in_flight = 2
pass_lanes = 2
prefill_chunk = 8
timeout_seconds = 2.5
cancellation = "native-cancel"

[[script]]
prompt = "hi"
output = "there"

[[request]]
name = "a"
prompt = "hi"
arrives_at = 1.5
max_tokens = 9
draft = "own-law"
width = 2
fixed_width = true
lookahead = false
temperature = 0.5
top_k = 3
seed = 7
cancel = { stage = "completion", nth = 2 }
ends = "cancelled"

[[request]]
name = "b"
prompt = "ho"
arrives_after = 4
cancel = { after_tokens = 3 }
output = "x"

[[fault]]
request = "b"
where = "rows"
nth = 2
times = 3
message = "no"
"""
SMALL = 'title = "x"\n[[request]]\nname = "a"\nprompt = "hi"\n'


def load(tmp_path, text: str):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return load_scenario(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_p", 0.5),
        ("min_p", 0.1),
        ("top_a", 0.3),
        ("typical_p", 0.9),
        ("repetition_penalty", 1.5),
        ("repeat_last_n", -1),
        ("frequency_penalty", 0.5),
        ("presence_penalty", -0.5),
        ("min_new_tokens", 3),
    ],
)
def test_setting_of_a_request_is_read(tmp_path, name, value) -> None:
    (request,) = load(tmp_path, SMALL + f"temperature = 1.0\n{name} = {value}").requests

    assert value == getattr(request.config, name)


def test_file_with_everything_is_read_whole(tmp_path) -> None:
    scenario = load(tmp_path, FULL)

    settings, scheduler = scenario.settings, scenario.scheduler
    assert ScriptLaw(((encode("hi"), encode("there")),), EchoLaw()) == settings.law
    assert (3, 64, 2, 32) == (
        settings.max_slots,
        settings.max_context,
        settings.max_pass_lanes,
        settings.max_pass_rows,
    )
    assert [1.0, HANG, 0.5] == [settings.timetable.seconds(number) for number in (1, 2, 5)]
    assert (False, 2, 2, 8, 2.5) == (
        scheduler.lookahead,
        scheduler.passes_in_flight,
        scheduler.pass_lanes,
        scheduler.prefill_chunk,
        scheduler.timeout_seconds,
    )
    assert CompletionCancellation.NATIVE_CANCEL is scheduler.cancellation
    first, second = scenario.requests
    assert (AtTime(1.5), CancelAtStage("completion", 2)) == (first.arrival, first.cancel)
    assert (True, 0.5, 3, 7) == (
        first.config.do_sample,
        first.config.temperature,
        first.config.top_k,
        first.seed,
    )
    assert (AfterSteps(4), CancelAfterTokens(3)) == (second.arrival, second.cancel)
    assert ("own-law", 2, True, False) == (
        first.draft,
        first.width,
        first.is_fixed,
        first.lookahead,
    )
    assert (ScenarioFault("b", Operation.ROWS, 2, 3, "no"),) == scenario.faults


def test_file_with_little_has_quiet_defaults(tmp_path) -> None:
    scenario = load(tmp_path, SMALL)

    (request,) = scenario.requests
    assert (AfterSteps(0), None, None, "completed") == (
        request.arrival,
        request.cancel,
        request.draft,
        request.status,
    )
    assert (0.0, True) == (request.config.temperature, scenario.settings.is_synchronous)
    assert () == scenario.faults


def test_file_of_the_guide_is_valid(tmp_path) -> None:
    """The example of docs/scripted.md shows every key that there is."""
    guide = Path(__file__).parents[3] / "docs/scripted.md"
    (example,) = re.findall(r"```toml\n(.*?)```", guide.read_text(), re.DOTALL)

    scenario = load(tmp_path, example)

    assert 3 == len(scenario.requests)
    assert set(OPERATIONS) <= set(re.findall(r"`(\w+)`", guide.read_text()))


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("title = 3", "title", "must be a string, got 3"),
        ('title = "x"\ncolour = 1', "colour", "is not a known key"),
        ("", "title", "is required"),
        (SMALL + "width = 0", "request[0].width", "must be at least 1, got 0"),
        (SMALL + 'width = "4"', "request[0].width", "must be an integer"),
        (SMALL + "width = true", "request[0].width", "must be an integer"),
        (SMALL + "temperature = -1", "request[0].temperature", "must be finite"),
        (SMALL + 'draft = "lucky"', "request[0].draft", "must be one of right"),
        (SMALL + "arrives_at = 1\narrives_after = 2", "request[0].arrives_at", "excludes"),
        (SMALL + "cancel = { nth = 2 }", "request[0].cancel.after_tokens", "at least 1"),
        (SMALL + 'cancel = { stage = "dinner" }', "request[0].cancel.stage", "must be one of"),
        (SMALL + 'cancel = { after_tokens = 1, stage = "input" }', "after_tokens", "not a known"),
        (SMALL + 'ends = "happily"', "request[0].ends", "must be one of completed"),
        (SMALL.replace("hi", ""), "request[0].prompt", "must not be empty"),
        (SMALL + '[[request]]\nname = "a"\nprompt = "x"', "request[1].name", "is taken"),
        (SMALL + '[[fault]]\nwhere = "rows"\nrequest = "z"', "fault[0].request", "no request"),
        (SMALL + '[[fault]]\nwhere = "open"', "fault[0].where", "must be one of"),
        (SMALL + "[engine]\nseconds_of_pass = { 0 = 1.0 }", "seconds_of_pass.0", "count from 1"),
        (SMALL + "[engine]\nseconds_of_pass = { 1 = inf }", "seconds_of_pass", "cannot hang"),
        (SMALL + "[engine]\npass_seconds = nan", "engine.pass_seconds", "at least 0"),
        (SMALL + "[scheduler]\ntimeout_seconds = 0", "scheduler.timeout_seconds", "at least"),
        ('title = "x"\nrequest = [1]', "request[0]", "must be a table"),
        ('title = "x"\nengine = 1', "engine", "must be a table"),
    ],
)
def test_mistake_is_named_by_file_and_key(tmp_path, text, where, why) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(tmp_path, text)

    assert "scenario.toml: " in caught.value.field
    assert caught.value.field.endswith(where)
    assert why in caught.value.description


@pytest.mark.parametrize("content", [b"title = ", b"\xff\xfe"])
def test_file_that_is_no_toml_is_named(tmp_path, content) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)

    with pytest.raises(InvalidSettings, match=r"broken\.toml"):
        load_scenario(path)


def test_file_that_is_missing_is_named(tmp_path) -> None:
    with pytest.raises(InvalidSettings, match=r"nowhere\.toml"):
        load_scenario(tmp_path / "nowhere.toml")

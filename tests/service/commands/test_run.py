"""Commands over scripted engines: what they ask for, print, and end with."""

import json
from pathlib import Path

import pytest

from service.commands.engines import BuildReport, BuildRequest, Engines
from service.commands.inspect import folded
from service.commands.run import run
from service.errors import BundleError, EngineError, InvalidSettings


def refuse(*_):
    raise AssertionError("the command has no use for this engine")


def engines(load=refuse, build=refuse, inspect=refuse):
    return Engines(load, build, inspect)


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidSettings("model.engine", "warp is unknown"), 2),
        (BundleError("is missing", path="/models/a"), 1),
        (EngineError("the threads are\nset"), 1),
        (PermissionError(13, "Permission denied", "/models"), 1),
    ],
)
def test_failure_ends_with_its_status_and_one_line(error, status, capsys):
    assert status == run(["serve"], engines(load=raising(error)))

    lines = capsys.readouterr().err.splitlines()
    assert [f"outrider: {' '.join(str(error).split())}"] == lines


def test_interrupt_ends_with_status_130_and_no_traceback(capsys):
    assert 130 == run(["serve"], engines(load=raising(KeyboardInterrupt())))

    assert "" == capsys.readouterr().err


def test_bundle_without_a_name_is_refused_by_its_setting(capsys):
    """It would otherwise be the default model's."""
    assert 2 == run(["serve", "--bundle", ""], engines())

    assert "model.bundles" in capsys.readouterr().err


def test_metrics_are_refused_by_name(capsys):
    assert 2 == run(["serve", "--set", "metrics.port=9000"], engines())

    assert "metrics.port" in capsys.readouterr().err


def test_build_asks_for_what_its_flags_say(capsys):
    asked = []

    def build(request):
        asked.append(request)
        return BuildReport(request.destination, was_there=False)

    argv = ["build", "--source", "m.gguf", "--output", "out", "--weights", "f32", "--force"]
    assert 0 == run([*argv, "--json"], engines(build=build))

    expected = BuildRequest(Path("m.gguf"), Path("out"), "f32", "tsman", force=True)
    assert [expected] == asked
    assert {"path": "out", "was_there": False} == json.loads(capsys.readouterr().out)


def test_build_says_when_nothing_was_to_do(capsys):
    there = BuildReport(Path("models/a"), was_there=True)

    assert 0 == run(["build"], engines(build=lambda _: there))

    assert "models/a is there already, and whole\n" == capsys.readouterr().out


def test_build_of_a_source_needs_a_place(capsys):
    assert 2 == run(["build", "--source", "m.gguf"], engines())

    assert "--output" in capsys.readouterr().err


DESCRIPTION = {
    "bundle": {"model": "tiny", "chat template": True},
    "memory": {"cache per token": 1024},
    "inputs": {"ids": "int64 [N]", "past_key_0": "float32 [B]", "past_key_1": "float32 [B]"},
}


def test_inspect_prints_facts_by_section(capsys):
    asked = []

    def inspect(path):
        asked.append(path)
        return DESCRIPTION

    assert 0 == run(["inspect", "models/tiny"], engines(inspect=inspect))

    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [Path("models/tiny")] == asked
    assert ["chat", "template", "yes"] in shown
    assert ["cache", "per", "token", "1,024", "bytes"] in shown
    assert ["past_key_{0..1}", "float32", "[B]"] in shown


def test_inspect_prints_all_of_it_as_json(capsys):
    assert 0 == run(["inspect", "--json"], engines(inspect=lambda _: DESCRIPTION))

    assert DESCRIPTION == json.loads(capsys.readouterr().out)


def test_folding_keeps_apart_what_differs_in_more_than_a_number():
    facts = {"a_0": "x", "a_1": "y", "b_3": "x", "c": "z"}

    assert [("a_0", "x"), ("a_1", "y"), ("b_3", "x"), ("c", "z")] == list(folded(facts))

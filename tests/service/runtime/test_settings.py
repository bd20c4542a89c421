from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from service.errors import InvalidSettings
from service.runtime.settings import EngineKind, LogLevel, ModelSettings, Settings
from service.runtime.settings_sources import known_settings, load_settings
from service.speculation.completion import CompletionCancellation
from service.speculation.options import SchedulerOptions


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "outrider.toml"
        path.write_text(text)
        return path

    return write


def refusal(**sources):
    with pytest.raises(InvalidSettings) as caught:
        load_settings(**sources)
    return caught.value.field, caught.value.description


def test_settings_without_sources_are_the_defaults():
    assert Settings() == load_settings()


def test_later_source_wins_over_an_earlier_one(toml):
    file = toml("[server]\nport = 1\nhost = 'file'\n[model]\nmax_slots = 2\n")
    environment = {"OUTRIDER_SERVER_PORT": "2", "OUTRIDER_MODEL_MAX_SLOTS": "3"}
    settings = load_settings(file, environment, {"server.port": "4"})
    assert ("file", 4, 3) == (settings.server.host, settings.server.port, settings.model.max_slots)


def test_file_may_be_named_by_the_environment(toml):
    file = toml("[server]\nport = 1\n")
    assert 1 == load_settings(environment={"OUTRIDER_CONFIG": str(file)}).server.port


def test_every_kind_of_value_is_read_from_a_file(toml):
    file = toml("""
        [server]
        log_level = "debug"
        drain_seconds = 2
        [model]
        engine = "scripted"
        bundles = ["a", "name=b"]
        prompt_lookup = false
        threads = "none"
        [scheduler]
        completion_cancellation = "native-cancel"
    """)
    settings = load_settings(file)
    assert LogLevel.DEBUG is settings.server.log_level
    assert 2.0 == settings.server.drain_seconds
    assert EngineKind.SCRIPTED is settings.model.engine
    assert ("a", "name=b") == settings.model.bundles
    assert settings.model.prompt_lookup is False
    assert settings.model.threads is None
    assert CompletionCancellation.NATIVE_CANCEL is settings.scheduler.completion_cancellation


def test_every_kind_of_value_is_read_from_text():
    flags = {
        "model.engine": "onnx",
        "model.bundles": "a, name=b",
        "model.prompt_lookup": "true",
        "model.max_context": "512",
        "runtime.max_request_seconds": "none",
        "runtime.slow_consumer_seconds": "0.5",
        "model.draft_bundle": "draft",
    }
    settings = load_settings(flags=flags)
    assert EngineKind.ONNX is settings.model.engine
    assert ("a", "name=b") == settings.model.bundles
    assert settings.model.prompt_lookup is True
    assert 512 == settings.model.max_context
    assert settings.runtime.max_request_seconds is None
    assert 0.5 == settings.runtime.slow_consumer_seconds
    assert "draft" == settings.model.draft_bundle


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("server.port", "65536", "at most 65535"),
        ("server.max_message_bytes", "2147483648", "at most 2147483647"),
        ("server.drain_seconds", "1e+300", "at most 31536000.0"),
        ("model.max_slots", "99999999999", "at most 65536"),
        ("model.max_context", "99999999999", "at most 16777216"),
        ("model.threads", "100000", "at most 1024"),
        ("runtime.max_queued_requests", "99999999999", "at most 1048576"),
        ("runtime.max_outbox_messages", "99999999999", "at most 65536"),
        ("runtime.num_speculative_tokens", "99999999999", "at most 1024"),
        ("runtime.preparation_threads", "100000", "at most 1024"),
        ("runtime.max_request_seconds", "1e+300", "at most 31536000.0"),
        ("server.port", "-1", "at least 0"),
        ("server.port", "x", "an integer"),
        ("server.port", "1.5", "an integer"),
        ("server.drain_seconds", "nan", "a finite number"),
        ("server.drain_seconds", "inf", "a finite number"),
        ("server.drain_seconds", "soon", "a finite number"),
        ("model.max_slots", "0", "at least 1"),
        ("model.max_slots", "none", "an integer"),
        ("model.max_context", "1", "at least 16"),
        ("model.prompt_lookup", "yes", "true or false"),
        ("model.engine", "torch", "auto, onnx, scripted, tensorrt"),
        ("runtime.max_outbox_messages", "0", "at least 1"),
    ],
)
def test_malformed_value_is_fatal_and_named_with_its_source(key, text, reason):
    variable = "OUTRIDER_" + key.replace(".", "_").upper()
    field, description = refusal(environment={variable: text})
    assert key == field
    assert description.startswith("environment: ")
    assert reason in description
    assert text in description


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("[server]\nport = '1x'\n", "server.port", "an integer"),
        ("[server]\nport = true\n", "server.port", "an integer"),
        ("[server]\nhost = 1\n", "server.host", "a text"),
        ("[model]\nbundles = [1]\n", "model.bundles", "a list of texts"),
        ('[model]\nbundles = ["a", " "]\n', "model.bundles", "texts that are not empty"),
        ("[server]\nprot = 1\n", "server.prot", "unknown setting"),
        ("[sever]\nport = 1\n", "sever.port", "unknown setting"),
        ("port = 1\n", "port", "unknown setting"),
    ],
)
def test_wrong_entry_of_a_file_is_fatal_and_named_with_the_file(toml, text, key, reason):
    file = toml(text)
    field, description = refusal(file=file)
    assert key == field
    assert str(file) in description
    assert reason in description


def test_file_that_cannot_be_read_is_fatal(toml, tmp_path):
    missing = tmp_path / "missing.toml"
    assert str(missing) == refusal(file=missing)[0]
    assert "cannot be read" in refusal(file=toml("port ="))[1]


def test_unknown_variable_is_fatal_and_foreign_ones_are_left_alone():
    assert "OUTRIDER_PORT" == refusal(environment={"OUTRIDER_PORT": "1"})[0]
    others = {"HOME": "/", "OUTRIDER_MODELS": "/models", "OUTRIDER_CACHE": "/cache"}
    assert Settings() == load_settings(environment=others)


def test_unknown_flag_is_fatal():
    assert ("server.prot", "flag: unknown setting") == refusal(flags={"server.prot": "1"})


def test_scheduler_options_are_settings_one_by_one():
    keys = {setting.key for setting in known_settings()}
    assert {f"scheduler.{entry.name}" for entry in fields(SchedulerOptions)} <= keys


def test_scheduler_options_that_contradict_each_other_are_fatal():
    flags = {"scheduler.lookahead_blocks": "1", "scheduler.max_optimistic_branches": "0"}
    assert "scheduler.max_optimistic_branches" == refusal(flags=flags)[0]


def test_variables_of_settings_are_distinct():
    variables = [setting.variable for setting in known_settings()]
    assert len(variables) == len(set(variables))
    assert "OUTRIDER_SCHEDULER_LOOKAHEAD_BLOCKS" in variables


def is_number(setting):
    kinds = {setting.kind, *get_args(setting.kind)}
    return bool(kinds & {int, float}) and not setting.key.startswith("scheduler.")


def test_every_number_has_bounds_that_the_wire_and_the_defaults_fit():
    """Those of the scheduler are held against its options' own."""
    numbers = [setting for setting in known_settings() if is_number(setting)]
    assert 13 == len(numbers)
    for setting in numbers:
        assert setting.most <= 2**32 - 1, setting.key
        if setting.default is not None:
            assert setting.least <= setting.default <= setting.most, setting.key


@pytest.mark.parametrize(
    "name", ["max_in_flight_verifications", "max_pass_lanes", "prefill_chunk_tokens"]
)
def test_scheduler_option_beyond_the_wire_is_fatal(name):
    key = f"scheduler.{name}"
    assert key == refusal(flags={key: "99999999999"})[0]


def test_bundles_may_be_named():
    settings = ModelSettings(bundles=("plain/path", "name=other/path"))
    assert ((None, Path("plain/path")), ("name", Path("other/path"))) == settings.named_bundles()

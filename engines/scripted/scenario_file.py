"""Scenario files: TOML, checked key by key."""

from __future__ import annotations

from pathlib import Path

from engines.scripted.fault import Operation
from engines.scripted.law import EchoLaw, HashLaw, Law, ScriptLaw
from engines.scripted.model import DRAFT_RULES, ScriptedSettings
from engines.scripted.scenario import (
    AfterSteps,
    AtTime,
    CancelAfterTokens,
    CancelAtStage,
    Scenario,
    ScenarioFault,
    ScenarioRequest,
    ScenarioScheduler,
)
from engines.scripted.timetable import Timetable
from engines.scripted.toml_table import TomlTable, read_toml
from engines.scripted.vocabulary import encode
from service.errors import SettingError
from service.generation.config import (
    GenerationOverrides,
    ResolvedGenerationConfig,
    resolve_generation_config,
)
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import Tokens

STAGES = (
    "admission",
    "compatibility",
    "input",
    "execution",
    "transfer",
    "completion",
    "observation",
    "cache_persistence",
    "publication",
    "cancellation",
)
STATUSES = ("completed", "cancelled", "failed")
MODES = ("synchronous", "asynchronous")
LAWS = ("hash", "echo")
_SETTINGS: dict[str, type[int | float]] = {
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "min_p": float,
    "top_a": float,
    "typical_p": float,
    "repetition_penalty": float,
    "repeat_last_n": int,
    "frequency_penalty": float,
    "presence_penalty": float,
    "min_new_tokens": int,
}
_BY_THE_PLAYER = {Operation.OPEN, Operation.CLOSE}
OPERATIONS = tuple(where.value for where in Operation if where not in _BY_THE_PLAYER)
CANCELLATIONS = tuple(mode.value for mode in CompletionCancellation)


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario.

    Raises:
        InvalidSettings: the first thing that is wrong, by file and key.
    """
    file = read_toml(path)
    scenario = Scenario(
        title=file.take("title", str),
        settings=_settings(file.table("engine"), file.tables("script")),
        scheduler=_scheduler(file.table("scheduler")),
        requests=tuple(_request(table) for table in file.tables("request")),
        faults=tuple(_fault(table) for table in file.tables("fault")),
    )
    file.finish()
    _require_names(file, scenario)
    return scenario


def _settings(engine: TomlTable, scripts: tuple[TomlTable, ...]) -> ScriptedSettings:
    law: Law = HashLaw() if engine.choice("law", LAWS, "hash") == "hash" else EchoLaw()
    if scripts:
        law = ScriptLaw(tuple(_script(table) for table in scripts), law)
    is_synchronous = engine.choice("mode", MODES, MODES[0]) == MODES[0]
    usual = engine.number("pass_seconds", float, 0.0 if is_synchronous else 1.0, 0.0)
    timetable = Timetable(usual, _seconds_by_pass(engine.table("seconds_of_pass")))
    try:
        settings = ScriptedSettings(
            law=law,
            max_slots=engine.number("slots", int, 8, 1),
            max_context=engine.number("context", int, 256, 1),
            max_pass_lanes=engine.number("pass_lanes", int, 8, 1),
            max_pass_rows=engine.number("pass_rows", int, 1024, 1),
            timetable=timetable,
            is_synchronous=is_synchronous,
        )
    except ValueError as error:
        raise engine.refuse("seconds_of_pass", str(error)) from error
    engine.finish()
    return settings


def _seconds_by_pass(table: TomlTable) -> dict[int, float]:
    seconds: dict[int, float] = {}
    for key in table.untaken():
        if not key.isdecimal() or key == "0":
            raise table.refuse(key, "is not the number of a pass, which count from 1")
        seconds[int(key)] = table.number(key, float, 0.0, 0.0)
    return seconds


def _script(table: TomlTable) -> tuple[Tokens, Tokens]:
    script = encode(table.take("prompt", str)), encode(table.take("output", str))
    table.finish()
    return script


def _scheduler(table: TomlTable) -> ScenarioScheduler:
    default = CompletionCancellation.QUARANTINE_UNTIL_COMPLETE.value
    scheduler = ScenarioScheduler(
        lookahead=table.take("lookahead", bool, default=True),
        passes_in_flight=table.number("passes_in_flight", int, 1, 1),
        pass_lanes=table.number("pass_lanes", int, 8, 1),
        prefill_chunk=table.number("prefill_chunk", int, 128, 1),
        timeout_seconds=table.number("timeout_seconds", float, 30.0, 0.001),
        cancellation=CompletionCancellation(table.choice("cancellation", CANCELLATIONS, default)),
    )
    table.finish()
    return scheduler


def _request(table: TomlTable) -> ScenarioRequest:
    request = ScenarioRequest(
        name=table.take("name", str),
        prompt=_prompt(table),
        arrival=_arrival(table),
        max_tokens=table.number("max_tokens", int, 24, 1),
        draft=table.choice("draft", DRAFT_RULES) if table.has("draft") else None,
        width=table.number("width", int, 4, 1),
        is_fixed=table.take("fixed_width", bool, default=False),
        lookahead=table.take("lookahead", bool, default=True),
        config=_config(table),
        seed=table.number("seed", int, 0, 0),
        cancel=_cancel(table),
        status=table.choice("ends", STATUSES, STATUSES[0]),
        output=table.optional("output", str),
    )
    table.finish()
    return request


def _prompt(table: TomlTable) -> Tokens:
    prompt = encode(table.take("prompt", str))
    if not prompt:
        raise table.refuse("prompt", "must not be empty")
    return prompt


def _arrival(table: TomlTable) -> AfterSteps | AtTime:
    if table.has("arrives_at"):
        if table.has("arrives_after"):
            raise table.refuse("arrives_at", "excludes arrives_after")
        return AtTime(table.number("arrives_at", float, 0.0, 0.0))
    return AfterSteps(table.number("arrives_after", int, 0, 0))


def _config(table: TomlTable) -> ResolvedGenerationConfig:
    values = {name: table.optional(name, kind) for name, kind in _SETTINGS.items()}
    overrides = GenerationOverrides(**values)  # type: ignore[arg-type]  # as the table says
    try:
        return resolve_generation_config(GenerationOverrides(do_sample=False), overrides)
    except SettingError as error:
        raise table.refuse(error.field, error.rule) from error


def _cancel(table: TomlTable) -> CancelAfterTokens | CancelAtStage | None:
    cancel = table.table("cancel")
    if not cancel.untaken():
        return None
    if not cancel.has("stage"):
        after = CancelAfterTokens(cancel.number("after_tokens", int, 0, 1))
        cancel.finish()
        return after
    at = CancelAtStage(cancel.choice("stage", STAGES), cancel.number("nth", int, 1, 1))
    cancel.finish()
    return at


def _fault(table: TomlTable) -> ScenarioFault:
    where = table.choice("where", OPERATIONS)
    fault = ScenarioFault(
        request=table.optional("request", str),
        where=Operation(where),
        nth=table.number("nth", int, 1, 1),
        times=table.number("times", int, 1, 1),
        message=table.take("message", str, f"scripted fault in {where}"),
    )
    table.finish()
    return fault


def _require_names(file: TomlTable, scenario: Scenario) -> None:
    """Refuse requests of one name, and faults of requests that do not exist."""
    names = [request.name for request in scenario.requests]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise file.refuse(f"request[{index}].name", f"{name!r} is taken")
    for index, fault in enumerate(scenario.faults):
        if fault.request is not None and fault.request not in names:
            raise file.refuse(f"fault[{index}].request", f"no request is named {fault.request!r}")

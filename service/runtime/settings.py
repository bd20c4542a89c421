"""Every setting of the server: one frozen object, read from its sources by `settings_sources`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from service.speculation.options import SchedulerOptions

_YEAR = 365 * 86_400.0
_MOST_BYTES = 2**31 - 1  # what gRPC takes as an integer
_MOST_CONTEXT = 2**24
_MOST_REQUESTS = 2**20
_MOST_SLOTS = 2**16
_MOST_MESSAGES = 2**16
_MOST_PROPOSALS = 2**10
_MOST_THREADS = 2**10


def bounded(default: Any, least: float, most: float) -> Any:
    """Declare a setting with its default and the values that it may have."""
    return field(default=default, metadata={"least": least, "most": most})


class EngineKind(Enum):
    """Which engine runs the models; `auto` takes the best that this machine has."""

    AUTO = "auto"
    ONNX = "onnx"
    SCRIPTED = "scripted"
    TENSORRT = "tensorrt"


class LogLevel(Enum):
    """The least important log line that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to listen and how to go; port 0 is any free one, and times are seconds."""

    host: str = "127.0.0.1"
    port: int = bounded(50051, 0, 65535)
    max_message_bytes: int = bounded(16 * 2**20, 1024, _MOST_BYTES)
    drain_seconds: float = bounded(30.0, 0.0, _YEAR)
    log_level: LogLevel = LogLevel.INFO


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What to load.

    Each of `bundles` is a directory, or `name=directory`; the first is the
    default model, and with none it is the built-in one. `draft_bundle` drafts
    for it. None leaves a number to the engine.
    """

    engine: EngineKind = EngineKind.AUTO
    bundles: tuple[str, ...] = ()
    draft_bundle: str | None = None
    prompt_lookup: bool = True
    max_slots: int = bounded(8, 1, _MOST_SLOTS)
    max_context: int | None = bounded(None, 16, _MOST_CONTEXT)
    threads: int | None = bounded(None, 1, _MOST_THREADS)

    def named_bundles(self) -> tuple[tuple[str | None, Path], ...]:
        """Return each bundle's name, if it is given one, and its directory."""
        pairs = (bundle.rpartition("=") for bundle in self.bundles)
        return tuple((name or None, Path(directory)) for name, _, directory in pairs)


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Bounds of requests, those of queues for each model; times are seconds.

    `num_speculative_tokens` is the width of a request whose width is fixed and
    that names none. A reader may leave its outbox full for
    `slow_consumer_seconds`.
    """

    max_queued_requests: int = bounded(256, 0, _MOST_REQUESTS)
    max_outbox_messages: int = bounded(64, 1, _MOST_MESSAGES)
    slow_consumer_seconds: float = bounded(10.0, 0.0, _YEAR)
    max_request_seconds: float | None = bounded(None, 0.001, _YEAR)
    num_speculative_tokens: int = bounded(4, 1, _MOST_PROPOSALS)
    preparation_threads: int = bounded(2, 1, _MOST_THREADS)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where metrics are served; no port, no metrics."""

    host: str = "127.0.0.1"
    port: int | None = bounded(None, 0, 65535)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, by section."""

    server: ServerSettings = field(default_factory=ServerSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)

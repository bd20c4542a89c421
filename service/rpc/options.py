"""How the gRPC server listens: its settings, and the channel arguments they amount to."""

from __future__ import annotations

from dataclasses import dataclass

from service.runtime.settings import ServerSettings

_UNLIMITED_MILLISECONDS = 2**31 - 1
_MILLISECONDS = 1000
_NO_LIMIT = -1
_USUAL = ServerSettings()


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Settings of the listener; times are seconds.

    `port` 0 takes a free one. A connection older than `max_connection_age_seconds`
    is asked to reconnect, which lets a balancer move it; what runs on it goes on.
    """

    host: str = _USUAL.host
    port: int = _USUAL.port
    max_message_bytes: int = _USUAL.max_message_bytes
    max_concurrent_calls: int = 10_000
    max_connection_age_seconds: float = 3600.0
    keepalive_seconds: float = 30.0
    keepalive_timeout_seconds: float = 20.0
    min_client_ping_seconds: float = 10.0
    drain_grace_seconds: float = _USUAL.drain_seconds
    reflection: bool = True

    @property
    def address(self) -> str:
        """Return where to listen, as gRPC spells it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def channel_arguments(options: ServerOptions) -> tuple[tuple[str, int], ...]:
    """Return the gRPC channel arguments of a server.

    gRPC ignores a key that it does not know, so a test looks for each of them
    in the library. Ports are not shared: a second server must fail, not take
    half of the connections. The limit on messages holds for what clients send:
    an answer is bounded by its request, and failing it would waste the work.
    """
    return (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", options.max_message_bytes),
        ("grpc.max_send_message_length", _NO_LIMIT),
        ("grpc.keepalive_time_ms", _milliseconds(options.keepalive_seconds)),
        ("grpc.keepalive_timeout_ms", _milliseconds(options.keepalive_timeout_seconds)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            _milliseconds(options.min_client_ping_seconds),
        ),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_connection_age_ms", _milliseconds(options.max_connection_age_seconds)),
        ("grpc.max_connection_age_grace_ms", _UNLIMITED_MILLISECONDS),
    )


def _milliseconds(seconds: float) -> int:
    return min(round(seconds * _MILLISECONDS), _UNLIMITED_MILLISECONDS)

from pathlib import Path

import grpc
import pytest

from service.rpc.options import ServerOptions, channel_arguments

CORE = Path(grpc.__file__).parent / "_cython"


def is_known_to_grpc(key: str) -> bool:
    """Whether gRPC's compiled core reads this channel argument: it ignores any other."""
    (library,) = CORE.glob("cygrpc*.so")
    return key.encode() + b"\0" in library.read_bytes()


@pytest.mark.parametrize("key", [key for key, _ in channel_arguments(ServerOptions())])
def test_channel_argument_exists(key: str):
    assert is_known_to_grpc(key)


def test_misspelt_channel_argument_would_be_noticed():
    """The key that vLLM sets, and that gRPC does not have."""
    assert not is_known_to_grpc("grpc.http2.min_recv_ping_interval_without_data_ms")


def test_clients_may_ping_every_ten_seconds():
    """Case B56: a ping during a long silence costs no connection."""
    arguments = dict(channel_arguments(ServerOptions()))
    assert (10_000, 0, 1) == (
        arguments["grpc.http2.min_ping_interval_without_data_ms"],
        arguments["grpc.http2.max_ping_strikes"],
        arguments["grpc.keepalive_permit_without_calls"],
    )


def test_old_connections_are_moved_and_their_calls_not_cut():
    """Case B69."""
    arguments = dict(channel_arguments(ServerOptions(max_connection_age_seconds=60.0)))
    assert (60_000, 2**31 - 1) == (
        arguments["grpc.max_connection_age_ms"],
        arguments["grpc.max_connection_age_grace_ms"],
    )


def test_message_limit_holds_for_what_clients_send():
    """An answer is bounded by its request: failing it at the end would waste the work."""
    arguments = dict(channel_arguments(ServerOptions(max_message_bytes=1234)))
    keys = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
    assert [1234, -1] == [arguments[key] for key in keys]


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", "127.0.0.1:50051"), ("::1", "[::1]:50051")]
)
def test_address_is_spelled_for_grpc(host: str, expected: str):
    assert expected == ServerOptions(host=host).address

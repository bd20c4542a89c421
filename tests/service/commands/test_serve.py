"""`outrider serve` as people run it: a process, its lines and its statuses."""

import signal
import socket

import grpc
import pytest

from outrider.v1.model_service_pb2 import ListModelsRequest
from outrider.v1.model_service_pb2_grpc import ModelServiceStub
from tests.service.commands.process import outrider, serving


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_answers_until_a_signal_and_ends_with_status_zero(number):
    with serving() as server, grpc.insecure_channel(server.address) as channel:
        models = ModelServiceStub(channel).ListModels(ListModelsRequest(), timeout=30).models

        assert server.models == [model.name for model in models]
        assert 0 == server.stop(number)


def test_serve_on_a_port_in_use_ends_with_status_one_and_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        ended = outrider("serve", "--engine", "scripted", "--port", port)

    reason = "the port is in use or not permitted, or the host is not this machine"
    assert (1, "", f"outrider: cannot listen on 127.0.0.1:{port}: {reason}\n") == (
        ended.returncode,
        ended.stdout,
        ended.stderr,
    )


@pytest.mark.parametrize(
    ("flags", "status", "complaint"),
    [
        (["--set", "server.prot=1"], 2, "setting server.prot: flag: unknown setting"),
        (["--port", "http"], 2, "setting server.port: flag: must be an integer, got 'http'"),
        (["--config", "/none.toml"], 2, "setting /none.toml: cannot be read"),
        (["--bundle", "/none"], 1, "/none: holds no bundle"),
        (["--warp"], 2, "unrecognized arguments: --warp"),
    ],
)
def test_serve_refuses_in_one_line_that_says_what_and_where(flags, status, complaint):
    ended = outrider("serve", *flags)

    assert (status, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert complaint in ended.stderr

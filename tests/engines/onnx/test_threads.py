"""The shared threads, in a process of their own: their number is set once."""

import subprocess
import sys


def test_threads_cannot_be_changed_once_configured() -> None:
    program = (
        "from engines.onnx.threads import configure_threads\n"
        "from service.errors import EngineError\n"
        "configure_threads(2)\n"
        "configure_threads(2)\n"
        "try:\n"
        "    configure_threads(3)\n"
        "except EngineError as refused:\n"
        "    print(refused)\n"
    )

    result = subprocess.run(  # noqa: S603 - our own interpreter and source
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert "the process already computes with 2 threads, not 3\n" == result.stdout

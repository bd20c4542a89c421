"""The default model, loaded once for all tests on it."""

import pytest

from benchmarks.prompts import spec_bench
from engines.onnx.target import OnnxTarget
from tests.model.loaded import LoadedDefault, load_default
from tests.model.oracle import continuation

HEAD_CHARACTERS = 320
"""Of each prompt, so that more than a hundred of them are read in seconds."""


@pytest.fixture(scope="session")
def model() -> LoadedDefault:
    """The default model's bundle on ONNX Runtime; `make model` builds it."""
    return load_default(max_slots=8, max_context=512)


@pytest.fixture
def target(model) -> OnnxTarget:
    """A target on the session's decoder, all its slots free."""
    return OnnxTarget(model.decoder)


@pytest.fixture(scope="session")
def prompts(model) -> tuple[tuple[int, ...], ...]:
    """More than a hundred prompts of 13 kinds, as the chat template writes them."""
    return tuple(model.chat(prompt.text[:HEAD_CHARACTERS]) for prompt in spec_bench())


@pytest.fixture(scope="session")
def alone(model, prompts) -> tuple[tuple[int, ...], ...]:
    """What the target alone says to each prompt, computed token by token."""
    return tuple(continuation(model, prompt) for prompt in prompts)

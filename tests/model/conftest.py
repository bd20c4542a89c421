"""The default model as the server loads it, once for all tests on it."""

import pytest

from benchmarks.prompts import spec_bench
from service.__main__ import load_models
from service.runtime.models import LoadedModel
from service.runtime.request import ChatMessage
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.speculation.contract import Tokens
from tests.model.oracle import continuation

HEAD_CHARACTERS = 320
"""Of each prompt, so that more than a hundred of them are read in seconds."""

SETTINGS = Settings(
    model=ModelSettings(engine=EngineKind.ONNX, max_slots=8, max_context=512, threads=2)
)


@pytest.fixture(scope="session")
def model() -> LoadedModel:
    """The default model on ONNX Runtime; `make model` builds its bundle."""
    (loaded,) = load_models(SETTINGS, print)
    return loaded


@pytest.fixture(scope="session")
def texts() -> tuple[str, ...]:
    """More than a hundred user turns of 13 kinds."""
    return tuple(prompt.text[:HEAD_CHARACTERS] for prompt in spec_bench())


@pytest.fixture(scope="session")
def prompts(model, texts) -> tuple[Tokens, ...]:
    """The same turns as the chat template writes them."""
    turns = [(ChatMessage("user", text),) for text in texts]
    return tuple(model.text.encode_rendered(model.text.render(turn)) for turn in turns)


@pytest.fixture(scope="session")
def alone(model, prompts) -> tuple[Tokens, ...]:
    """What the target alone says to each prompt, computed token by token."""
    decoder, ends = model.target.decoder, model.eos_token_ids
    return tuple(continuation(decoder, prompt, ends) for prompt in prompts)

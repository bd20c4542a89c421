"""The default model as the server loads it, once for all tests on it."""

import pytest

from benchmarks.bare import BareLoop, chat, decoder_of
from benchmarks.prompts import spec_bench
from service.__main__ import load_models
from service.runtime.models import LoadedModel
from service.runtime.settings import EngineKind, ModelSettings, Settings
from service.speculation.contract import Tokens
from tests.model.lanes import MAX_TOKENS

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
    return tuple(chat(model, text) for text in texts)


@pytest.fixture(scope="session")
def alone(model, prompts) -> tuple[Tokens, ...]:
    """What the target alone says to each prompt, token by token; the core has no part in it."""
    loop = BareLoop(decoder_of(model), model.eos_token_ids)
    return tuple(loop.say(prompt, MAX_TOKENS) for prompt in prompts)

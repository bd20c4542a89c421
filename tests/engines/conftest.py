"""Bundles that tests of engines share."""

from pathlib import Path

import pytest

from engines.build.default_model import default_bundle_path
from engines.build.synthetic import build_tiny_bundle
from engines.bundle.bundle import Bundle, load_bundle


@pytest.fixture(scope="session")
def tiny_bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A tiny random model in the default form."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_bundle(path)
    return load_bundle(path)


@pytest.fixture(scope="session")
def default_bundle() -> Bundle:
    """The default model, which `make model` builds."""
    path: Path = default_bundle_path()
    return load_bundle(path)

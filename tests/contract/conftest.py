"""Every engine and every proposer, as parametrised fixtures."""

import pytest

from service.speculation.contract import Target
from tests.contract.engines import ENGINES, SLOW_ENGINES, EngineCase, SlowEngineCase
from tests.contract.proposers import PROPOSERS, ProposerCase


@pytest.fixture(params=ENGINES, ids=lambda case: case.name)
def engine(request: pytest.FixtureRequest) -> EngineCase:
    """An engine under test."""
    case: EngineCase = request.param
    return case


@pytest.fixture
def target(engine: EngineCase) -> Target:
    """A target with all its slots free."""
    return engine.build()


@pytest.fixture(params=SLOW_ENGINES, ids=lambda case: case.name)
def slow(request: pytest.FixtureRequest) -> SlowEngineCase:
    """An engine whose passes can outlive a wait."""
    case: SlowEngineCase = request.param
    return case


@pytest.fixture(params=PROPOSERS, ids=lambda case: case.name)
def drafter(request: pytest.FixtureRequest) -> ProposerCase:
    """A proposer under test."""
    case: ProposerCase = request.param
    return case

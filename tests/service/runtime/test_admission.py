import traceback

import pytest

from service.errors import Draining
from service.runtime.admission import Admission
from tests.service.runtime.doubles import DrivenEngine, loaded_model, request


def test_submission_wakes_the_engine():
    engine = DrivenEngine(loaded_model())
    engine.submit(request())
    assert 1 == engine.wakes


def test_door_that_shuts_during_preparation_refuses_the_ticket():
    engine = DrivenEngine(loaded_model())
    with engine.admission.arrival():
        engine.admission.close(Draining())
        with pytest.raises(Draining):
            engine.admission.submit(engine.ticket(request()))
    assert 0 == len(engine.admission)


def test_shut_door_refuses_for_ever_without_growing():
    admission = Admission(1, 1, lambda: None)
    admission.close(Draining())
    depths = []
    for _ in range(3):
        with pytest.raises(Draining) as caught, admission.arrival():
            pass
        depths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert 1 == len({*depths})


def test_ticket_in_line_when_the_door_shuts_is_still_handed_out():
    engine = DrivenEngine(loaded_model())
    ticket = engine.submit(request())
    engine.admission.close(Draining())
    assert engine.admission.take() is ticket

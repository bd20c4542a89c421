"""The decoder's bookkeeping: what it refuses, what a failure leaves, what memory it takes."""

import numpy as np
import pytest

from engines.onnx.bindings import RangeBinding
from engines.onnx.decoder import CacheMemory, Decoder
from engines.onnx.passes import LaneInput
from service.errors import EngineError, NoFreeSlot, UnknownSlot

TOKENS = tuple(int(token) for token in np.random.default_rng(5).integers(0, 265, 300))


@pytest.fixture
def decoder(tiny_bundle) -> Decoder:
    return Decoder(tiny_bundle, max_slots=3, max_context=300)


def feed(decoder: Decoder, slot: int, tokens: tuple[int, ...], wanted: int = 1) -> np.ndarray:
    """Append tokens to a lane and return its last rows, copied."""
    start = decoder.length(slot)
    for first in range(0, max(len(tokens) - decoder.max_rows, 0), decoder.max_rows):
        chunk = tokens[first : first + decoder.max_rows]
        decoder.forward([LaneInput(slot, start + first, chunk, 0)])
    rest = tokens[decoder.length(slot) - start :]
    return decoder.forward([LaneInput(slot, decoder.length(slot), rest, wanted)])[0].copy()


def test_forward_appends_and_gives_the_wanted_rows(decoder) -> None:
    slots = [decoder.open(), decoder.open()]

    logits = decoder.forward(
        [LaneInput(slots[1], 0, TOKENS[:5], 3), LaneInput(slots[0], 0, TOKENS[:2], 0)]
    )

    assert [(3, 265), (0, 265)] == [rows.shape for rows in logits]
    assert (2, 5) == (decoder.length(slots[0]), decoder.length(slots[1]))


def test_forward_from_an_earlier_start_truncates(decoder) -> None:
    slot = decoder.open()
    feed(decoder, slot, TOKENS[:9])
    expected = feed(decoder, decoder.open(), TOKENS[:4])

    (rows,) = decoder.forward([LaneInput(slot, 3, TOKENS[3:4], 1)])

    assert (expected == rows).all()
    assert 4 == decoder.length(slot)


@pytest.mark.parametrize(
    ("start", "rows", "wanted"),
    [(-1, 1, 1), (3, 1, 1), (0, 0, 0), (0, 129, 1), (0, 2, 3), (0, 2, -1)],
)
def test_forward_of_an_impossible_lane_changes_nothing(decoder, start, rows, wanted) -> None:
    good, bad = decoder.open(), decoder.open()
    feed(decoder, good, TOKENS[:2])
    feed(decoder, bad, TOKENS[:2])

    with pytest.raises(EngineError):
        decoder.forward(
            [LaneInput(good, 1, TOKENS[:1], 1), LaneInput(bad, start, TOKENS[:rows], wanted)]
        )

    assert (2, 2) == (decoder.length(good), decoder.length(bad))


def test_forward_past_the_context_is_refused(decoder) -> None:
    slot = decoder.open()
    feed(decoder, slot, TOKENS)

    with pytest.raises(EngineError, match="would hold 301 of 300"):
        decoder.forward([LaneInput(slot, 300, (1,), 1)])


def test_forward_of_one_lane_twice_is_refused(decoder) -> None:
    slot = decoder.open()

    with pytest.raises(EngineError, match="two lanes of one slot"):
        decoder.forward([LaneInput(slot, 0, (1,), 1), LaneInput(slot, 0, (2,), 1)])


def test_forward_of_a_closed_slot_is_refused(decoder) -> None:
    slot = decoder.open()
    decoder.close(slot)

    with pytest.raises(UnknownSlot):
        decoder.forward([LaneInput(slot, 0, (1,), 1)])


def test_slots_beyond_the_setting_are_refused(decoder) -> None:
    for _ in range(3):
        decoder.open()

    with pytest.raises(NoFreeSlot):
        decoder.open()


@pytest.mark.parametrize("context", [0, 1025])
def test_context_that_the_model_has_not_is_refused(tiny_bundle, context) -> None:
    with pytest.raises(EngineError, match="is not within 1 to 1024"):
        Decoder(tiny_bundle, max_slots=1, max_context=context)


def test_failure_of_the_runtime_leaves_each_lane_at_its_start(decoder, monkeypatch) -> None:
    slot = decoder.open()
    expected = feed(decoder, slot, TOKENS[:9])

    def fail(binding: RangeBinding) -> None:
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patched:
        patched.setattr(RangeBinding, "run", fail)
        with pytest.raises(EngineError, match="out of luck"):
            decoder.forward([LaneInput(slot, 8, (1, 2), 1)])

    assert 8 == decoder.length(slot)
    assert (expected == feed(decoder, slot, TOKENS[8:9])).all()


def test_logits_in_a_given_buffer_survive_the_next_pass(decoder) -> None:
    slot = decoder.open()
    buffer = np.zeros((4, 265), np.float32)
    (rows,) = decoder.forward([LaneInput(slot, 0, TOKENS[:3], 2)], buffer)
    kept = rows.copy()

    decoder.forward([LaneInput(slot, 3, TOKENS[3:5], 2)])

    assert (2, 265) == rows.shape
    assert rows.base is buffer
    assert (kept == buffer[:2]).all()
    assert not buffer[2:].any()


def test_memory_grows_with_the_longest_lane_and_is_given_back(decoder, tiny_bundle) -> None:
    per_token = tiny_bundle.manifest.geometry.cache_bytes_per_token
    limit = 3 * 448 * per_token
    slots = [decoder.open(), decoder.open()]
    feed(decoder, slots[0], TOKENS[:10])
    assert CacheMemory(3 * 64 * per_token, limit) == decoder.memory

    feed(decoder, slots[1], TOKENS)
    assert 3 * 320 * per_token <= decoder.memory.reserved_bytes <= limit

    decoder.close(slots[1])
    assert CacheMemory(3 * 64 * per_token, limit) == decoder.memory


def test_memory_never_exceeds_its_limit(tiny_bundle) -> None:
    """Full lanes side by side with the widest pass reserve most."""
    decoder = Decoder(tiny_bundle, max_slots=3, max_context=300)
    slots = [decoder.open() for _ in range(3)]
    for slot in slots:
        feed(decoder, slot, TOKENS)

    decoder.forward(
        [
            LaneInput(slot, 300 - rows, TOKENS[:rows], 1)
            for slot, rows in zip(slots, (1, 1, 40), strict=True)
        ]
    )
    decoder.forward([LaneInput(slots[1], 172, TOKENS[:128], 1)])

    assert decoder.memory.reserved_bytes <= decoder.memory.limit_bytes

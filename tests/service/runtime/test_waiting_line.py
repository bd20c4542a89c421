from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from service.runtime.waiting_line import WaitingLine, retry_seconds


@dataclass(frozen=True)
class Entry:
    caller: str
    number: int


def line_of(*entries):
    line = WaitingLine()
    for entry in entries:
        line.join(entry)
    return line


def taken(line):
    return [entry.caller + str(entry.number) for entry in iter(line.take, None)]


def test_line_of_one_caller_is_first_in_first_out():
    assert ["a1", "a2", "a3"] == taken(line_of(Entry("a", 1), Entry("a", 2), Entry("a", 3)))


def test_line_of_several_callers_takes_turns():
    """A caller with one request does not wait behind all of another's."""
    line = line_of(Entry("a", 1), Entry("a", 2), Entry("a", 3), Entry("b", 1), Entry("c", 1))
    assert ["a1", "b1", "c1", "a2", "a3"] == taken(line)


def test_line_without_some_entries_keeps_the_order_of_the_others():
    line = line_of(Entry("a", 1), Entry("a", 2), Entry("b", 1), Entry("a", 3))
    left = line.remove(lambda entry: entry.number == 1)
    assert ["a1", "b1"] == [entry.caller + str(entry.number) for entry in left]
    assert 2 == len(line)
    assert ["a2", "a3"] == taken(line)


@given(st.lists(st.sampled_from("abc")), st.data())
def test_line_hands_out_each_entry_once_and_in_its_callers_order(callers, data):
    entries = [Entry(caller, number) for number, caller in enumerate(callers)]
    line = line_of(*entries)
    removed = data.draw(st.sets(st.integers(0, max(0, len(entries) - 1))))
    gone = line.remove(lambda entry: entry.number in removed)
    assert len(entries) - len(gone) == len(line)
    out = list(iter(line.take, None))
    assert {*entries} == {*gone, *out}
    for caller in "abc":
        numbers = [entry.number for entry in out if entry.caller == caller]
        assert sorted(numbers) == numbers


def test_retry_advice_follows_the_mean_time_in_a_slot_within_bounds():
    assert 1.0 == retry_seconds(None, 8)
    assert 2.0 == retry_seconds(16.0, 8)
    assert 0.1 == retry_seconds(0.0, 8)
    assert 60.0 == retry_seconds(10_000.0, 1)

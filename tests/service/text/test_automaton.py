from hypothesis import given
from hypothesis import strategies as st

from service.text.automaton import ROOT, Scan, TextAutomaton

letters = st.text(alphabet="ab", max_size=24)
texts = st.lists(st.text(alphabet="ab", min_size=1, max_size=5), min_size=1, max_size=4)


def first_match(text, sought):
    """Return where the first match ends up: its start and the text, by trying every end."""
    for end in range(1, len(text) + 1):
        if found := [one for one in sought if text[:end].endswith(one)]:
            longest = max(found, key=len)
            return end - len(longest), longest
    return None


def longest_open_prefix(text, sought):
    prefixes = {one[:length] for one in sought for length in range(len(one))}
    return max((prefix for prefix in prefixes if text.endswith(prefix)), key=len)


def read(automaton, pieces):
    released, node = "", ROOT
    for piece in pieces:
        scan = automaton.scan(node, piece)
        released, node = released + scan.released, scan.node
        if scan.match is not None:
            return released, scan
    return released, Scan("", node)


@given(sought=texts, pieces=st.lists(letters, max_size=5))
def test_scan_finds_what_a_search_of_every_end_finds(sought, pieces):
    """However the text is cut, and with dense overlaps: two letters only."""
    automaton, whole = TextAutomaton(sought), "".join(pieces)
    released, last = read(automaton, pieces)

    expected = first_match(whole, sought)
    if expected is None:
        held = longest_open_prefix(whole, sought)
        assert (whole, held) == (released + automaton.held(last.node), automaton.held(last.node))
    else:
        start, text = expected
        assert (whole[:start], sought.index(text)) == (released, last.match)


def test_scan_releases_a_near_match_once_it_failed():
    automaton = TextAutomaton(["abcd"])
    first = automaton.scan(ROOT, "abc")
    second = automaton.scan(first.node, "abcX")

    assert ("", "abc") == (first.released, automaton.held(first.node))
    assert ("abcabcX", "") == (second.released, automaton.held(second.node))


def test_scan_holds_only_the_longest_open_prefix():
    automaton = TextAutomaton(["aab"])
    scan = automaton.scan(ROOT, "aaaa")

    assert ("aa", "aa") == (scan.released, automaton.held(scan.node))


def test_scan_of_a_match_stops_there():
    assert Scan("x", ROOT, 0) == TextAutomaton(["ab"]).scan(ROOT, "xabyabz")


def test_scan_prefers_what_is_complete_first():
    assert Scan("a", ROOT, 1) == TextAutomaton(["abcd", "bc"]).scan(ROOT, "abcd")


def test_scan_prefers_the_longest_of_those_complete_together():
    assert Scan("", ROOT, 1) == TextAutomaton(["b", "ab"]).scan(ROOT, "ab")


def test_scan_of_equal_texts_reports_the_first():
    assert Scan("", ROOT, 0) == TextAutomaton(["a", "a"]).scan(ROOT, "a")


def test_scan_without_texts_releases_everything():
    assert Scan("anything", ROOT) == TextAutomaton(()).scan(ROOT, "anything")


def test_scan_of_nothing_keeps_what_is_held():
    automaton = TextAutomaton(["ab"])
    held = automaton.scan(ROOT, "a").node

    assert Scan("", held) == automaton.scan(held, "")


def test_scan_of_a_long_text_takes_each_character_once():
    """A near-match at every place falls back less often than it went forward."""

    class CountingAutomaton(TextAutomaton):
        steps = 0

        def _next(self, node, character):
            self.steps += 1
            return super()._next(node, character)

    automaton = CountingAutomaton(["a" * 500 + "b"])
    automaton.steps = 0
    read(automaton, ["a" * 10] * 1000)

    assert 10_000 == automaton.steps

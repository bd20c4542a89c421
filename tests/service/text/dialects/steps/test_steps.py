"""The small steps: exact texts, heads and growing texts."""

import re

import pytest

from service.generation.events import TextDelta
from service.text.dialects.steps.header import MAX_CHARACTERS, Header
from service.text.dialects.steps.literals import OneOf, Peek
from service.text.dialects.steps.progress import NOTHING, Broken, Named, Next
from service.text.dialects.steps.prose import Prose

HEAD = Header("]", re.compile(r"(?P<name>\w+)(?:#(?P<id>\w+))?|(?P<channel>-)"), "call", {"-": "b"})


def play(step, pieces):
    """Return how a step went on after the pieces, and all that it found."""
    found = ()
    for place, piece in enumerate(pieces):
        progress = step.read(piece)
        found += progress.found
        if isinstance(progress.then, Next | Broken):
            rest = "".join(pieces[place + 1 :])
            if isinstance(progress.then, Next):
                return progress.then.step, progress.then.rest + rest, found
            return "broken", "", found
        step = progress.then
    return "open", "", found


@pytest.mark.parametrize("split", [list, lambda text: [text]], ids=["letters", "whole"])
@pytest.mark.parametrize(
    ("step", "text", "then", "rest"),
    [
        (OneOf({"</a>": "x", "<b>": "y"}), " \n</a>z", "x", "z"),
        (OneOf({"</a>": "x", "<b>": "y"}), "<b>", "y", ""),
        (OneOf({"</a>": "x", "<b>": "y"}), "</b>", "broken", ""),
        (OneOf({"</a>": "x"}), "< /a>", "broken", ""),
        (OneOf({"</a>": "x"}), " </", "open", ""),
        (Peek({"{": "x"}), " {}", "x", "{}"),
        (Peek({"{": "x"}, otherwise="y"), "\nz", "y", "z"),
        (Peek({"{": "x"}), "z", "broken", ""),
        (Peek({"{": "x"}, otherwise="y"), " ", "open", ""),
        (HEAD, "name]{}", "call", "{}"),
        (HEAD, "-]x", "b", "x"),
        (HEAD, "]x", "broken", ""),
        (HEAD, "?]x", "broken", ""),
        (HEAD, "n" * (MAX_CHARACTERS - 1) + "]x", "call", "x"),
        (HEAD, "n" * MAX_CHARACTERS + "]x", "broken", ""),
    ],
)
def test_step_goes_on_where_its_text_ends(step, text, then, rest, split):
    assert (then, rest) == play(step, split(text))[:2]


def test_head_tells_the_name_and_the_models_own_id():
    assert (Named("name", "7"),) == play(HEAD, list("name#7]"))[2]
    assert (Named("name"),) == play(HEAD, list("name]"))[2]


@pytest.mark.parametrize(
    ("is_exact", "text"), [(True, " \na b\n "), (False, "a b")], ids=["exact", "trimmed"]
)
def test_white_space_beside_markers_is_text_only_where_a_dialect_frames_texts(is_exact, text):
    step, rest, found = play(
        Prose(TextDelta, {"<x>": "next"}, is_exact), [" ", "\na ", "b\n", " <", "x>\n"]
    )

    assert ("next", "\n") == (step, rest)
    assert text == "".join(delta.text for delta in found)


def test_growing_texts_share_their_beginning():
    before = NOTHING + "a" + "" + "b"
    one, other = before + "c", before + "d"

    assert ("ab", "abc", "abd", "") == (str(before), str(one), str(other), str(NOTHING))

"""Which threads prepare a request."""

import pytest

from service.runtime.request import ChatPrompt, TextPrompt, TokenPrompt
from service.runtime.work import LONG_CHARACTERS, Effort, effort_of
from service.text.conversation import ChatMessage
from service.text.language import Regex
from service.text.tools import Tool
from tests.service.runtime.doubles import request

LONG = "x" * LONG_CHARACTERS


def chat(content: str, reasoning: str | None = None, **changes) -> ChatPrompt:
    return ChatPrompt((ChatMessage("assistant", content, reasoning),), **changes)


@pytest.mark.parametrize(
    ("effort", "changes"),
    [
        (Effort.USUAL, {}),
        (Effort.USUAL, {"prompt": TextPrompt(LONG[1:])}),
        (Effort.USUAL, {"prompt": TokenPrompt((1,) * LONG_CHARACTERS)}),
        (Effort.USUAL, {"prompt": chat("x")}),
        (Effort.LONG_TEXT, {"prompt": TextPrompt(LONG)}),
        (Effort.LONG_TEXT, {"prompt": chat("", LONG)}),
        (Effort.LONG_TEXT, {"prompt": TextPrompt(LONG), "constraint": Regex("a")}),
        (Effort.GRAMMAR, {"constraint": Regex("a")}),
        (Effort.GRAMMAR, {"prompt": chat("x", tools=(Tool("f"),))}),
    ],
)
def test_effort_of_a_request(effort, changes):
    assert effort is effort_of(request(**changes))

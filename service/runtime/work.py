"""Threads for what would hold up the event loop, apart by effort: slow work delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TypeVar

from service.runtime.request import ChatPrompt, GenerationRequest, Prompt, TextPrompt

T = TypeVar("T")

LONG_CHARACTERS = 32 * 1024
"""From here on a text counts as long: its tokens may take some hundredths of a second."""

_COMPILING_THREADS = 16
"""Most wait for one of a few compilers, which refuses them in time."""


class Effort(Enum):
    """What keeps a thread busy."""

    USUAL = "prepare"
    LONG_TEXT = "read"
    GRAMMAR = "compile"


class WorkThreads:
    """Threads of each effort; `threads` of them where the work is the processor's."""

    def __init__(self, threads: int) -> None:
        counts = dict.fromkeys(Effort, threads) | {Effort.GRAMMAR: _COMPILING_THREADS}
        self._pools = {
            effort: ThreadPoolExecutor(count, f"outrider-{effort.value}")
            for effort, count in counts.items()
        }

    async def run(self, effort: Effort, work: Callable[[], T]) -> T:
        """Return the result of a piece of work; cancelled before it began, it is not done."""
        return await asyncio.get_running_loop().run_in_executor(self._pools[effort], work)

    def shutdown(self) -> None:
        """Begin nothing more."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def effort_of(request: GenerationRequest) -> Effort:
    """Return the effort of preparing a request."""
    if request.has_grammar and prompt_effort(request.prompt) is Effort.USUAL:
        return Effort.GRAMMAR
    return prompt_effort(request.prompt)


def prompt_effort(prompt: Prompt) -> Effort:
    """Return the effort of reading a prompt."""
    return text_effort(_characters(prompt))


def text_effort(characters: int) -> Effort:
    """Return the effort of reading a text of so many characters."""
    return Effort.LONG_TEXT if characters >= LONG_CHARACTERS else Effort.USUAL


def _characters(prompt: Prompt) -> int:
    match prompt:
        case TextPrompt(text):
            return len(text)
        case ChatPrompt(messages=turns):
            return sum(len(turn.content) + len(turn.reasoning or "") for turn in turns)
        case _:
            return 0

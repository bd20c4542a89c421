"""How long a compilation may take, and what is kept of it."""

import subprocess
import sys
import threading
import time

import pytest

from service.errors import GrammarsBusy
from service.text.constraints.compiler import GrammarCompiler
from service.text.constraints.limits import Limits
from service.text.language import Regex
from tests.service.text.constraints.words import (
    BYTES,
    END,
    ENDS,
    begin,
    permitted,
    refusals,
    schema,
    written,
)


def test_compilation_that_takes_too_long_is_refused_and_others_are_not_kept_waiting_for_ever():
    """B35: the wait is bounded, and so are the compilations that nobody waits for."""
    slow = schema(properties={f"p{index}": {"type": "integer"} for index in range(1500)})
    compiler = GrammarCompiler(BYTES, ENDS, Limits(compile_seconds=0.05, compilations=1))
    compiler.prepare()

    (violation,) = refusals(slow, compiler)
    with pytest.raises(GrammarsBusy):
        begin(Regex("a"), compiler=compiler)

    assert violation.description == "takes more than 0.05 s to compile"


GIVING_UP = """
from time import sleep
from service.text.constraints.limits import Limits
from service.text.constraints.compiler import GrammarCompiler
from tests.service.text.constraints.words import BYTES, refusals, schema
slow = schema(properties={f"p{index}": {"type": "integer"} for index in range(1500)})
compiler = GrammarCompiler(BYTES, limits=Limits(compile_seconds=0.01))
compiler.prepare()
print(*refusals(slow, compiler))

class Lingering:
    def __del__(self, sleep=sleep):
        sleep(1.0)

lingering = Lingering()
"""


def test_process_that_ends_while_a_grammar_compiles_does_not_crash():
    """The compilation was given up, and goes on until it ends by itself.

    The interpreter takes its time to end, so that the compilation ends meanwhile.
    """
    ended = subprocess.run(  # noqa: S603 - our own interpreter and source
        [sys.executable, "-c", GIVING_UP], check=False, capture_output=True, text=True, timeout=60
    )

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "takes more than 0.01 s to compile" in ended.stdout


def test_other_threads_run_while_a_grammar_compiles():
    """B35: the interpreter is not held, so an event loop goes on."""
    pauses, done = [], threading.Event()

    def watch():
        last = time.monotonic()
        while not done.wait(0.002):
            now = time.monotonic()
            pauses.append(now - last)
            last = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin(schema(type="number", multipleOf=7919))
    done.set()
    watcher.join()

    assert max(pauses, default=0) < 0.25


def test_compiled_grammars_are_kept_and_the_oldest_given_up():
    compiler = GrammarCompiler(BYTES, ENDS, Limits(cached_grammars=2))
    kept, compiled = compiler._kept._grammars, []
    for pattern in ("a", "b", "a", "c"):
        begin(Regex(pattern), compiler=compiler)
        compiled.append(kept[Regex(pattern)])

    assert list(kept) == [Regex("a"), Regex("c")]
    assert [False, True, False] == [grammar is compiled[0] for grammar in compiled[1:]]


def test_kept_grammars_are_bounded_in_the_bytes_of_their_sources():
    compiler = GrammarCompiler(BYTES, ENDS, Limits(cached_bytes=2_500))
    for letter in "abc":
        begin(Regex(letter * 1_000), compiler=compiler)

    assert list(compiler._kept._grammars) == [Regex("b" * 1_000), Regex("c" * 1_000)]


def test_outputs_of_one_grammar_are_apart():
    first, second = begin(Regex("ab|cd")), begin(Regex("ab|cd"), frozenset({3}))

    assert permitted(written(first, "ab")) == {END}
    assert permitted(second) == {ord("a"), ord("c")}
    assert permitted(written(second, "cd")) == {3}

"""How many tokens: budgets, windows, minima, and which of several ends comes first."""

from __future__ import annotations

import grpc
import pytest
from grpc import aio

from engines.scripted.law import HashLaw, ScriptLaw
from service.runtime.models import LoadedModel
from tests.cases.asking import (
    CONTEXT,
    EOS,
    LENGTH,
    LOOKUP,
    NONE,
    STOP,
    asked,
    one,
    output_of,
    played,
    stop_at,
    tokens_of,
)
from tests.cases.stage import EOS as END
from tests.cases.stage import FixedLaw, staged, tiny, with_heedless
from tests.service.rpc.harness import complete, served

LETTERS = tuple(b"abcdefghijklmnop")
SPEAKER = tuple(b"say")


def scripted(*output: int) -> LoadedModel:
    """Return a model that says exactly this; "perfect" drafts all of it, whatever ends it."""
    law = ScriptLaw(((SPEAKER, output),))
    return with_heedless(staged(law), "perfect", (*output, END))


ENDS = {
    "stop id": ({"stops": stop_at(LETTERS[6])}, STOP),
    "end of sequence": ({"eos_token_id": LETTERS[6]}, EOS),
}


@pytest.mark.parametrize(("settings", "reason"), ENDS.values(), ids=ENDS.keys())
def test_b15_nothing_follows_an_end_in_the_middle_of_a_block(settings, reason):
    """B15: an end is accepted within a block, and the rest of the block is emitted after it.

    The seventh of sixteen letters ends the output; the draft proposes all sixteen.
    """
    model = scripted(*LETTERS)
    plain = one(model, asked("say", NONE, max_new_tokens=100, **settings))
    widths = (4, 5, 6, 7, 8, 16)
    fast = played(
        model, [asked("say", "perfect", k, max_new_tokens=100, **settings) for k in widths]
    )

    assert (LETTERS[:7], "abcdef", reason) == output_of(plain)
    assert {output_of(plain)} == {output_of(answer) for answer in fast}
    assert all(answer.finished.statistics.accepted_tokens for answer in fast)
    assert all(7 == answer.finished.usage.completion_tokens for answer in fast)


@pytest.mark.parametrize("proposer", [NONE, "perfect"])
@pytest.mark.parametrize(("include", "text"), [(False, "\n\x0b"), (True, "\n\x0b\x1e")])
def test_b17_a_stop_within_the_budget_counts_before_the_budget(proposer, include, text):
    """B17: the budget is checked first, so that a stop within it is missed and leaks.

    Tokens 10, 11, the stop, 20, 21, 22, of which the budget allows five.
    """
    settings = {"max_new_tokens": 5, "stops": stop_at(30), "include_stop": include}
    width = None if proposer == NONE else 6
    answer = one(scripted(10, 11, 30, 20, 21, 22), asked("say", proposer, width, **settings))

    assert ((10, 11, 30), text, STOP) == output_of(answer)
    assert 3 == answer.finished.usage.completion_tokens
    assert 30 == answer.finished.matched_stop.token_id


@pytest.mark.parametrize("proposer", [NONE, "perfect"])
def test_b17_a_stop_behind_the_budget_does_not_count(proposer):
    """B17: the stop is the sixth token of five."""
    width = None if proposer == NONE else 6
    message = asked("say", proposer, width, max_new_tokens=5, stops=stop_at(30))
    answer = one(scripted(10, 11, 20, 21, 22, 30), message)

    assert (10, 11, 20, 21, 22) == tokens_of(answer)
    assert (LENGTH, 5) == (answer.finished.reason, answer.finished.usage.completion_tokens)
    assert not answer.finished.HasField("matched_stop")


@pytest.mark.parametrize("proposer", [NONE, "perfect"])
def test_b17_a_stop_at_the_budgets_own_end_counts(proposer):
    """B17: the stop is the fifth token of five."""
    width = None if proposer == NONE else 6
    message = asked("say", proposer, width, max_new_tokens=5, stops=stop_at(30))
    answer = one(scripted(10, 11, 20, 21, 30, 22), message)

    assert ((10, 11, 20, 21, 30), STOP) == (tokens_of(answer), answer.finished.reason)
    assert 30 == answer.finished.matched_stop.token_id


@pytest.mark.parametrize("proposer", [NONE, "mostly-right", "right", LOOKUP])
def test_b18_every_budget_is_met_exactly(proposer):
    """B18: an accepted block is charged at once, and fewer tokens come than the usage says.

    One to seventeen tokens, whatever would end them; one log-probability for each.
    """
    model = staged(HashLaw(end_one_in=5))
    width = None if proposer == NONE else 4
    for count in range(1, 18):
        settings = {"max_new_tokens": count, "stop_on_eos": False, "logprobs": 1}
        answer = one(model, asked("once", proposer, width, **settings))
        lists = (answer.tokens.token_ids, answer.tokens.logprobs, answer.tokens.alternatives)
        assert [count] * 3 == [len(each) for each in lists]
        assert count == answer.finished.usage.completion_tokens
        assert count == answer.finished.statistics.emitted_tokens
        assert LENGTH == answer.finished.reason


@pytest.mark.parametrize("proposer", [NONE, "right"])
def test_b18_no_budget_is_the_stated_default(proposer):
    """B18: 256 where nothing is asked for, and the echo says so."""
    answer = one(staged(HashLaw()), asked("once", proposer))

    assert (256, LENGTH) == (len(answer.tokens.token_ids), answer.finished.reason)
    assert 256 == answer.admitted.settings.max_new_tokens


EAGER_TO_END = FixedLaw(((ord("x"), 0.4), (END, 0.6)))


@pytest.mark.parametrize("proposer", ["right", "mostly-right", "wrong", "own-law", LOOKUP])
def test_b19_the_minimum_holds_at_every_row_of_a_block(proposer):
    """B19: the minimum is applied once a block, or one row too far.

    The end is always likeliest and "x" next; at least five tokens, at most ten.
    """
    model = staged(EAGER_TO_END)
    settings = {"min_new_tokens": 5, "max_new_tokens": 10}
    plain = one(model, asked("y", NONE, **settings))
    fast = one(model, asked("y", proposer, 4, **settings))

    assert ((*b"xxxxx", END), "xxxxx", EOS) == output_of(plain)
    assert output_of(plain) == output_of(fast)
    assert fast.finished.statistics.draft_tokens


TINY_END = 2


@pytest.mark.parametrize("proposer", ["draft", LOOKUP])
def test_b19_the_minimum_holds_in_a_real_engines_blocks(proposer):
    """B19: the same on ONNX Runtime, whose rows are biased towards the end and then one letter."""
    model = tiny()
    settings = {"min_new_tokens": 5, "max_new_tokens": 10, "temperature": 0.0}
    settings["logit_bias"] = {TINY_END: 900.0, ord("x"): 600.0}
    plain = one(model, asked("xyxyxyxy", NONE, **settings))
    fast = one(model, asked("xyxyxyxy", proposer, 4, **settings))

    assert ((*[ord("x")] * 5, TINY_END), EOS) == (tokens_of(plain), plain.finished.reason)
    assert output_of(plain) == output_of(fast)
    assert fast.finished.statistics.draft_tokens


@pytest.mark.parametrize("proposer", [NONE, "own-law"])
def test_b19_sampled_output_has_its_minimum_too(proposer):
    """B19: at temperature 1, over fifty seeds, no output ends before its fifth token."""
    settings = {"min_new_tokens": 5, "max_new_tokens": 10, "temperature": 1.0}
    width = None if proposer == NONE else 4
    messages = [asked("y", proposer, width, seed=seed, **settings) for seed in range(50)]
    answers = played(staged(EAGER_TO_END), messages)

    assert all(answer.text.startswith("xxxxx") for answer in answers)
    assert 1 < len({answer.text for answer in answers})
    assert {EOS} <= {answer.finished.reason for answer in answers}


@pytest.mark.parametrize("proposer", [NONE, "right"])
@pytest.mark.asyncio
async def test_b24_every_length_about_the_window_is_served_or_refused_in_words(proposer):
    """B24: a prompt of nothing, or one that fills the window, takes the engine down.

    127 to 129 tokens in a window of 128, none at all, with log-probabilities of the prompt; and
    the next request is served.
    """
    settings = {"prompt_logprobs": 1, "max_context": 128}
    async with served(staged(HashLaw())) as server:
        nearly = await complete(server, asked("a" * 127, proposer, **settings))
        for length in (0, 128, 129):
            with pytest.raises(aio.AioRpcError) as caught:
                await complete(server, asked("a" * length, proposer, **settings))
            assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
        cut = await complete(
            server, asked("a" * 100, proposer, max_new_tokens=100, max_context=128)
        )
        after = await complete(server, asked("a", proposer, max_new_tokens=1))

    assert (1, CONTEXT) == (len(nearly.tokens.token_ids), nearly.finished.reason)
    assert 126 == len(nearly.prompt_logprobs.logprobs)
    assert (28, CONTEXT) == (len(cut.tokens.token_ids), cut.finished.reason)
    assert 1 == len(after.tokens.token_ids)

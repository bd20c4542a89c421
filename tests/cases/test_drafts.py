"""What a draft may be: its cache, its window, its vocabulary, its search for repetitions."""

from __future__ import annotations

import hashlib
import json
import shutil

import grpc
import pytest
from grpc import aio

from engines.bundle.fingerprint import tokenizer_fingerprint
from engines.scripted.law import EchoLaw, HashLaw
from outrider.v1 import generation_pb2, settings_pb2
from service.__main__ import load_models
from service.errors import IncompatibleDraft, Status
from service.runtime.settings import EngineKind, ModelSettings, Settings
from tests.cases.asking import (
    LENGTH,
    LOOKUP,
    NONE,
    Answer,
    asked,
    one,
    output_of,
    played,
    tokens_of,
)
from tests.cases.stage import staged, tiny, tiny_bundle
from tests.service.rpc.harness import complete, served

LAW = HashLaw()


@pytest.mark.parametrize("width", [1, 4, 8])
def test_b08_rejected_proposals_leave_no_trace_in_the_cache(width):
    """B08: a rejected draft stays in a cache that cannot go back, and the output drifts.

    The scripted engine's rows follow what its cache really holds, so one stale cell would show.
    """
    model = staged(LAW)
    plain = one(model, asked("once", NONE, max_new_tokens=60))
    wrong = one(model, asked("once", "wrong", width, max_new_tokens=60))

    assert output_of(plain) == output_of(wrong)
    statistics = wrong.finished.statistics
    assert 0 == statistics.accepted_tokens < statistics.judged_tokens


def test_b08_a_real_cache_is_rewound_behind_a_draft_that_errs():
    """B08: the same on ONNX Runtime, drafted for by a model of other weights."""
    model = tiny(draft_seed=1)
    plain = one(model, asked("once", NONE, max_new_tokens=100, temperature=0.0))
    fast = one(model, asked("once", "draft", 8, max_new_tokens=100, temperature=0.0))

    assert output_of(plain) == output_of(fast)
    statistics = fast.finished.statistics
    assert statistics.accepted_tokens < statistics.judged_tokens / 2


@pytest.mark.parametrize("mode", ["MTP", "EAGLE3", "SHARED_KV"])
@pytest.mark.asyncio
async def test_b08_what_cannot_be_speculated_for_is_refused_aloud(mode):
    """B08: a mode that nothing is ready for is FAILED_PRECONDITION, by name."""
    wanted = settings_pb2.SpeculationMode.Value(f"SPECULATION_MODE_{mode}")
    async with served(staged(LAW)) as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await complete(server, asked("once", wanted))
    assert grpc.StatusCode.FAILED_PRECONDITION == caught.value.code()
    assert mode.lower() in caught.value.details()


def last_accepted(answer: Answer) -> int:
    """Return the position in the output of the last token that was drafted."""
    sources = list(answer.tokens.sources)
    return max(i for i, s in enumerate(sources) if s == generation_pb2.TOKEN_SOURCE_ACCEPTED)


def test_b09_a_draft_of_a_shorter_window_stops_drafting_at_its_end():
    """B09: a sequence that outgrows the draft's window crashes it, or reads beyond its cache.

    The draft holds 64 places and the target 128. The draft is the target itself, so that within
    its window every proposal is accepted.
    """
    prompt = [*range(20, 80)]
    model = tiny(max_context=128, draft_context=64)
    plain = one(model, asked(prompt, NONE, max_new_tokens=50, stop_on_eos=False))
    fast = one(model, asked(prompt, "draft", 8, max_new_tokens=50, stop_on_eos=False))

    assert (50, LENGTH) == (len(fast.tokens.token_ids), fast.finished.reason)
    assert output_of(plain) == output_of(fast)
    statistics = fast.finished.statistics
    assert 0 < statistics.draft_tokens == statistics.accepted_tokens <= 64 - 60
    assert len(prompt) + last_accepted(fast) <= 64


@pytest.mark.parametrize(
    "model",
    [lambda: tiny(max_context=128, draft_context=128), lambda: staged(LAW, max_context=128)],
)
def test_b09_drafts_are_cut_to_what_the_window_still_holds(model):
    """B09: drafting overruns the target's window: 120 tokens of prompt, 8 of output, k = 8."""
    prompt, settings = [*range(60, 180)], {"max_new_tokens": 8, "stop_on_eos": False}
    loaded = model()
    plain = one(loaded, asked(prompt, NONE, **settings))
    fast = one(loaded, asked(prompt, loaded.proposers[0].name, 8, **settings))

    assert 8 == len(fast.tokens.token_ids)
    assert output_of(plain) == output_of(fast)
    statistics = fast.finished.statistics
    # The first token comes with the prompt: a round can hold no more than the seven others.
    assert 0 < statistics.draft_tokens <= 7 * statistics.rounds


def test_b10_a_padded_embedding_is_served_and_its_padding_never_chosen():
    """B10: a draft that lacks only the target's padding is refused, or padding is emitted.

    Random rows for the padding are as likely as any; hot sampling would find them.
    """
    model = tiny(padding=64)
    answers = played(
        model,
        [
            asked("once", proposer, temperature=heat, top_k=0, seed=seed, max_new_tokens=60)
            for proposer in (NONE, LOOKUP, "draft")
            for heat in (0.0, 5.0)
            for seed in range(3)
        ],
    )

    assert 265 == model.vocabulary_size < model.target.limits.vocabulary_size
    assert all(token < 265 for answer in answers for token in answer.tokens.token_ids)
    assert any(answer.finished.statistics.accepted_tokens for answer in answers[-3:])


def with_other_token(path, token: int):
    """Change one token of a bundle's tokenizer, and seal it again."""
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    ids, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    words = sorted(ids, key=ids.get)
    words[token] = "other"
    tokenizer["model"]["vocab"] = {word: place for place, word in enumerate(words)}
    content = json.dumps(tokenizer).encode()
    manifest = json.loads((path / "manifest.json").read_text())
    sealed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["files"]["tokenizer.json"] = sealed
    manifest["tokenizer_fingerprint"] = tokenizer_fingerprint(words, merges).hex()
    (path / "tokenizer.json").write_bytes(content)
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_b10_a_draft_whose_token_100_is_another_is_refused_by_it(tmp_path):
    """B10: a draft of the same size and other contents makes garbage; it must not load."""
    other = tmp_path / "other"
    shutil.copytree(tiny_bundle(), other)
    with_other_token(other, 100)
    wanted = ModelSettings(
        engine=EngineKind.ONNX, bundles=(str(tiny_bundle()),), draft_bundle=str(other)
    )
    with pytest.raises(IncompatibleDraft, match="token 100 is b'other'") as caught:
        load_models(Settings(model=wanted), lambda _: None)
    assert Status.FAILED_PRECONDITION is caught.value.status


@pytest.mark.parametrize("prompt", ["<", "<|", "<<<<<<"])
def test_b11_prompt_lookup_on_tiny_and_overlapping_prompts_changes_nothing(prompt):
    """B11: too short a prompt is an error, or a match with the text's own end is taken.

    There are no bounds of n-grams to set here: a match is of any length, the longest counts.
    """
    for law in (LAW, EchoLaw("<<<<<<<<<<<<<<<<<<<<<<<<")):
        model = staged(law)
        plain = one(model, asked(prompt, NONE, max_new_tokens=40))
        fast = one(model, asked(prompt, LOOKUP, 4, max_new_tokens=40))
        assert output_of(plain) == output_of(fast)


def test_b11_nothing_is_drafted_where_nothing_was_said_before():
    """B11: a prompt of one token, and an output that repeats none of it."""
    model = staged(EchoLaw("abcdefghijklmnopqrstuvwxyz"))
    answer = one(model, asked("<", LOOKUP, 4, max_new_tokens=20))

    assert tuple(b"abcdefghijklmnopqrst") == tokens_of(answer)
    assert 0 == answer.finished.statistics.draft_tokens


@pytest.mark.parametrize("width", [0, -1])
@pytest.mark.asyncio
async def test_b11_a_width_below_one_is_refused(width):
    """B11: k ≤ 0."""
    async with served(staged(LAW)) as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await complete(server, asked("<<<<<<", LOOKUP, width))
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    assert "num_speculative_tokens" in caught.value.details()

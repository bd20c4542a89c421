from dataclasses import replace

import pytest

from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from service.errors import InvalidRequest, NoChatTemplate, OutriderError, UnknownProposer
from service.generation.config import GenerationOverrides
from service.generation.finish import FinishReason
from service.generation.sampling import DrySettings, MirostatSettings, SequenceBreakers
from service.runtime.preparation import prepare_request
from service.runtime.request import ChatPrompt, SpeculationRequest, Stop, TextPrompt, TokenPrompt
from service.runtime.text import ModelText
from service.speculation.observer import LifecycleStage
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.language import Regex
from tests.service.runtime.doubles import (
    EOS,
    SMALL,
    TOKENIZER,
    loaded_model,
    loaded_proposer,
    request,
)

MODEL = loaded_model()


def prepared(asked, model=MODEL):
    return prepare_request(model, asked, fixed_width=4, new_seed=lambda: 99)


def refused(asked, model=MODEL):
    with pytest.raises(InvalidRequest) as caught:
        prepared(asked, model)
    return {violation.field: violation.description for violation in caught.value.violations}


def tokens(length):
    return TokenPrompt((65,) * length)


def test_prompt_without_a_token_is_refused_by_its_field():
    """B24: text "" and ids []."""
    assert ["text"] == [*refused(request(""))]
    assert ["token_ids"] == [*refused(request(prompt=tokens(0)))]


def test_text_of_nothing_is_empty_even_where_a_leading_token_would_be_added():
    """B24: the added token would otherwise pass for a prompt."""
    assert "must hold at least one token" == refused(request(""))["text"]


@pytest.mark.parametrize("length", [128, 129])
def test_prompt_that_fills_the_context_is_refused_with_both_numbers(length):
    """B24."""
    description = refused(request(prompt=tokens(length)))["token_ids"]
    assert str(length) in description
    assert "128" in description


def test_prompt_one_short_of_the_context_leaves_one_token():
    """B24: and it ends for the window, not for the budget."""
    plan = prepared(request(prompt=tokens(127)))
    sequence, _ = plan.sequence.commit(65)
    assert 256 == plan.admitted.max_tokens
    assert FinishReason.CONTEXT_LENGTH is sequence.finish_reason


def test_budget_beyond_the_window_is_echoed_and_not_clamped():
    """B24: 100 + 100 in 128."""
    plan = prepared(request(prompt=tokens(100), max_new_tokens=100))
    assert 100 == plan.admitted.max_tokens
    assert 28 == plan.sequence.remaining


def test_text_that_cannot_fit_is_refused_before_it_is_tokenised():
    description = refused(request("x" * 10_000))["text"]
    assert "at least" in description
    assert "128" in description


def never_encoded(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the text was tokenised")

    monkeypatch.setattr(type(TOKENIZER), "encode_text", refuse)
    monkeypatch.setattr(type(TOKENIZER), "encode_markup", refuse)


def test_chat_that_cannot_fit_is_refused_before_it_is_rendered_or_tokenised(monkeypatch):
    never_encoded(monkeypatch)
    most = MODEL.max_characters
    turn = ChatMessage("user", "x" * most)
    description = refused(request(prompt=ChatPrompt((turn,))))["chat.messages"]
    assert f"at most {most} characters, got {most + len('user')}" == description


def test_rendered_chat_that_cannot_fit_is_refused_before_it_is_tokenised(monkeypatch):
    """Its messages are within the bound, and the template adds to them."""
    never_encoded(monkeypatch)
    turn = ChatMessage("user", "x" * (MODEL.max_characters - 64))
    longer = ChatTemplate("{{ messages[0].content }}{{ 'y' * 64 }}", path="scripted")
    model = loaded_model(text=ModelText("longer", TOKENIZER, longer))
    description = refused(request(prompt=ChatPrompt((turn,))), model)["chat"]
    assert "has at least 128 tokens and leaves no room for output in 128" == description


def test_own_window_narrows_the_context():
    plan = prepared(request("hello", max_context=8))
    assert 3 == plan.sequence.remaining
    assert "8" in refused(request("hello there", max_context=8))["text"]


@pytest.mark.parametrize("window", [0, -1, 129])
def test_own_window_out_of_bounds_is_refused(window):
    assert "must be 1 to 128" in refused(request(max_context=window))["settings.max_context"]


def test_token_ids_out_of_range_are_named_by_their_places():
    """B30: prompt ids at and beyond the vocabulary."""
    ids = (65, VOCABULARY_SIZE, 66, 2**31)
    violations = refused(request(prompt=TokenPrompt(ids)))
    assert ["token_ids.ids[1]", "token_ids.ids[3]"] == [*violations]


def test_many_wrong_token_ids_are_named_up_to_a_limit():
    ids = (VOCABULARY_SIZE,) * 100
    assert 16 == len(refused(request(prompt=TokenPrompt(ids))))


def test_every_field_at_fault_is_named_at_once():
    """Whichever step finds it: settings, ids, stops, width, prompt and constraint."""
    asked = request(
        "x" * 200,
        overrides=GenerationOverrides(top_p=2.0, banned_token_ids=frozenset(range(900, 999))),
        stops=(Stop(text=""),),
        eos_token_id=2**32 - 1,
        max_context=0,
        constraint=Regex("[a"),
        speculation=SpeculationRequest(num_speculative_tokens=10**6),
    )
    expected = {
        "text",
        "settings.top_p",
        "settings.banned_token_ids",
        "settings.stops[0].text",
        "settings.eos_token_id",
        "settings.max_context",
        "settings.constraint.regex",
        "speculation.num_speculative_tokens",
    }
    assert expected == set(refused(asked, loaded_model(proposers=(loaded_proposer("draft"),))))


def test_field_at_fault_is_named_before_what_is_not_loaded():
    speculation = SpeculationRequest(proposer="other")
    wrong = request(overrides=GenerationOverrides(top_p=2.0), speculation=speculation)
    assert ["settings.top_p"] == [*refused(wrong, loaded_model(proposers=(loaded_proposer("a"),)))]


def test_padded_end_of_the_targets_vocabulary_is_out_of_range():
    short = ModelText("scripted", TOKENIZER)
    target = MODEL.target
    padded = replace(target.limits, vocabulary_size=VOCABULARY_SIZE + 64)
    model = loaded_model(text=short)
    model.target._limits = padded
    assert "token_ids.ids[0]" in refused(request(prompt=TokenPrompt((VOCABULARY_SIZE,))), model)


def test_end_token_out_of_range_is_refused():
    violations = refused(request(eos_token_id=VOCABULARY_SIZE))
    assert ["settings.eos_token_id"] == [*violations]


@pytest.mark.parametrize(
    ("stop", "field"),
    [
        (Stop(text=""), "settings.stops[1].text"),
        (Stop(token_id=VOCABULARY_SIZE), "settings.stops[1].token_id"),
    ],
)
def test_stop_that_cannot_match_is_refused_by_its_place(stop, field):
    """B22, B30."""
    assert [field] == [*refused(request(stops=(Stop(text="a"), stop)))]


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        (GenerationOverrides(temperature=-1.0), "settings.temperature"),
        (GenerationOverrides(top_p=2.0), "settings.top_p"),
        (GenerationOverrides(max_new_tokens=0), "settings.max_new_tokens"),
        (GenerationOverrides(max_new_tokens=-1), "settings.max_new_tokens"),
    ],
)
def test_setting_out_of_range_is_refused_by_its_field(overrides, field):
    """B18, B29."""
    assert [field] == [*refused(request(overrides=overrides))]


def test_seed_is_fresh_when_absent_and_kept_when_zero():
    assert 99 == prepared(request()).admitted.seed
    assert 0 == prepared(request(seed=0)).admitted.seed


def test_greedy_request_draws_nothing():
    assert prepared(request(seed=1)).randomness.target is None


def test_sampled_request_draws_from_its_seed():
    sampled = request(seed=1, overrides=GenerationOverrides(temperature=1.0))
    assert prepared(sampled).randomness == prepared(sampled).randomness
    assert prepared(sampled).randomness != prepared(replace(sampled, seed=2)).randomness


def test_sampling_gets_the_coins_of_the_seed():
    """XTC's coins shape the distribution, so a request without them would lack the setting."""
    plan = prepared(request(seed=1, overrides=GenerationOverrides(temperature=1.0)))
    assert plan.sampling.coins is plan.randomness.coins
    assert plan.sampling.coins is not None


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({}, EOS),
        ({"eos_token_id": 65}, frozenset({65})),
        ({"stop_on_eos": False}, frozenset()),
        ({"stop_on_eos": False, "eos_token_id": 65}, frozenset()),
    ],
)
def test_end_tokens_follow_the_override_and_stop_on_eos(changes, ends):
    plan = prepared(request(**changes))
    assert ends == plan.admitted.eos_token_ids
    assert ends == plan.sequence.eos_token_ids
    assert ends == plan.config.eos_token_ids


def test_stops_that_are_tokens_count_as_ends_for_the_least_number_of_tokens():
    """B19: none of them may be chosen before; a text is looked for in what was chosen."""
    plan = prepared(request(stops=(Stop(token_id=66), Stop(text="c"), Stop(text="<|bos|>"))))
    assert EOS | {66, Special.BOS} == plan.sampling.end_token_ids
    assert EOS == plan.sequence.eos_token_ids


def test_breakers_are_the_tokens_that_contain_their_texts():
    breakers = SequenceBreakers(("\n", "|eos|"))
    dry = request(overrides=GenerationOverrides(dry=DrySettings(1.0, sequence_breakers=breakers)))
    assert {ord("\n"), Special.EOS} == prepared(dry).sampling.run_breakers
    assert frozenset() == prepared(request()).sampling.run_breakers


def test_checkpoint_defaults_are_overridden_by_the_request():
    model = loaded_model(defaults=GenerationOverrides(do_sample=True, temperature=0.5, top_k=7))
    assert 0.5 == prepared(request(), model).admitted.config.temperature
    warm = request(overrides=GenerationOverrides(temperature=2.0))
    assert 2.0 == prepared(warm, model).admitted.config.temperature
    assert 7 == prepared(warm, model).admitted.config.top_k


def test_sampled_mirostat_has_no_lookahead_and_says_so():
    """A branch would be drafted under a state that the tokens before it still change."""
    overlapping = replace(SMALL, is_synchronous=False)
    model = loaded_model(overlapping, proposers=(loaded_proposer("draft"),))

    def looks_ahead(**settings):
        overrides = GenerationOverrides(**settings)
        asked = request(overrides=overrides, speculation=SpeculationRequest(lookahead=True))
        return prepared(asked, model).admitted.speculation.lookahead

    assert looks_ahead(temperature=1.0)
    assert not looks_ahead(temperature=1.0, mirostat=MirostatSettings())
    assert looks_ahead(temperature=0.0, mirostat=MirostatSettings())


def test_chat_is_rendered_by_the_models_template():
    plan = prepared(request(prompt=ChatPrompt((ChatMessage("user", "hi"),))))
    assert (Special.BOS, Special.USER, *b"hi", Special.REPLY) == plan.prompt


def test_chat_without_a_template_is_refused():
    model = loaded_model(text=ModelText("bare", TOKENIZER))
    with pytest.raises(NoChatTemplate):
        prepared(request(prompt=ChatPrompt((ChatMessage("user", "hi"),))), model)


def test_plain_text_never_spells_a_special_token():
    assert tuple(b"<|eos|>") == prepared(request("<|eos|>")).prompt


def test_observer_sees_admission_before_compatibility_and_compatibility_after():
    stages = []
    model = loaded_model(
        proposers=(loaded_proposer("draft"),),
        observer=stages.append,
    )
    prepared(request(), model)
    assert [LifecycleStage.ADMISSION, LifecycleStage.COMPATIBILITY] == stages
    stages.clear()
    incompatible = request(speculation=SpeculationRequest(proposer="other"))
    with pytest.raises(UnknownProposer):
        prepared(incompatible, model)
    assert [LifecycleStage.ADMISSION] == stages


def test_observer_that_raises_keeps_a_request_out():
    def refuse(stage):
        raise OutriderError(stage.value)

    with pytest.raises(OutriderError, match="admission"):
        prepared(request(), loaded_model(observer=refuse))


def test_text_prompt_holds_exactly_its_own_bytes():
    assert tuple("héllo".encode()) == prepared(request(prompt=TextPrompt("héllo"))).prompt

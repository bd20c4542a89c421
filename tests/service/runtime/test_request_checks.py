import pytest

from service.generation.config import GenerationOverrides, layered_config
from service.runtime.request_checks import MAX_LISTED_LOGPROBS, logprob_violations


def refused(prompt_tokens: int, output_tokens: int, **asked: int) -> set[str]:
    config = layered_config(None, GenerationOverrides(**asked))
    found = logprob_violations(config, prompt_tokens, output_tokens)
    return {violation.field for violation in found}


@pytest.mark.parametrize("alternatives", [0, 1, 20])
def test_log_probabilities_up_to_the_bound_are_listed(alternatives: int):
    most = MAX_LISTED_LOGPROBS // (1 + (alternatives and alternatives + 1))
    assert set() == refused(most, 7, prompt_logprobs=alternatives)
    assert set() == refused(7, most, logprobs=alternatives)
    assert {"settings.prompt_logprobs"} == refused(most + 1, 7, prompt_logprobs=alternatives)
    assert {"settings.logprobs"} == refused(7, most + 1, logprobs=alternatives)


def test_prompt_and_output_share_the_bound():
    half = MAX_LISTED_LOGPROBS // 2
    assert set() == refused(half, half, logprobs=0, prompt_logprobs=0)
    both = {"settings.logprobs", "settings.prompt_logprobs"}
    assert both == refused(half, half + 1, logprobs=0, prompt_logprobs=0)


def test_nothing_asked_for_is_nothing_listed():
    assert set() == refused(10**9, 10**9)

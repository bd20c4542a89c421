"""Every claim of the suite fails where it is broken."""

from dataclasses import replace

import pytest

from engines.scripted.passes import ScriptedRows
from engines.scripted.target import ScriptedTarget
from exactness.checks.determinism import check_determinism
from exactness.checks.distribution import check_distribution
from exactness.checks.greedy import check_greedy
from exactness.checks.logprobs import check_logprobs
from exactness.checks.parameters import check_parameters
from exactness.fields import table
from exactness.models.scripted import scripted, scripted_small
from exactness.models.staged import staged
from exactness.proof import Stage
from service.generation.randomness import RandomStream
from service.runtime.engine import Engine
from service.speculation import resolution
from service.speculation.policy import Accept


@pytest.fixture
def accepting_anything(monkeypatch):
    """Proposals that are not judged."""
    monkeypatch.setattr(resolution, "judge", lambda target, proposal, stream: (Accept(), stream))


@pytest.mark.usefixtures("accepting_anything")
def test_unjudged_proposals_break_greedy_output() -> None:
    result = check_greedy(scripted(takes_time=False), 8, all_of_them=False)

    assert any("differs from position" in failure for failure in result.failures)


@pytest.mark.usefixtures("accepting_anything")
def test_unjudged_proposals_break_the_distribution() -> None:
    result = check_distribution(scripted_small(takes_time=False), 60, ("own-law",))

    assert any("p = " in failure for failure in result.failures)


def test_draws_that_neighbours_share_break_determinism(monkeypatch) -> None:
    """One stream for all requests, as if the rows of a pass drew from it in turn."""
    drawn = iter(range(10**9))
    monkeypatch.setattr(RandomStream, "draw", lambda stream: (next(drawn) * 0.618034 % 1.0, stream))

    result = check_determinism(scripted(takes_time=False), 8, 2)

    assert any("another output" in failure for failure in result.failures)


def test_logprob_of_the_row_before_is_noticed(monkeypatch) -> None:
    honest = ScriptedRows.logprob

    def of_the_row_before(rows, row, *arguments):
        return honest(rows, max(0, row - 1), *arguments)

    monkeypatch.setattr(ScriptedRows, "logprob", of_the_row_before)

    result = check_logprobs(scripted_small(takes_time=False), 6)

    assert any("apart" in failure for failure in result.failures)


def failures_of(monkeypatch, name, proofs=None):
    """Return what speaks against one field, by the table or by other proofs."""
    fields = [each for each in table.fields_of_a_request() if each.full_name.endswith(name)]
    message, _, own = fields[0].full_name.rpartition(".")
    kept = {message: {own: table.PROOFS[message][own]}} if proofs is None else proofs
    monkeypatch.setattr("exactness.checks.parameters.fields_of_a_request", lambda: fields)
    monkeypatch.setattr("exactness.checks.parameters.PROOFS", kept)
    return check_parameters(Stage(staged(), ("mostly-right",), (3,), 200)).failures


@pytest.mark.parametrize(
    ("name", "dropped"),
    [
        ("GenerationSettings.frequency_penalty", {"frequency_penalty": 0.0}),
        ("GenerationSettings.top_p", {"top_p": 1.0}),
        ("MirostatSettings.tau", {"mirostat": None}),
    ],
)
def test_setting_that_is_always_dropped_is_noticed(name, dropped, monkeypatch) -> None:
    honest = ScriptedTarget.sampler

    def forgetful(target, request):
        return honest(target, replace(request, config=replace(request.config, **dropped)))

    monkeypatch.setattr(ScriptedTarget, "sampler", forgetful)

    (first, *_) = failures_of(monkeypatch, name)

    assert "changes nothing" in first or "hardly shifts the law" in first


@pytest.mark.parametrize(
    ("name", "dropped"),
    [
        ("GenerationSettings.frequency_penalty", {"frequency_penalty": 0.0}),
        ("GenerationSettings.top_p", {"top_p": 1.0}),
        ("XtcSettings.probability", {"xtc": None}),
    ],
)
def test_setting_that_only_speculation_drops_is_noticed(name, dropped, monkeypatch) -> None:
    honest = Engine._lane_request

    def forgetful(engine, ticket, slot):
        request = honest(engine, ticket, slot)
        if request.proposer is None:
            return request
        sampling = ticket.prepared.sampling
        bare = replace(sampling, config=replace(sampling.config, **dropped))
        return replace(request, sampler=engine._model.target.sampler(bare))

    monkeypatch.setattr(Engine, "_lane_request", forgetful)

    assert any("mostly-right" in failure for failure in failures_of(monkeypatch, name))


def test_field_without_a_proof_fails(monkeypatch) -> None:
    failures = failures_of(monkeypatch, "v1.Stop.text", proofs={})

    assert ("Stop.text: nothing shows its effect",) == failures


def test_proof_of_no_field_fails(monkeypatch) -> None:
    text = table.PROOFS["outrider.v1.Stop"]["text"]
    proofs = {"outrider.v1.Stop": {"text": text, "texts": text}}

    failures = failures_of(monkeypatch, "v1.Stop.text", proofs)

    assert ("outrider.v1.Stop.texts: is no field of a request",) == failures

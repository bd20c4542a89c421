from outrider import (
    Admitted,
    Alternative,
    Finished,
    FinishReason,
    ReasoningDelta,
    Round,
    TextDelta,
    Token,
    TokenSource,
)
from outrider.v1.generation_pb2 import ResolvedSpeculation
from outrider.v1.settings_pb2 import GenerationSettings
from outrider.v1.statistics_pb2 import RequestStatistics
from service.commands.transcript import Transcript, facts, scored_ids, scores, summary


def admitted(**speculation):
    return Admitted("a", "tiny", 3, GenerationSettings(seed=7), ResolvedSpeculation(**speculation))


def round_of(*tokens):
    return Round(0, tuple(Token(token, TokenSource.PLAIN) for token in tokens), 0, 0)


def finished(tokens, **statistics):
    return Finished(FinishReason.EOS, None, 3, tokens, RequestStatistics(**statistics))


def played(*events):
    """Return the transcript of events, each given with its time."""
    transcript = Transcript(started=10.0)
    for now, event in events:
        transcript.take(event, now)
    return transcript


def test_transcript_times_the_first_token_and_the_rate_after_it():
    transcript = played(
        (10.1, admitted()),
        (10.5, round_of(1)),
        (10.5, TextDelta("a")),
        (11.0, round_of(2, 3)),
        (11.0, TextDelta("bc")),
        (11.5, round_of(4)),
        (11.6, finished(4)),
    )

    assert (0.5, 3.0) == (transcript.seconds_to_first, transcript.tokens_per_second)
    assert ("abc", (1, 2, 3, 4)) == (transcript.text, transcript.token_ids)


def test_one_token_has_no_rate():
    transcript = played((10.1, admitted()), (10.5, round_of(1)), (10.6, finished(1)))

    assert transcript.tokens_per_second is None


def test_take_returns_the_text_of_an_event_alone():
    transcript = Transcript(started=0.0)

    assert ["", "a", ""] == [
        transcript.take(event, 1.0) for event in (round_of(1), TextDelta("a"), finished(1))
    ]


def test_facts_leave_open_what_was_never_counted():
    transcript = played((10.1, admitted(off_detail="asked for")), (10.6, finished(1)))

    told = facts(transcript)
    assert {None} == {told[name] for name in ("acceptance_rate", "acceptance_length", "proposer")}
    assert ("asked for", "EOS", 7) == (told["off_detail"], told["reason"], told["seed"])


def test_log_probabilities_are_told_where_they_were_asked_for():
    others = (Alternative(4, -0.5), Alternative(5, -1.25))
    scored = Round(0, (Token(4, TokenSource.PLAIN, -0.5, others),), 0, 0)
    transcript = played((10.1, admitted()), (10.5, scored), (10.6, finished(1)))

    expected = [{"logprob": -0.5, "alternatives": [(4, -0.5), (5, -1.25)]}]
    assert expected == facts(transcript)["logprobs"]
    assert (4, 5) == scored_ids(transcript)
    assert ("       4   -0.5000  ' a'              ' a' -0.5000  '\\n' -1.2500",) == scores(
        transcript, {4: " a", 5: "\n"}
    )


def test_log_probabilities_that_were_not_asked_for_are_none():
    transcript = played((10.1, admitted()), (10.5, round_of(1)), (10.6, finished(1)))

    assert (None, (), ()) == (
        facts(transcript)["logprobs"],
        scored_ids(transcript),
        scores(transcript, {}),
    )


def test_reasoning_is_told_apart_from_the_text():
    transcript = played(
        (10.1, admitted()),
        (10.2, ReasoningDelta("h")),
        (10.3, ReasoningDelta("m")),
        (10.4, TextDelta("so")),
        (10.6, finished(3)),
    )

    told = facts(transcript)
    assert ("hm", "so") == (told["reasoning"], told["text"])


def test_summary_says_what_speculation_did():
    counted = {"rounds": 4, "judged_tokens": 8, "acceptance_rate": 0.75, "acceptance_length": 2.5}
    speculation = {"proposer": "prompt_lookup", "num_speculative_tokens": 15}
    transcript = played((10.1, admitted(**speculation)), (10.6, finished(10, **counted)))

    told = dict(summary(transcript))
    assert ("75 %", "2.50") == (told["acceptance rate"], told["acceptance length"])
    assert "prompt_lookup, at most 15 tokens a round" == told["speculation"]


def test_unfinished_answer_has_no_summary():
    assert ((), {}) == (summary(played((10.1, admitted()))), facts(played((10.1, admitted()))))

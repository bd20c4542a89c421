import json

import pytest

import outrider
from outrider.events import FinishReason

PROMPT = "Once upon"


@pytest.fixture
def client(address: str):
    with outrider.Client(address) as connected:
        yield connected


def test_answer_is_whole(client: outrider.Client):
    answer = client.complete(PROMPT, max_new_tokens=30)
    assert (30, 30, FinishReason.MAX_TOKENS) == (
        len(answer.tokens),
        answer.finished.completion_tokens,
        answer.reason,
    )
    assert answer.text.encode() == bytes(token.id for token in answer.tokens)
    assert 0 < answer.statistics.accepted_tokens


def test_stream_brings_the_same_answer_in_order(client: outrider.Client):
    answer = client.complete(PROMPT, max_new_tokens=30)
    first, *middle, last = client.stream(PROMPT, max_new_tokens=30)
    rounds = [event for event in middle if isinstance(event, outrider.Round)]
    deltas = [event for event in middle if isinstance(event, outrider.TextDelta)]
    assert isinstance(first, outrider.Admitted)
    assert isinstance(last, outrider.Finished)
    assert answer.tokens == tuple(token for each in rounds for token in each.tokens)
    assert answer.text == "".join(delta.text for delta in deltas)
    assert sum(each.accepted for each in rounds) == last.statistics.accepted_tokens


def test_text_is_the_stream_without_the_rest(client: outrider.Client):
    answer = client.complete(PROMPT, max_new_tokens=30)
    assert answer.text == "".join(client.stream(PROMPT, max_new_tokens=30).text())


def test_plain_and_speculative_answers_are_identical(client: outrider.Client):
    plain = client.complete(PROMPT, max_new_tokens=60, speculation="none")
    wrong = client.complete(PROMPT, max_new_tokens=60, proposer="wrong")
    assert (plain.text, plain.statistics.draft_tokens) == (wrong.text, 0)
    assert 0 < wrong.statistics.draft_tokens
    assert "speculation" in plain.admitted.speculation.off_detail


def test_matched_stop_is_told(client: outrider.Client):
    answer = client.complete("One small", stop=["zzz", "wall"])
    assert "wall" == answer.finished.matched_stop
    assert answer.text.endswith("stone ")


def test_conversation_is_answered(client: outrider.Client):
    answer = client.chat([{"role": "user", "content": "Hello"}], max_new_tokens=40)
    assert "Hello" in answer.text
    assert answer.text == "".join(
        client.stream(outrider.Chat([outrider.Message("user", "Hello")]), max_new_tokens=40).text()
    )


def test_cancelled_stream_ends_without_an_error(client: outrider.Client):
    stream = client.stream(PROMPT, max_new_tokens=4000, stop_on_eos=False)
    events = []
    for event in stream:
        events.append(event)
        stream.cancel()
    assert isinstance(events[0], outrider.Admitted)
    assert not isinstance(events[-1], outrider.Finished)


def test_leaving_a_stream_cancels_it(client: outrider.Client):
    with client.stream(PROMPT, max_new_tokens=4000, stop_on_eos=False) as stream:
        assert isinstance(next(iter(stream)), outrider.Admitted)
    assert [] == [event for event in stream if isinstance(event, outrider.Finished)]


def test_seed_is_told_and_repeats_the_answer(client: outrider.Client):
    first = client.complete(PROMPT, max_new_tokens=30, temperature=1.0)
    options = {"temperature": 1.0, "seed": first.admitted.seed, "num_speculative_tokens": 3}
    again = [client.complete(PROMPT, max_new_tokens=30, **options) for _ in range(2)]
    assert first.admitted.seed == again[0].admitted.seed
    assert again[0].text == again[1].text


def test_refused_request_names_every_field(client: outrider.Client):
    with pytest.raises(outrider.InvalidRequest) as caught:
        client.complete("", top_k=-1)
    fields = [violation.field for violation in caught.value.violations]
    assert ["generation.text", "generation.settings.top_k"] == fields


def test_refused_stream_says_so_when_it_is_read(client: outrider.Client):
    with pytest.raises(outrider.NotFound) as caught:
        list(client.stream(PROMPT, model="nobody"))
    assert ("UNKNOWN_MODEL", "nobody") == (
        caught.value.details.reason,
        caught.value.details.facts["model"],
    )


def test_option_that_is_not_served_is_refused(client: outrider.Client):
    with pytest.raises(outrider.Unserved, match=r"generation\.priority"):
        client.complete(PROMPT, priority=1)


def test_mode_that_is_not_ready_is_refused(client: outrider.Client):
    with pytest.raises(outrider.NotReady):
        client.complete(PROMPT, speculation="eagle3")


def test_timeout_is_a_deadline(client: outrider.Client):
    with pytest.raises(outrider.DeadlineExceeded):
        list(client.stream(PROMPT, max_new_tokens=8000, stop_on_eos=False, timeout=0.001))


def test_no_server_is_unavailable():
    with outrider.Client("127.0.0.1:1") as client, pytest.raises(outrider.Unavailable):
        client.complete(PROMPT)


def test_log_probabilities_are_those_of_the_tokens(client: outrider.Client):
    options = {"max_new_tokens": 20, "logprobs": 2, "prompt_logprobs": 1}
    answer = client.complete(PROMPT, **options)
    first, *_ = (e for e in client.stream(PROMPT, **options) if isinstance(e, outrider.Round))
    for token in answer.tokens:
        likeliest = {other.id: other.logprob for other in token.alternatives}
        assert (2, token.logprob) == (len(likeliest), likeliest[token.id])
    assert len(PROMPT) - 1 == len(answer.prompt_logprobs)
    assert answer.prompt_logprobs == first.prompt_logprobs


def test_constraint_is_met(client: outrider.Client):
    answer = client.complete(PROMPT, choice=["stone", "wall"])
    assert answer.text in {"stone", "wall"}
    assert FinishReason.GRAMMAR_COMPLETE is answer.reason


CITY = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"]}
WEATHER = outrider.Tool("weather", parameters=CITY)
ASKED = """Ask: <tool_call>
{"name": "weather", "arguments": {"city": "Oslo"}}
</tool_call>"""


def test_tool_is_called_answered_and_told_about(client: outrider.Client):
    conversation = [outrider.Message("user", ASKED)]
    answer = client.chat(conversation, tools=[WEATHER], tool_choice={"name": "weather"})
    (call,) = answer.tool_calls
    assert ("weather", {"city": "Oslo"}) == (call.name, call.arguments)
    conversation += [answer.message, outrider.Message("tool", "12", tool_call_id=call.id)]
    told = client.chat(conversation, tools=[WEATHER], tool_choice="none", max_new_tokens=8)
    assert (8, ()) == (told.finished.completion_tokens, told.tool_calls)
    assert "<tool_response>\n12\n</tool_response>" in client.render_chat(conversation)
    assert '"name": "weather"' in client.render_chat(outrider.Chat(conversation, [WEATHER]))


def test_tool_call_comes_piece_by_piece(client: outrider.Client):
    chat = outrider.Chat([outrider.Message("user", ASKED)], [WEATHER], {"name": "weather"})
    kinds = (outrider.ToolCallStart, outrider.ToolArgumentsDelta, outrider.ToolCallEnd)
    start, *pieces, end = (e for e in client.stream(chat) if isinstance(e, kinds))
    assert (outrider.ToolCallStart, outrider.ToolCallEnd) == (type(start), type(end))
    assert {"city": "Oslo"} == json.loads("".join(piece.json_fragment for piece in pieces))


def test_contradictory_options_are_refused_before_they_are_sent(client: outrider.Client):
    with pytest.raises(ValueError, match="json and regex exclude each other"):
        client.complete(PROMPT, json=True, regex="a")


def test_models_tokens_and_rendering(client: outrider.Client):
    (model,) = client.models()
    tokens = client.tokenize("ab")
    assert ("scripted", (97, 98), "ab") == (model.name, tokens, client.detokenize(tokens))
    turns = [outrider.Message("user", "hi")]
    assert "<|bos|><|user|>hi<|reply|>" == client.render_chat(turns)


def test_statistics_and_load(client: outrider.Client):
    before = client.statistics().statistics.completed_requests
    client.complete(PROMPT, max_new_tokens=1)
    assert before < client.statistics().statistics.completed_requests
    assert 8 == client.load().max_lanes

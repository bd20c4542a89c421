"""A scripted model as the runtime holds it, and an engine driven turn by turn."""

from dataclasses import replace

from engines.scripted.clock import ManualClock
from engines.scripted.law import HashLaw, continuation
from engines.scripted.model import (
    ScriptedSettings,
    draft_rule,
    scripted_proposer,
    scripted_target,
)
from engines.scripted.vocabulary import CHAT_TEMPLATE, Special, tokenizer_json
from service.generation.config import GenerationOverrides
from service.runtime.admission import Admission
from service.runtime.engine import Engine
from service.runtime.hand_over import HandOver
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.outbox import Outbox
from service.runtime.preparation import prepare_request
from service.runtime.request import (
    Ended,
    Failed,
    GenerationRequest,
    SpeculationMode,
    SpeculationRequest,
    TextPrompt,
)
from service.runtime.text import ModelText
from service.runtime.ticket import Ticket
from service.speculation.contract import ProposerTraits
from service.speculation.table import RequestTable, Turn
from service.text.chat import ChatTemplate
from service.text.tokenizer import parse_tokenizer

LAW = HashLaw()
SMALL = ScriptedSettings(law=LAW, max_context=128, max_slots=2)
EOS = frozenset({int(Special.EOS)})
TOKENIZER = parse_tokenizer(tokenizer_json(), "scripted")
TEMPLATE = ChatTemplate(CHAT_TEMPLATE, path="scripted", bos_token=Special.BOS.text)
PLAIN = SpeculationRequest(mode=SpeculationMode.NONE)


def loaded_proposer(name, rule="right", mode=SpeculationMode.DRAFT_MODEL, faults=None, **traits):
    proposer = scripted_proposer(name, draft_rule(rule, LAW), faults=faults)
    changed: ProposerTraits = replace(proposer.traits, **traits)
    proposer._traits = changed
    return LoadedProposer(name, mode, proposer)


def loaded_model(settings=SMALL, clock=None, faults=None, **changes):
    model = LoadedModel(
        name="scripted",
        target=scripted_target(settings, clock, faults),
        text=ModelText("scripted", TOKENIZER, TEMPLATE),
        eos_token_ids=EOS,
        defaults=GenerationOverrides(do_sample=False),
    )
    return replace(model, **changes)


def request(text="hello", *, request_id="r", caller="c", max_new_tokens=None, **changes):
    plain = GenerationRequest(
        request_id=request_id,
        caller=caller,
        model="",
        prompt=TextPrompt(text),
        overrides=GenerationOverrides(max_new_tokens=max_new_tokens),
    )
    return replace(plain, **changes)


def expected_tokens(text, length):
    return continuation(LAW, tuple(text.encode()), length, EOS)


def tokens_of(messages):
    rounds = [message for message in messages if not isinstance(message, Ended | Failed)]
    return tuple(commit.token_id for each in rounds for commit in each.tokens)


def drained(ticket):
    """Return every message that is there; the last one, if it is there, once."""
    messages = []
    while (message := ticket.outbox.take()) is not None:
        messages.append(message)
        if isinstance(message, Ended | Failed):
            break
    return messages


class ImmediateLoop:
    """An event loop that makes the calls at once, and counts them."""

    def __init__(self):
        self.calls = 0

    def call_soon_threadsafe(self, callback, *arguments):
        self.calls += 1
        callback(*arguments)


class DrivenEngine:
    """An engine on the test's own thread and clock."""

    def __init__(self, model, clock=None, max_queued=16, capacity=64, table=None):
        self.clock = clock or ManualClock()
        self.model = model
        self.wakes = 0
        self.capacity = capacity
        self.patience = 5.0
        self.loop = ImmediateLoop()
        self.touched = []
        self.admission = Admission(max_queued, model.target.limits.max_slots, self._wake)
        self.table = table or RequestTable(model.target, model.scheduler, self.clock.now)
        hand_over = HandOver(self.loop, self.touched.append)
        self.engine = Engine(model, self.table, self.admission, hand_over, self.clock.now)

    def _wake(self):
        self.wakes += 1

    def ticket(self, request):
        prepared = prepare_request(self.model, request, fixed_width=4)
        now = self.clock.now()
        return Ticket(
            prepared=prepared,
            caller=request.caller,
            outbox=Outbox(self.capacity, self.patience, self.clock.now),
            arrived=now,
            deadline=None if request.timeout is None else now + request.timeout,
        )

    def submit(self, request):
        with self.admission.arrival():
            ticket = self.ticket(request)
            self.admission.submit(ticket)
        return ticket

    def turn(self, count=1):
        for _ in range(count):
            self.engine.turn()

    def run(self, limit=10_000):
        """Turn until nothing is left to do, letting time pass where only a pass could help."""
        for _ in range(limit):
            turn = self.engine.turn()
            if turn is Turn.IDLE and not len(self.admission):
                return
            if turn is Turn.WAITING:
                self._let_time_pass()
        raise AssertionError("the engine did not come to rest")

    def _let_time_pass(self):
        """Go to the end of the next pass or the next deadline, whichever is first."""
        self.engine.on_progress(lambda: None)
        times = (self.clock.next_call(), self.engine.next_deadline())
        self.clock.wait_until(min(time for time in times if time is not None))

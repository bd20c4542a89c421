"""A whole scripted model: a target, its proposers, and what a tokenizer needs to load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engines.scripted.clock import Clock, ManualClock
from engines.scripted.device import HANG, Device
from engines.scripted.fault import FaultPlan
from engines.scripted.law import EchoLaw, HashLaw, Law, MixedLaw
from engines.scripted.proposer import Pace, ScriptedProposer
from engines.scripted.rules import DraftRule, FollowLaw, FollowTarget
from engines.scripted.target import ScriptedTarget
from engines.scripted.timetable import Timetable
from engines.scripted.vocabulary import (
    CHAT_TEMPLATE,
    VOCABULARY_SIZE,
    Special,
    tokenizer_json,
)
from service.generation.config import GenerationOverrides
from service.speculation.capability import DraftSource, ExecutionTopology
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import ProposerTraits, TargetLimits

MAX_PROPOSALS = 16


@dataclass(frozen=True, slots=True)
class ScriptedSettings:
    """What a scripted target can hold, what it says, and how long its passes take.

    Synchronous work is done when it has been submitted; otherwise it ends in
    its own time, and drafting may overlap it.
    """

    law: Law = field(default_factory=EchoLaw)
    max_slots: int = 8
    max_context: int = 8192
    max_pass_lanes: int = 8
    max_pass_rows: int = 1024
    timetable: Timetable = field(default_factory=Timetable)
    is_synchronous: bool = True
    cancellations: frozenset[CompletionCancellation] = frozenset(CompletionCancellation)

    def __post_init__(self) -> None:
        """Refuse a synchronous pass that hangs: its submission would never return."""
        times = (self.timetable.usual, *self.timetable.by_pass.values())
        if self.is_synchronous and HANG in times:
            raise ValueError("a synchronous pass cannot hang")

    def limits(self) -> TargetLimits:
        """Return the limits of the contract."""
        split, single = ExecutionTopology.SAME_DEVICE_SPLIT, ExecutionTopology.SINGLE
        return TargetLimits(
            vocabulary_size=VOCABULARY_SIZE,
            max_context=self.max_context,
            max_slots=self.max_slots,
            max_pass_lanes=self.max_pass_lanes,
            max_pass_rows=self.max_pass_rows,
            cancellations=self.cancellations,
            topology=single if self.is_synchronous else split,
            can_overlap_drafting=not self.is_synchronous,
            supports_component_timings=True,
        )


def scripted_target(
    settings: ScriptedSettings, clock: Clock | None = None, faults: FaultPlan | None = None
) -> ScriptedTarget:
    """Make a target; without a clock its time stands still except for those who wait."""
    device = Device(clock or ManualClock(), is_synchronous=settings.is_synchronous)
    return ScriptedTarget(settings.law, settings.limits(), device, settings.timetable, faults)


def scripted_proposer(
    name: str, rule: DraftRule, pace: Pace | None = None, faults: FaultPlan | None = None
) -> ScriptedProposer:
    """Make a proposer that can branch; it has a distribution where its rule draws from one."""
    traits = ProposerTraits(
        name=name,
        source=DraftSource.SEPARATE,
        max_proposals=MAX_PROPOSALS,
        has_distribution=isinstance(rule, FollowLaw),
        can_branch=True,
    )
    return ScriptedProposer(traits, rule, pace, faults)


DRAFT_RULES = ("right", "wrong", "mostly-right", "own-law")


def draft_rule(name: str, law: Law) -> DraftRule:
    """Return one of the rules that can be asked for by name.

    Raises:
        ValueError: the name is not among `DRAFT_RULES`.
    """
    rules: dict[str, DraftRule] = {
        "right": FollowTarget(law),
        "wrong": FollowTarget(law, (False,)),
        "mostly-right": FollowTarget(law, (True, True, True, False)),
        "own-law": FollowLaw(MixedLaw(law, HashLaw(key=b"draft"))),
    }
    if name not in rules:
        raise ValueError(f"unknown draft rule {name!r}; known: {', '.join(DRAFT_RULES)}")
    return rules[name]


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """What a server needs in place of a model bundle.

    `tokenizer_json` is the content of that file, for the tokenizers library.
    """

    name: str
    target: ScriptedTarget
    proposers: Mapping[str, ScriptedProposer]
    tokenizer_json: str
    chat_template: str
    bos_token: str
    eos_token: str
    eos_token_ids: frozenset[int]
    defaults: GenerationOverrides


def scripted_model(settings: ScriptedSettings, clock: Clock | None = None) -> ScriptedModel:
    """Make the model that `outrider serve --engine scripted` serves: greedy unless asked."""
    target = scripted_target(settings, clock)
    rules = {name: draft_rule(name, settings.law) for name in DRAFT_RULES}
    return ScriptedModel(
        name="scripted",
        target=target,
        proposers={name: scripted_proposer(name, rule) for name, rule in rules.items()},
        tokenizer_json=tokenizer_json(),
        chat_template=CHAT_TEMPLATE,
        bos_token=Special.BOS.text,
        eos_token=Special.EOS.text,
        eos_token_ids=frozenset({int(Special.EOS)}),
        defaults=GenerationOverrides(do_sample=False),
    )

"""Every parameter of a request has an effect, with speculation as without.

The table of proofs is held to the contract's own description: a field that it lacks fails, so
that no new parameter can be dropped silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor

from exactness.fields.table import PROOFS, fields_of_a_request
from exactness.proof import Elsewhere, Proof, Stage
from exactness.result import Result
from service.errors import OutriderError

ROOT = Path(__file__).parents[2]


def check_parameters(stage: Stage) -> Result:
    """Let every proof speak, and look for fields without one."""
    fields = list(fields_of_a_request())
    failures = [failure for field in fields for failure in _failures(field, stage)]
    failures += _superfluous(fields)
    kinds = [type(proof).__name__ for proofs in PROOFS.values() for proof in proofs.values()]
    greedy, sampled = kinds.count("Shows"), kinds.count("Shifts") + kinds.count("Seeds")
    rest = len(kinds) - greedy - sampled
    worst = f"{greedy} shown greedily, {sampled} by their law, {rest} otherwise"
    name = stage.subject.name
    return Result("every parameter", name, len(fields), worst, tuple(failures))


def _failures(field: FieldDescriptor, stage: Stage) -> Iterator[str]:
    message, _, own = field.full_name.rpartition(".")
    proof = PROOFS.get(message, {}).get(own)
    name = field.full_name.removeprefix("outrider.v1.")
    if proof is None:
        yield f"{name}: nothing shows its effect"
        return
    try:
        for problem in _problems(proof, stage):
            yield f"{name}: {problem}"
    except (OutriderError, ValueError) as error:
        yield f"{name}: {type(error).__name__}: {error}"


def _problems(proof: Proof, stage: Stage) -> Iterator[str]:
    if isinstance(proof, Elsewhere):
        source = (ROOT / proof.path).read_text(encoding="utf-8")
        if not re.search(rf"^(async )?def {re.escape(proof.test)}\(", source, re.MULTILINE):
            yield f"{proof.path} has no {proof.test}"
    yield from proof.problems(stage)


def _superfluous(fields: list[FieldDescriptor]) -> list[str]:
    known = {field.full_name for field in fields}
    named = {f"{message}.{name}" for message, proofs in PROOFS.items() for name in proofs}
    return [f"{name}: is no field of a request" for name in sorted(named - known)]

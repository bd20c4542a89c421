"""Which tokens may come at all, by the request's settings and its constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engines.scripted.distribution import Weights
from service.errors import NothingAllowed
from service.speculation.contract import Constraint, SamplingInput

Permits = Callable[[int], bool]
Rules = Mapping[str, Permits]
"""The field of each setting that forbids something, and which tokens it permits."""


def setting_rules(request: SamplingInput, position: int) -> Rules:
    """Return the rules of the settings that forbid tokens at a position of the output."""
    config, ends = request.config, request.end_token_ids
    allowed, banned = config.allowed_token_ids, config.banned_token_ids
    rules: dict[str, Permits] = {}
    if allowed is not None:
        rules["settings.allowed_token_ids"] = lambda token: token in allowed
    if banned:
        rules["settings.banned_token_ids"] = lambda token: token not in banned
    if ends and position < config.min_new_tokens:
        rules["settings.min_new_tokens"] = lambda token: token not in ends
    return rules


def mask_rule(constraint: Constraint) -> Permits:
    """Return the rule of a constraint's mask; what lies beyond the mask is forbidden."""
    mask = constraint.mask()

    def permits(token: int) -> bool:
        byte, bit = divmod(token, 8)
        return byte < len(mask) and bool(mask[byte] >> bit & 1)

    return permits


def row_rules(request: SamplingInput, constraint: Constraint | None, position: int) -> Rules:
    """Return all rules for one row.

    Raises:
        ConstraintFailed: the constraint's mask cannot be computed.
    """
    rules = setting_rules(request, position)
    if constraint is None:
        return rules
    return {constraint.field: mask_rule(constraint), **rules}


def permitted(row: Weights, rules: Rules, position: int) -> Weights:
    """Return the part of a row that every rule permits.

    Raises:
        NothingAllowed: that is nothing; it names the fields that are to blame.
    """
    kept = row
    for permits in rules.values():
        kept = {token: logit for token, logit in kept.items() if permits(token)}
    if not kept:
        raise NothingAllowed(position, _culprits(row, rules))
    return kept


def permit(token: int, rules: Rules) -> bool:
    """Whether every rule permits a token."""
    return all(permits(token) for permits in rules.values())


def _culprits(row: Weights, rules: Rules) -> tuple[str, ...]:
    """Return the fields that leave nothing together, without those that need not be there.

    The last are dropped first, so that a constraint is blamed before a setting.
    """
    blamed = dict(rules)
    for field in reversed(tuple(rules)):
        others = {name: permits for name, permits in blamed.items() if name != field}
        if not any(permit(token, others) for token in row):
            blamed = others
    return tuple(blamed)

"""What several steps refuse of one request, gathered so that all of it is named at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from service.errors import FieldViolation, InvalidRequest, OutriderError

T = TypeVar("T")


class Refusals:
    """Gathers the violations that steps find which do not depend on one another."""

    def __init__(self, violations: Iterable[FieldViolation] = ()) -> None:
        self._found = [*violations]

    @property
    def found(self) -> tuple[FieldViolation, ...]:
        """Return what was gathered so far, each violation once."""
        return tuple(dict.fromkeys(self._found))

    def add(self, violations: Iterable[FieldViolation]) -> None:
        """Gather some more."""
        self._found.extend(violations)

    def attempt(self, step: Callable[[], T], otherwise: T) -> T:
        """Return what a step returns, or a stand-in where it refuses fields: these are gathered.

        Raises:
            InvalidRequest: the step failed otherwise, but fields were refused before it.
            OutriderError: the step failed otherwise, and none were.
        """
        try:
            return step()
        except InvalidRequest as refused:
            self.add(refused.violations)
            return otherwise
        except OutriderError:
            self.settle()
            raise

    def settle(self) -> None:
        """Accept a request of which nothing was refused.

        Raises:
            InvalidRequest: something was; all of it is named, each violation once.
        """
        if self._found:
            raise InvalidRequest(*self.found)

"""The completion of work that is done when its submission returns."""

from __future__ import annotations

from collections.abc import Callable

from service.speculation.completion import BoundedWait, Completed


class Done:
    """A completion of finished work; failed work raised at its submission instead."""

    def is_complete(self) -> bool:
        return True

    def wait(self) -> None:
        return

    def wait_bounded(self, policy: BoundedWait) -> Completed:
        """Return at once: no deadline can find finished work live."""
        del policy
        return Completed()

    def on_complete(self, callback: Callable[[], None]) -> None:
        """Call back at once."""
        callback()

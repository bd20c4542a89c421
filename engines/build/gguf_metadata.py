"""The metadata of a GGUF file, typed, with refusals that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import gguf

from service.errors import BundleError

T = TypeVar("T")


class GgufMetadata:
    """Reads metadata by key, each as the type that the format gives it.

    Raises BundleError, naming file and key, for what is absent without a default
    and for what has another type.
    """

    def __init__(self, path: Path, fields: Mapping[str, gguf.ReaderField]) -> None:
        self._path = path
        self._fields = fields

    def refusal(self, field: str, message: str) -> BundleError:
        """Make the error for a metadata key or tensor that a bundle cannot represent."""
        return BundleError(message, path=str(self._path), field=field)

    def has(self, key: str) -> bool:
        return key in self._fields

    def text(self, key: str, default: str | None = None) -> str:
        return self._value(key, str, default)

    def integer(self, key: str, default: int | None = None) -> int:
        return self._value(key, int, default)

    def number(self, key: str, default: float | None = None) -> float:
        return self._value(key, float, default)

    def flag(self, key: str, *, default: bool) -> bool:
        return self._value(key, bool, default)

    def strings(self, key: str) -> list[str]:
        return self._list(key, str)

    def integers(self, key: str) -> list[int]:
        return self._list(key, int)

    def require(self, key: str, *accepted: str | float) -> None:
        """Refuse a key that is there with a value other than those accepted."""
        found = self._fields[key].contents() if self.has(key) else accepted[0]
        if found not in accepted:
            wanted = " or ".join(map(repr, accepted))
            raise self.refusal(key, f"is {found!r}; only {wanted} can be represented")

    def _list(self, key: str, kind: type[T]) -> list[T]:
        values = self._value(key, list, None)
        if not all(isinstance(value, kind) for value in values):
            raise self.refusal(key, f"metadata must be a list of {kind.__name__}")
        return values

    def _value(self, key: str, kind: type[T], default: T | None) -> T:
        if not self.has(key):
            if default is None:
                raise self.refusal(key, "metadata is missing")
            return default
        value = self._fields[key].contents()
        if not isinstance(value, kind):
            message = f"metadata must be {kind.__name__}, not {type(value).__name__}"
            raise self.refusal(key, message)
        return value

"""JSON to dataclasses: what fits, and the path of what does not."""

from dataclasses import dataclass

import pytest

from engines.bundle.decode import MisfitError, decode


@dataclass(frozen=True)
class Inner:
    size: int
    name: str | None


@dataclass(frozen=True)
class Outer:
    ratio: float
    items: tuple[Inner, ...]
    by_name: dict[str, int]


GOOD = {"ratio": 2, "items": [{"size": 1, "name": None}], "by_name": {"a": 1}}


def test_decode_of_a_fitting_document_builds_every_level() -> None:
    expected = Outer(2.0, (Inner(1, None),), {"a": 1})

    assert expected == decode(Outer, GOOD)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"ratio": "2"}, "ratio"),
        ({"ratio": True}, "ratio"),
        ({"ratio": 10**400}, "ratio"),
        ({"items": {}}, "items"),
        ({"items": [{"size": 1, "name": "a"}, {"size": "1", "name": "b"}]}, "items[1].size"),
        ({"items": [{"size": True, "name": "a"}]}, "items[0].size"),
        ({"items": [{"size": 1}]}, "items[0].name"),
        ({"by_name": {"a": 1.5}}, "by_name.a"),
        ({"by_name": []}, "by_name"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_decode_of_a_misfit_names_its_path(change: dict[str, object], field: str) -> None:
    with pytest.raises(MisfitError) as caught:
        decode(Outer, GOOD | change)

    assert field == caught.value.field


def test_decode_of_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(MisfitError, match="must be an object"):
        decode(Outer, [])

"""The short form of the suite holds."""

import json
from functools import partial

from exactness.__main__ import main
from exactness.fields.table import PROOFS, fields_of_a_request
from exactness.result import Result
from exactness.suite import short_checks
from service.errors import EngineError


def test_short_form_holds() -> None:
    results = [check() for check in short_checks()]

    assert [] == [failure for result in results for failure in result.failures]
    assert all(result.holds for result in results)


def test_table_names_the_fields_of_a_request_and_no_others() -> None:
    named = {f"{message}.{field}" for message, proofs in PROOFS.items() for field in proofs}

    assert named == {field.full_name for field in fields_of_a_request()}


def test_command_fails_where_a_check_does(monkeypatch, capsys, tmp_path) -> None:
    failed = partial(Result, "greedy = plain", "an engine", 1, "", ("prompt 3 differs",))
    monkeypatch.setattr("sys.argv", ["exactness", "--short", "--json", str(tmp_path / "out")])
    monkeypatch.setattr("exactness.__main__.short_checks", lambda: iter([failed]))

    assert 1 == main()
    assert "prompt 3 differs" in capsys.readouterr().out
    assert [False] == [
        each["holds"] for each in json.loads((tmp_path / "out").read_text())["results"]
    ]


def test_check_that_cannot_be_carried_out_fails(monkeypatch, capsys) -> None:
    def check_nothing() -> Result:
        raise EngineError("no such thing")

    monkeypatch.setattr("sys.argv", ["exactness", "--short"])
    monkeypatch.setattr("exactness.__main__.short_checks", lambda: iter([partial(check_nothing)]))

    assert 1 == main()
    assert "EngineError: no such thing" in capsys.readouterr().out


def test_nothing_checked_is_nothing_shown() -> None:
    assert not Result("greedy = plain", "an engine", 0, "").holds

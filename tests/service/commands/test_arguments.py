import pytest

from service.commands.arguments import parse
from service.commands.settings import settings_flags
from service.errors import InvalidSettings
from service.runtime.settings_sources import known_settings


def test_flags_of_settings_are_named_by_key():
    arguments = parse(
        ["serve", "--port", "0", "--bundle", "a", "--bundle", "b=c", "--engine", "onnx"]
    )

    expected = {"server.port": "0", "model.bundles": ["a", "b=c"], "model.engine": "onnx"}
    assert expected == settings_flags(arguments)


def test_set_reaches_every_setting_and_wins_over_its_shorthand():
    arguments = parse(["serve", "--port", "1", "--set", "server.port=2"])

    assert {"server.port": "2"} == settings_flags(arguments)


def test_set_without_a_value_is_refused():
    with pytest.raises(InvalidSettings, match=r"server\.port: flag: --set takes KEY=VALUE"):
        settings_flags(parse(["serve", "--set", "server.port"]))


def test_help_of_serve_lists_every_setting(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(["serve", "--help"])

    shown = capsys.readouterr().out
    assert 0 == ended.value.code
    assert [] == [setting.key for setting in known_settings() if setting.key not in shown]


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["serve", "--fly"], "unrecognized arguments: --fly"),
        (["build", "--weights", "f8"], "--weights"),
        (["inspect", "a", "b"], "unrecognized arguments: b"),
    ],
)
def test_mistake_ends_with_status_two_and_one_line(argv, complaint, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(argv)

    lines = capsys.readouterr().err.splitlines()
    assert (2, 1) == (ended.value.code, len(lines))
    assert complaint in lines[0]

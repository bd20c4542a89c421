import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.dialects.steps.progress import Arguments, Broken, Complete, Next
from service.text.dialects.steps.python_call import PythonArguments, json_object


@pytest.mark.parametrize(
    ("keywords", "members"),
    [
        ("", {}),
        (" ", {}),
        ('query="a"', {"query": "a"}),
        ("a = 'it\\'s', b=-1.5e3", {"a": "it's", "b": -1500.0}),
        ("a=True, b=None, c=false", {"a": True, "b": None, "c": False}),
        ("a=[1, {'k': [\"v\"]}], True=0", {"a": [1, {"k": ["v"]}], "True": 0}),
        (r'a="\n\t\\\"\x41\u00e9\d"', {"a": '\n\t\\"Aé\\d'}),
        ('a="two\nlines", b="é👩"', {"a": "two\nlines", "b": "é👩"}),
    ],
)
def test_keywords_are_one_json_object(keywords, members):
    assert members == json.loads(json_object(keywords))


@pytest.mark.parametrize(
    "keywords",
    [
        "1",
        '"a"',
        '"a": 1',
        "a: 1",
        "a=1,",
        "a=1, a=2",
        "a=b",
        "a=b=1",
        "a=f(1",
        "a=1 b=2",
        "a={b=1}",
        "a={'k': 1, 'k': 2}",
        'a="b',
        "a=[1",
        "a=01",
        "a=" + "[" * 65 + "]" * 65,
    ],
)
def test_other_expressions_are_none(keywords):
    assert json_object(keywords) is None


@given(value=st.text())
def test_any_string_is_itself(value):
    written = value.replace("\\", "\\\\").replace('"', '\\"')

    assert {"a": value} == json.loads(json_object(f'a="{written}"'))


@pytest.mark.parametrize("size", range(1, 36))
def test_arguments_end_at_the_bracket_outside_strings(size):
    text, step = r"""a="(')\")", b='")\\', c="\\\")"); rest""", PythonArguments("after")
    for start in range(0, len(text), size):
        progress = step.read(text[start : start + size])
        if isinstance(progress.then, Next):
            break
        step = progress.then
    rest = progress.then.rest + text[start + size :]

    assert "; rest" == rest
    assert (Arguments(r"""{"a":"(')\")","b":"\")\\","c":"\\\")"}"""), Complete()) == progress.found


def test_arguments_that_are_no_literals_break():
    assert isinstance(PythonArguments("after").read("os.environ)").then, Broken)

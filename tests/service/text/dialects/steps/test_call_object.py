import pytest

from service.text.dialects.steps.call_object import CallObject
from service.text.dialects.steps.progress import Arguments, Broken, Complete, Named, Next


def read(pieces):
    """Return how the call went on, what it found, and what it left."""
    call, found = CallObject("after"), []
    for place, piece in enumerate(pieces):
        progress = call.read(piece)
        found += progress.found
        if not isinstance(progress.then, CallObject):
            then = progress.then
            rest = then.rest if isinstance(then, Next) else ""
            return then, found, rest + "".join(pieces[place + 1 :])
        call = progress.then
    return call, found, ""


def test_arguments_flow_as_soon_as_the_name_is_known():
    _, found, _ = read(['{"name":"a","arguments":{"x":', '"long', ' text"', "}", "}"])

    assert [
        Named("a"),
        Arguments('{"x":'),
        Arguments('"long'),
        Arguments(' text"'),
        Arguments("}"),
        Complete(),
    ] == found


def test_arguments_wait_for_the_name():
    call, found, _ = read(['{"arguments":{"x":', "1}", ', "name":"a'])
    assert [] == found

    assert (Named("a"), Arguments('{"x":1}')) == call.read('"').found


def test_call_ends_with_its_last_brace():
    then, _, rest = read(['{"name":"a","arguments":{}} }'])

    assert "after" == then.step
    assert " }" == rest


def test_call_is_not_complete_before_its_last_brace():
    call, found, _ = read(['{"name":"a","arguments":{}'])

    assert isinstance(call, CallObject)
    assert Complete() not in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[", []),
        ("{}", []),
        ('{"arguments":{}}', []),
        ('{"arguments":{},"arguments":{}', []),
        ('{"arguments":"{}"', []),
        ('{"name":{}', []),
        ('{"id":1', []),
        ('{"id":"1","id":"2"', []),
        ('{"other":x', []),
        ('{"other":1 2', []),
        ('{"a":1,}', []),
        ('{"a";', []),
        ('{"name":"a"}', [Named("a")]),
        ('{"name":"a","name":"b"', [Named("a")]),
        ('{"name":"a","arguments":{x', [Named("a"), Arguments("{")]),
        ('{"name":"a","arguments":{},"parameters":{}', [Named("a"), Arguments("{}")]),
    ],
)
def test_what_is_no_call_breaks(text, found):
    for pieces in ([text], list(text)):
        then, told, _ = read(pieces)
        arguments = "".join(item.fragment for item in told if isinstance(item, Arguments))

        assert isinstance(then, Broken)
        assert found[:1] == told[:1]
        assert "".join(item.fragment for item in found[1:]) == arguments


def test_other_members_may_repeat():
    then, _, _ = read(['{"x":1,"x":2,"name":"a","arguments":{}}'])

    assert isinstance(then, Next)

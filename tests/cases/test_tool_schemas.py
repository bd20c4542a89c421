"""The schemas of tools: the second place where a grammar comes from a client."""

from __future__ import annotations

import json
import time

import grpc
import pytest

from engines.scripted.law import HashLaw
from outrider.v1 import chat_pb2, generation_pb2
from tests.cases.asking import told
from tests.cases.refusing import beside_a_control, refused, violations_of
from tests.cases.stage import staged

pytestmark = pytest.mark.asyncio

OBJECT = {"type": "object"}
SCHEMAS = {
    "no JSON": "{",
    "no object": "[]",
    "unknown type": '{"type":"objekt"}',
    "nothing matches": "false",
    "minimum above maximum": json.dumps(
        {**OBJECT, "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 1}}}
        | {"required": ["a"]}
    ),
    "remote reference": '{"$ref":"http://127.0.0.1:9/schema.json"}',
    "open class": json.dumps(
        {**OBJECT, "properties": {"a": {"type": "string", "pattern": "[a-z"}}}
    ),
    "100 000 of a choice": json.dumps(
        {**OBJECT, "properties": {"a": {"enum": [f"word {place}" for place in range(100_000)]}}}
    ),
    "2 000 deep": '{"properties":{"a":' * 2000 + "{}" + "}}" * 2000,
}


def offering(schema: str) -> generation_pb2.Generation:
    """Return a request with two tools, the second of which has this schema."""
    message = told("weather?", "hermes", max_new_tokens=4)
    message.chat.tools.append(chat_pb2.Tool(name="good"))
    message.chat.tools.append(chat_pb2.Tool(name="bad", parameters_json_schema=schema))
    return message


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
async def test_b33_a_malformed_schema_of_a_tool_is_refused_by_its_place(schema):
    """B33: what is refused as a constraint is refused as a tool's schema too, and as soon."""
    async with beside_a_control(staged(HashLaw(), max_context=8192)) as server:
        began = time.perf_counter()
        error = await refused(server, offering(schema))
        assert time.perf_counter() - began < 1.0

    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    ((field, description),) = violations_of(error).items()
    assert "chat.tools[1].parameters_json_schema" == field
    assert 3 < len(description) < 1000

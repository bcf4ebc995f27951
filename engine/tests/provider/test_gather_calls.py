from typing import Any

import pytest

from engine.provider.model import ProviderError
from engine.tests.provider.chunks import chunk, gathered, piece

CALLS = [
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments=""),
            piece(index=1, id="b", name="g", arguments='{"y"'),
            piece(index=0, arguments='{"x":1}'),
            piece(index=1, arguments=":2}"),
        ],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
        id="by index, interleaved",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{"),
            piece(index=0, id="a", name="f", arguments="}"),
        ],
        [("a", "f", "{}")],
        id="id and name repeated",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{}"),
            piece(index=0, id="b", name="f", arguments='{"x":1}'),
        ],
        [("a", "f", "{}"), ("b", "f", '{"x":1}')],
        id="every call at index 0",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{"),
            piece(index=0, id="another", arguments="}"),
        ],
        [("a", "f", "{}")],
        id="another id with every piece",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments="{}"), piece(id="b", name="f", arguments="{}")],
        [("a", "f", "{}"), ("b", "f", "{}")],
        id="whole calls without index",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments="{"), piece(arguments="}")],
        [("a", "f", "{}")],
        id="continued without index and id",
    ),
    pytest.param(
        [piece(id="a", name="f", arguments={"x": 1})], [("a", "f", '{"x":1}')], id="an object"
    ),
    pytest.param([piece(id="a", name="f", arguments=None)], [("a", "f", "{}")], id="no arguments"),
    pytest.param(
        [
            chunk(function_call={"name": "f", "arguments": ""}),
            chunk(function_call={"arguments": '{"x":1}'}),
        ],
        [(None, "f", '{"x":1}')],
        id="the legacy form",
    ),
    pytest.param(
        [piece(name="f", arguments="{}"), piece(name="f", arguments="{}")],
        [(None, "f", "{}"), (None, "f", "{}")],
        id="no ids at all",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments="{}"),
            piece(index=1, id="a", name="g", arguments="{}"),
        ],
        [("a", "f", "{}"), (None, "g", "{}")],
        id="one id for two calls",
    ),
    pytest.param(
        [
            piece(index=0, id="", name="f", arguments='{"x":1}'),
            piece(index=0, id="", name="f", arguments='{"x":2}'),
        ],
        [(None, "f", '{"x":1}'), (None, "f", '{"x":2}')],
        id="one index and no id",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments='{"x":1}'),
            piece(index=0, id="a", name="f", arguments='{"x":2}'),
        ],
        [("a", "f", '{"x":1}'), (None, "f", '{"x":2}')],
        id="one index and one id",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments='{"x":'),
            piece(index=0, arguments='{"y":1}'),
            piece(index=0, arguments="}"),
            piece(index=0, arguments='{"x":2}'),
        ],
        [("a", "f", '{"x":{"y":1}}'), (None, "f", '{"x":2}')],
        id="an object inside of another, and one after it",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments='{"x":1}'),
            piece(index=0, id="a", name="f", arguments='{"x":1}'),
        ],
        [("a", "f", '{"x":1}')],
        id="a whole call said twice",
    ),
    pytest.param(
        [
            chunk(
                tool_calls=[
                    {"function": {"name": "f", "arguments": ""}},
                    {"index": 0, "function": {"name": "f"}},
                    {"index": 0, "function": {"name": "f"}},
                ]
            )
        ],
        [(None, "f", "{}")] * 3,
        id="calls without arguments in one event",
    ),
    pytest.param(
        [
            piece(index=0, id="a", name="f", arguments=""),
            piece(index=0, name="g", arguments=""),
        ],
        [("a", "f", "{}"), (None, "g", "{}")],
        id="another name at the same index",
    ),
    pytest.param(
        [
            chunk(tool_calls=[{"index": 0, "id": "a", "type": "function"}]),
            chunk(tool_calls=[{"index": 0, "id": None, "function": None}]),
            piece(index=0, name="f", arguments='{"x":1}'),
            chunk(tool_calls=[{"index": 1, "id": "b", "type": "function"}]),
        ],
        [("a", "f", '{"x":1}')],
        id="pieces without a function",
    ),
]


@pytest.mark.parametrize(("payloads", "expected"), CALLS)
@pytest.mark.parametrize("reason", ["tool_calls", "stop", "function_call"])
def test_calls_are_put_together(payloads: list[bytes], expected: list[Any], reason: str) -> None:
    gatherer = gathered(*payloads, chunk(reason), b"[DONE]")
    calls = list(gatherer.calls())

    assert gatherer.finish() == "tool_calls"
    assert [(c.name, c.arguments) for c in calls] == [(n, a) for _, n, a in expected]
    for found, (call_id, _, _) in zip(calls, expected, strict=True):
        assert found.id == call_id if call_id else found.id.startswith("call_")
    assert len({c.id for c in calls}) == len(calls)


def test_a_call_without_a_name_is_malformed() -> None:
    with pytest.raises(ProviderError) as caught:
        list(gathered(piece(index=0, arguments="{}")).calls())
    assert caught.value.code == "provider_malformed"

"""How servers write calls of tools."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tests.habits.habit import (
    JSON_TYPE,
    Exchange,
    Expected,
    Habit,
    Json,
    Played,
    answer,
    chunk,
    counted,
    event,
    refused,
    streamed,
    whole,
    written,
)

Call = tuple[str, Json]
TWO = Expected(calls=2)
ONE = Expected(calls=1)


def _calls(
    write: Callable[[Exchange, list[Call]], Sequence[Json]], reason: str = "tool_calls"
) -> Callable[[Exchange], Played]:
    """Calls two tools as `write` does it, then answers."""

    def play(x: Exchange) -> Played:
        calls = x.calls()
        if not calls:
            return streamed(answer())
        return streamed([*write(x, calls), chunk({}, reason), counted()])

    return play


def _piece(name: str | None, arguments: Any, **more: Any) -> Json:
    function = {**({"name": name} if name is not None else {}), "arguments": arguments}
    return {**more, "function": function}


def _in_pieces(x: Exchange, calls: list[Call]) -> list[Json]:
    """As OpenAI: head first, then arguments letter by letter."""
    events = [chunk({"role": "assistant", "content": None})]
    for i, (name, values) in enumerate(calls):
        head = _piece(name, "", index=i, id=f"call_{x.serial}_{i}", type="function")
        events.append(chunk({"tool_calls": [head]}))
        events += [chunk({"tool_calls": [_piece(None, c, index=i)]}) for c in written(values)]
    return events


def _interleaved(x: Exchange, calls: list[Call]) -> list[Json]:
    heads = [_piece(n, "", index=i, id=f"call_{x.serial}_{i}") for i, (n, _) in enumerate(calls)]
    rests = [_piece(None, written(values), index=i) for i, (_, values) in enumerate(calls)]
    return [chunk({"tool_calls": heads}), chunk({"tool_calls": rests})]


def _whole(x: Exchange, calls: list[Call], **more: Any) -> list[Json]:
    return [
        chunk(
            {
                "tool_calls": [
                    _piece(
                        name, written(values), id=f"call_{x.serial}_{i}", type="function", **more
                    )
                ]
            }
        )
        for i, (name, values) in enumerate(calls)
    ]


def _index_0(x: Exchange, calls: list[Call]) -> list[Json]:
    return _whole(x, calls, index=0)


def _no_ids(x: Exchange, calls: list[Call]) -> list[Json]:
    pieces = [
        _piece(name, written(values), index=i, id="") for i, (name, values) in enumerate(calls)
    ]
    return [chunk({"tool_calls": pieces})]


def _one_id(x: Exchange, calls: list[Call]) -> list[Json]:
    pieces = [
        _piece(n, written(values), index=i, id="call_0") for i, (n, values) in enumerate(calls)
    ]
    return [chunk({"tool_calls": pieces})]


def _named_again(x: Exchange, calls: list[Call]) -> list[Json]:
    """Id and name with every piece, and an empty name (LM Studio) or null type in others."""
    events = []
    for i, (name, values) in enumerate(calls):
        for part in ("", *written(values)):
            piece = _piece(name, part, index=i, id=f"call_{x.serial}_{i}", type=None)
            events.append(chunk({"content": "", "tool_calls": [piece]}))
    return events


def _objects(x: Exchange, calls: list[Call]) -> list[Json]:
    return [
        chunk({"tool_calls": [_piece(n, v, index=i, id=f"c{i}") for i, (n, v) in enumerate(calls)]})
    ]


def _with_text(x: Exchange, calls: list[Call]) -> list[Json]:
    return [chunk({"role": "assistant", "content": "Let me look."}), *_in_pieces(x, calls)[1:]]


def _with_reason(x: Exchange) -> Played:
    """The calls and the end in one chunk."""
    calls = x.calls()
    if not calls:
        return streamed(answer())
    pieces = [
        _piece(n, written(v), index=i, id=f"call_{x.serial}_{i}") for i, (n, v) in enumerate(calls)
    ]
    return streamed([chunk({"role": "assistant", "tool_calls": pieces}, "tool_calls"), counted()])


def _never_streams(x: Exchange) -> Played:
    calls = x.calls()
    if not calls:
        return streamed(answer())
    pieces = [
        _piece(n, written(v), id=f"call_{x.serial}_{i}", type="function")
        for i, (n, v) in enumerate(calls)
    ]
    body = whole({"content": None, "tool_calls": pieces}, "tool_calls")
    return Played([orjson.dumps(body)], content_type=JSON_TYPE)


def _function_call(x: Exchange) -> Played:
    """OpenAI's first form of calls, in pieces."""
    calls = x.calls()[:1]
    if not calls:
        return streamed(answer())
    name, values = calls[0]
    head = chunk(
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": ""}}
    )
    rest = [chunk({"function_call": {"arguments": c}}) for c in written(values)]
    return streamed([head, *rest, chunk({}, "function_call"), counted()])


def _chatglm3(x: Exchange) -> Played:
    """ChatGLM3's own server: the text of the call first, then the call, then `stop`."""
    if "tools" in x.request or not isinstance(x.request.get("functions", {}), dict):
        return refused(422, {"detail": "functions must be a dict"})
    calls = x.calls()[:1]
    if not calls:
        return streamed(answer())
    name, values = calls[0]
    keywords = ", ".join(f"{key}={value!r}" for key, value in values.items())
    text = f"{name}\n ```python\ntool_call({keywords})\n```"
    events = [
        chunk({"role": "assistant", "content": text[i : i + 3]}) for i in range(0, len(text), 3)
    ]
    call = {"name": name, "arguments": written(values)}
    last = chunk({"role": "assistant", "content": "", "function_call": call}, "function_call")
    return Played([*map(event, [*events, last, chunk({}, "stop"), counted()]), b"data: [DONE]\n\n"])


HABITS = [
    Habit("calls", "OpenAI", "calls two tools, in pieces", _calls(_in_pieces), TWO),
    Habit(
        "calls-interleaved",
        "OpenAI, vLLM",
        "mixes the pieces of two calls",
        _calls(_interleaved),
        TWO,
    ),
    Habit(
        "calls-no-index", "older Ollama, Gemini", "gives whole calls no index", _calls(_whole), TWO
    ),
    Habit("calls-index-0", "Ollama", "gives every call the index 0", _calls(_index_0), TWO),
    Habit("calls-no-id", "LM Studio, Gemini", "gives calls an empty id", _calls(_no_ids), TWO),
    Habit("calls-one-id", "small servers", "gives two calls one id", _calls(_one_id), TWO),
    Habit(
        "calls-named-again",
        "small servers",
        "repeats id and name with every piece",
        _calls(_named_again),
        TWO,
    ),
    Habit(
        "calls-objects",
        "gateways to Ollama",
        "writes arguments as an object",
        _calls(_objects),
        TWO,
    ),
    Habit(
        "calls-with-text",
        "gateways to Anthropic",
        "says something before it calls",
        _calls(_with_text),
        TWO,
    ),
    Habit("calls-with-reason", "Mistral, Gemini", "calls and ends in one chunk", _with_reason, TWO),
    Habit(
        "calls-stop", "Ollama, Gemini", "ends calls with `stop`", _calls(_in_pieces, "stop"), TWO
    ),
    Habit(
        "calls-tool-use",
        "gateways to Anthropic",
        "ends calls with `tool_use`",
        _calls(_in_pieces, "tool_use"),
        TWO,
    ),
    Habit("calls-never-streams", "small servers", "calls in one JSON object", _never_streams, TWO),
    Habit(
        "function-call",
        "older servers",
        "calls by `function_call`",
        _function_call,
        ONE,
        row={"tool_dialect": "functions"},
    ),
    Habit(
        "chatglm3",
        "ChatGLM3",
        "streams a call as text before it calls",
        _chatglm3,
        ONE,
        row={"tool_dialect": "chatglm3"},
    ),
]

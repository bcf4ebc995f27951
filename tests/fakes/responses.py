"""Answer as OpenAI's Responses API does, and refuse what it refuses, in its words.

Pure. `tests.fakes.provider` serves it at /v1/responses. A model that is offered tools calls the first two of
them, or what a marker says, unless results came last; then it answers with what they said. By the model's name:

    gpt-thinks     reasons before each of these, encrypted, and wants its items back with the calls
    gpt-plain      does not reason, and refuses to be asked for encrypted reasoning
    gpt-cut        ends for lack of room (incomplete)
    gpt-failed     fails on the way (response.failed);  gpt-breaks  sends an error event
    gpt-whole      one JSON object, whatever is asked for
    gpt-limited    429

https://platform.openai.com/docs/api-reference/responses and …/responses-streaming.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tests.fakes import answers

Json = dict[str, Any]

FIELDS = {
    *("model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice"),
    *(
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "text",
        "reasoning",
        "user",
    ),
    *("metadata", "service_tier", "prompt_cache_key", "safety_identifier", "truncation"),
}
PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal"},
}


class Refused(Exception):
    def __init__(
        self, message: str, param: str | None = None, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status == 400 else "requests"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(headers: dict[bytes, bytes], body: bytes) -> tuple[Json, bytes | None]:
    """Return the whole answer, and the stream that says the same; None where it does not stream.
    Raises Refused."""
    request: Json = orjson.loads(body)
    if not headers.get(b"authorization", b"").startswith(b"Bearer "):
        raise Refused("Missing bearer authentication in header", status=401)
    if request["model"] == "gpt-limited":
        raise Refused("Rate limit reached", status=429, code="rate_limit_exceeded")
    _check(request)
    response = _response(request, answers.markers(body))
    is_whole = request["model"] == "gpt-whole" or not request.get("stream")
    return response, None if is_whole else b"".join(_events(response))


def encrypted(thought: str) -> str:
    return "gAAAA" + hashlib.sha256(thought.encode()).hexdigest()[:24]


# -- What it refuses ------------------------------------------------------------------------------


def _demand(is_met: object, message: str, param: str | None = None) -> None:
    if not is_met:
        raise Refused(message, param)


def _check(request: Json) -> None:
    for name in request:
        _demand(name in FIELDS, f"Unknown parameter: '{name}'.", name)
    _demand(request.get("store") is False, "These tests store nothing.", "store")
    is_encrypted = "reasoning.encrypted_content" in request.get("include", [])
    is_plain = request["model"] == "gpt-plain"
    _demand(
        not (is_encrypted and is_plain),
        "Encrypted content is not supported with this model.",
        "include",
    )
    limit = request.get("max_output_tokens", 16)
    _demand(
        limit >= 16,
        "Invalid 'max_output_tokens': integer below minimum value.",
        "max_output_tokens",
    )
    is_cool = request["model"] != "gpt-thinks" or "temperature" not in request
    _demand(
        is_cool,
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "temperature",
    )
    for tool in request.get("tools", []):
        _demand(
            tool.keys() >= {"type", "name", "parameters", "strict"},
            "Missing required parameter: 'tools[0].name'.",
        )
        has_one_form = not {"anyOf", "oneOf", "allOf", "enum", "not"} & tool["parameters"].keys()
        _demand(
            has_one_form,
            "Invalid schema for function: schema must not have 'oneOf' at the top level",
        )
        closed = tool["parameters"].get("additionalProperties") is False
        _demand(
            closed or not tool["strict"],
            "Invalid schema for function: 'additionalProperties' is required",
        )
    wanted = request.get("text", {}).get("format", {"type": "text"})
    is_named = wanted["type"] != "json_schema" or {"name", "schema"} <= wanted.keys()
    _demand(is_named, "Missing required parameter: 'text.format.name'.", "text.format.name")
    _check_input(request["input"])


def _check_input(items: Sequence[Json]) -> None:
    waiting: list[str] = []
    for number, item in enumerate(items):
        match item.get("type", "message"):
            case "message":
                content = item["content"]
                kinds = {part["type"] for part in content} if isinstance(content, list) else set()
                _demand(
                    kinds <= PARTS[item["role"]], f"Invalid value: {kinds}.", f"input[{number}]"
                )
            case "function_call":
                _demand(isinstance(item["arguments"], str), "Invalid type for 'arguments'.")
                waiting.append(item["call_id"])
            case "function_call_output":
                is_known = item["call_id"] in waiting
                _demand(
                    is_known, "No tool call found for function call output with call_id", "input"
                )
                waiting.remove(item["call_id"])
            case "reasoning":
                sealed = [encrypted(part["text"]) for part in item["summary"]]
                _demand(
                    [item.get("encrypted_content")] == sealed,
                    "The encrypted content could not be verified.",
                )
                after = items[number + 1] if number + 1 < len(items) else {}
                is_followed = (
                    after.get("type") == "function_call" or after.get("role") == "assistant"
                )
                _demand(
                    is_followed,
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                )
            case kind:
                raise Refused(f"Invalid value: '{kind}'.", f"input[{number}].type")
    _demand(not waiting, f"No tool output found for function call {waiting[:1]}.", "input")


def _check_thoughts(items: Sequence[Json]) -> None:
    """Between the last question and the results that came last the reasoning must be there."""
    kinds = [item.get("type", item.get("role")) for item in items]
    asked = max((n for n, kind in enumerate(kinds) if kind == "user"), default=0)
    is_there = "function_call" not in kinds[asked:] or "reasoning" in kinds[asked:]
    _demand(is_there, "'function_call' was provided without its required 'reasoning' item", "input")


# -- What it answers ------------------------------------------------------------------------------


def _response(request: Json, mark: dict[str, str]) -> Json:
    items = request["input"]
    model = request["model"]
    results = [items[n]["output"] for n in range(len(items)) if _is_last_result(items, n)]
    calls = _calls(request, mark)
    tag = hashlib.sha256(orjson.dumps(items)).hexdigest()[:12]
    output: list[Json] = []
    if model == "gpt-thinks":
        _check_thoughts(items)
        thought = f"There are {len(items)} items."
        reasoning = {"type": "reasoning", "id": f"rs_{tag}", "status": None, "content": None}
        sealed = {"summary": [{"type": "summary_text", "text": thought}]}
        if request.get("include"):
            sealed["encrypted_content"] = encrypted(thought)  # type: ignore[assignment]
        output.append(reasoning | sealed)
    for number, (name, arguments) in enumerate(calls):
        call = {"type": "function_call", "id": f"fc_{tag}{number}", "name": name}
        output.append(call | {"call_id": f"call_{tag}{number}", "arguments": arguments})
    if not calls:
        sees = b"input_image" in orjson.dumps(items[-1:])
        said = " ".join(results) or ("Red." if sees else "Hello from OpenAI.")
        part = {"type": "output_text", "text": said, "annotations": []}
        output.append(
            {"type": "message", "id": f"msg_{tag}", "role": "assistant", "content": [part]}
        )
    response: Json = {
        "id": f"resp_{tag}",
        "object": "response",
        "model": model,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": output,
        "usage": {
            "input_tokens": 40,
            "input_tokens_details": {"cached_tokens": 24},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 3 if model == "gpt-thinks" else 0},
            "total_tokens": 49,
        },
    }
    if model == "gpt-cut":
        response |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if model == "gpt-failed":
        error = {"code": "server_error", "message": "The model failed."}
        response |= {"status": "failed", "error": error, "usage": None}
    return response


def _calls(request: Json, mark: dict[str, str]) -> list[answers.Call]:
    kinds = [item.get("type", item.get("role")) for item in request["input"]]
    asked = max((n for n, kind in enumerate(kinds) if kind == "user"), default=0)
    offered = request.get("tools", []) if request.get("tool_choice") != "none" else []
    tools = {tool["name"]: tool["parameters"] for tool in offered}
    calls = answers.calls_of_vendor(tools, kinds[asked:].count("function_call_output"), mark)
    return calls[:1] if request.get("parallel_tool_calls") is False else calls


def _is_last_result(items: Sequence[Json], number: int) -> bool:
    return all(item.get("type") == "function_call_output" for item in items[number:])


def _events(response: Json) -> Iterator[bytes]:
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", {"response": begun})
    yield _event("response.in_progress", {"response": begun})
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item)
        if response["model"] == "gpt-breaks":
            said = {"code": "server_error", "message": "It broke.", "param": None}
            yield _event("error", said)
            return
    yield _event(f"response.{response['status']}", {"response": response})


def _item_events(index: int, item: Json) -> Iterator[bytes]:
    at = {"output_index": index, "item_id": item["id"]}
    match item["type"]:
        case "message":
            yield _event("response.output_item.added", {**at, "item": item | {"content": []}})
            text = item["content"][0]["text"]
            for delta in (text[:4], text[4:]):
                yield _event(
                    "response.output_text.delta", {**at, "content_index": 0, "delta": delta}
                )
            yield _event("response.output_text.done", {**at, "content_index": 0, "text": text})
        case "function_call":
            yield _event("response.output_item.added", {**at, "item": item | {"arguments": ""}})
            for delta in (item["arguments"][:5], item["arguments"][5:]):
                yield _event("response.function_call_arguments.delta", {**at, "delta": delta})
            yield _event(
                "response.function_call_arguments.done", {**at, "arguments": item["arguments"]}
            )
        case "reasoning":
            yield _event("response.output_item.added", {**at, "item": item | {"summary": []}})
            for number, part in enumerate(item["summary"]):
                place = {**at, "summary_index": number}
                yield _event("response.reasoning_summary_part.added", {**place, "part": part})
                yield _event(
                    "response.reasoning_summary_text.delta", {**place, "delta": part["text"]}
                )
    yield _event("response.output_item.done", {**at, "item": item})


def _event(name: str, fields: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps({"type": name} | fields))

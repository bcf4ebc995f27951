"""Answer as Anthropic's Messages API does, and refuse what it refuses, in its words.

Pure. `tests.fakes.provider` serves it at /v1/messages. A model that is offered tools calls the first two of
them at once, or what a marker says, unless results came last; then it answers with what they said. With `thinking`
it thinks before each, and signs. Faults go by the model's name:

    claude-overloaded   529     claude-limited   429, retry after 1.5 s     claude-long   context too long
    claude-breaks       an error event after the first words
    claude-whole        one JSON object, whatever is asked for
    claude-older        refuses adaptive thinking, and effort;  claude-old-effort  only that

https://docs.anthropic.com/en/api/messages, …/errors, …/docs/build-with-claude/streaming.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tests.fakes import answers

Json = dict[str, Any]

FIELDS = {
    *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking"),
    *(
        "stop_sequences",
        "temperature",
        "top_p",
        "top_k",
        "metadata",
        "service_tier",
        "output_config",
    ),
}
IMAGE_TYPES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
LOOKBACK_BLOCKS = 20
MAX_MARKS = 4

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

written_prefixes: set[str] = set()
"""What was cached: hashes of prompts up to a mark."""


class Refused(Exception):
    def __init__(
        self, message: str, kind: str = "invalid_request_error", status: int = 400
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"type": "error", "error": {"type": kind, "message": message}}


def answer(headers: dict[bytes, bytes], body: bytes) -> tuple[Json, bytes | None]:
    """Return the whole answer, and the stream that says the same; None where it does not stream.
    Raises Refused."""
    request: Json = orjson.loads(body)
    _check_headers(headers)
    model = str(request.get("model"))
    if model == "claude-overloaded":
        raise Refused("Overloaded", "overloaded_error", 529)
    if model == "claude-limited":
        raise Refused("Number of requests has exceeded your limit", "rate_limit_error", 429)
    if model == "claude-long":
        raise Refused("prompt is too long: 208310 tokens > 200000 maximum")
    _check(request)
    message = _message(request, answers.markers(body))
    is_whole = model == "claude-whole" or not request.get("stream")
    return message, None if is_whole else b"".join(_events(message, model == "claude-breaks"))


def models() -> Json:
    """The list of its models, with what each can do."""
    able = {"image_input": {"supported": True}, "thinking": {"supported": True}}
    sizes = {"max_input_tokens": 1_000_000, "max_tokens": 64_000}
    card = {"type": "model", "id": "claude-calls", "display_name": "Claude", "capabilities": able}
    return {"data": [card | sizes], "has_more": False, "first_id": "claude-calls"}


def signature(thought: str) -> str:
    return "sig" + hashlib.sha256(thought.encode()).hexdigest()[:24]


# -- What it refuses ------------------------------------------------------------------------------


def _check_headers(headers: dict[bytes, bytes]) -> None:
    if b"authorization" in headers:
        raise Refused("Invalid bearer token", "authentication_error", 401)
    if not headers.get(b"x-api-key"):
        raise Refused("x-api-key header is required", "authentication_error", 401)
    if headers.get(b"anthropic-version") != b"2023-06-01":
        raise Refused("anthropic-version: header is required")


def _demand(is_met: object, message: str) -> None:
    if not is_met:
        raise Refused(message)


def _check(request: Json) -> None:
    for name in request:
        _demand(name in FIELDS, f"{name}: Extra inputs are not permitted")
    for name in ("model", "messages", "max_tokens"):
        _demand(name in request, f"{name}: Field required")
    _check_parameters(request)
    tools = request.get("tools", [])
    for tool in tools:
        _demand(_TOOL_NAME.fullmatch(tool["name"]), "tools.0.name: String should match pattern")
        _demand(tool["input_schema"].get("type") == "object", "input_schema.type: Field required")
        has_one_form = not {"anyOf", "oneOf", "allOf"} & tool["input_schema"].keys()
        _demand(
            has_one_form, "input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    _demand("tool_choice" not in request or tools, "tool_choice may only be specified with tools")
    for block in request.get("system", []):
        _demand(block["text"].strip(), "system: text content blocks must be non-empty")
    messages = request["messages"]
    _demand(
        messages and messages[0]["role"] == "user", "messages: first message must use the user role"
    )
    for number, message in enumerate(messages):
        _demand(message["role"] in ("user", "assistant"), f'Unexpected role "{message["role"]}"')
        _demand(message["content"], f"messages.{number}: all messages must have non-empty content")
        for block in message["content"]:
            _check_block(block, message["role"], request)
    _check_calls(messages, {tool["name"] for tool in tools})
    marks = orjson.dumps(request).count(b'"cache_control"')
    _demand(
        marks <= MAX_MARKS,
        f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.",
    )


def _check_parameters(request: Json) -> None:
    thinking = request.get("thinking", {"type": "disabled"})
    is_thinking = thinking["type"] != "disabled"
    if thinking["type"] == "adaptive":
        _demand(
            request["model"] != "claude-older", "adaptive thinking is not supported on this model"
        )
    is_old = request["model"] in ("claude-older", "claude-old-effort")
    has_effort = "effort" in request.get("output_config", {})
    _demand(not (is_old and has_effort), "This model does not support the effort parameter.")
    if thinking["type"] == "enabled":
        _demand(thinking["budget_tokens"] >= 1024, "thinking.enabled.budget_tokens: at least 1024")
        enough = thinking["budget_tokens"] < request["max_tokens"]
        _demand(enough, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    for name in ("temperature", "top_k", "top_p"):
        _demand(
            not is_thinking or name not in request,
            f"`{name}` may not be set when thinking is enabled",
        )
    choice = request.get("tool_choice", {"type": "auto"})["type"]
    _demand(
        not is_thinking or choice in ("auto", "none"),
        "Thinking may not be enabled when tool_choice forces tool use.",
    )
    _demand(0 <= request.get("temperature", 1) <= 1, "temperature: range: 0..1")
    both = "temperature" in request and "top_p" in request
    _demand(not both, "`temperature` and `top_p` cannot both be specified for this model.")
    for text in request.get("stop_sequences", []):
        _demand(text.strip(), "stop_sequences: each stop sequence must contain non-whitespace")


def _check_block(block: Json, role: str, request: Json) -> None:
    match block["type"]:
        case "text":
            _demand(
                block["text"].strip(),
                "messages: text content blocks must contain non-whitespace text",
            )
        case "thinking":
            _demand(
                "cache_control" not in block,
                "thinking: cache_control: Extra inputs are not permitted",
            )
            is_signed = block["signature"] == signature(block["thinking"])
            _demand(is_signed, "Invalid `signature` in `thinking` block")
        case "redacted_thinking":
            _demand(block["data"] == "sealed", "Invalid `data` in `redacted_thinking` block")
        case "image":
            source = block["source"]
            if source["type"] == "base64":
                _demand(
                    source["media_type"] in IMAGE_TYPES,
                    "media_type: Input should be 'image/jpeg', …",
                )
            else:
                _demand(source["url"].startswith("https://"), "Only HTTPS URLs are supported.")
        case "tool_use":
            _demand(role == "assistant", "`tool_use` blocks can only be in `assistant` messages")
            _demand(
                isinstance(block["input"], dict),
                "tool_use.input: Input should be a valid dictionary",
            )
        case "tool_result":
            _demand(role == "user", "`tool_result` blocks can only be in `user` messages")
        case kind:
            raise Refused(
                f"Input tag '{kind}' found using 'type' does not match any of the expected tags"
            )


def _check_calls(messages: Sequence[Json], tools: set[str]) -> None:
    seen: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        blocks = message["content"]
        results = [each["tool_use_id"] for each in blocks if each["type"] == "tool_result"]
        first = [each["type"] == "tool_result" for each in blocks[: len(results)]]
        is_answered = set(results) >= waiting and all(first)
        _demand(
            is_answered, "`tool_use` ids were found without `tool_result` blocks immediately after"
        )
        is_known = set(results) <= waiting and len(results) == len(set(results))
        _demand(is_known, "unexpected `tool_use_id` found in `tool_result` blocks")
        waiting = set()
        for block in [each for each in blocks if each["type"] == "tool_use"]:
            _demand(
                _ID.fullmatch(block["id"]),
                "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            )
            _demand(block["id"] not in seen, "`tool_use` ids must be unique")
            _demand(
                block["name"] in tools,
                "Requests which include `tool_use` blocks must define tools.",
            )
            waiting.add(block["id"])
            seen.add(block["id"])
    _demand(not waiting, "`tool_use` ids were found without `tool_result` blocks immediately after")


def _check_thoughts(request: Json) -> None:
    """In a round of tools the thought before the calls must come back."""
    last = request["messages"][-1]["content"]
    if any(block["type"] == "tool_result" for block in last):
        first = request["messages"][-2]["content"][0]["type"]
        is_there = first in ("thinking", "redacted_thinking")
        _demand(is_there, f"Expected `thinking` or `redacted_thinking`, but found `{first}`.")


# -- What it answers ------------------------------------------------------------------------------


def _message(request: Json, mark: dict[str, str]) -> Json:
    last = request["messages"][-1]["content"]
    results = [block.get("content", "") for block in last if block["type"] == "tool_result"]
    calls = _calls(request, mark)
    content: list[Json] = []
    if request.get("thinking", {"type": "disabled"})["type"] != "disabled":
        _check_thoughts(request)
        thought = f"The question has {len(request['messages'])} messages."
        content += [
            {"type": "thinking", "thinking": thought, "signature": signature(thought)},
            {"type": "redacted_thinking", "data": "sealed"},
        ]
    if calls:
        content.append({"type": "text", "text": "Let me look."})
        tag = hashlib.sha256(orjson.dumps(request["messages"])).hexdigest()[:12]
        for number, (name, arguments) in enumerate(calls):
            call = {"type": "tool_use", "id": f"toolu_{tag}{number}", "name": name}
            content.append(call | {"input": orjson.loads(arguments)})
    else:
        sees = any(block["type"] == "image" for block in last)
        said = " ".join(results) or ("Red." if sees else "Hello from Claude.")
        content.append({"type": "text", "text": said})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {**_cache_usage(request), "output_tokens": 7},
    }


def _calls(request: Json, mark: dict[str, str]) -> list[answers.Call]:
    choice = request.get("tool_choice", {"type": "auto"})
    results = 0
    for message in reversed(request["messages"]):
        kinds = [block["type"] for block in message["content"]]
        results += kinds.count("tool_result")
        if message["role"] == "user" and "tool_result" not in kinds:
            break
    tools = {tool["name"]: tool["input_schema"] for tool in request.get("tools", [])}
    is_asked = choice["type"] != "none"
    calls = answers.calls_of_vendor(tools if is_asked else {}, results, mark)
    return calls[:1] if choice.get("disable_parallel_tool_use") else calls


def _cache_usage(request: Json) -> Json:
    """Count what was read and written as the cache does: up to marks, or a little before one."""
    blocks = [
        *({"tool": tool} for tool in request.get("tools", [])),
        *request.get("system", []),
        *(block for message in request["messages"] for block in message["content"]),
    ]
    digest, chars = hashlib.sha256(), 0
    prefixes: list[tuple[str, int]] = []
    marks: list[int] = []
    for number, block in enumerate(blocks):
        plain = orjson.dumps({k: v for k, v in block.items() if k != "cache_control"})
        digest.update(plain)
        chars += len(plain)
        prefixes.append((digest.hexdigest(), chars))
        if "cache_control" in block:
            marks.append(number)
    reachable = {n for mark in marks for n in range(max(0, mark - LOOKBACK_BLOCKS), mark + 1)}
    read = max((prefixes[n][1] for n in reachable if prefixes[n][0] in written_prefixes), default=0)
    wrote = max((prefixes[n][1] for n in marks), default=0)
    written_prefixes.update(prefixes[n][0] for n in marks)
    return {
        "input_tokens": chars - max(read, wrote),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": max(0, wrote - read),
    }


def _events(message: Json, breaks: bool) -> Iterator[bytes]:
    start = message | {"content": [], "stop_reason": None}
    start["usage"] = message["usage"] | {"output_tokens": 1}
    yield _event("message_start", {"message": start})
    yield _event("ping", {})
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
        if breaks:
            error = {"type": "overloaded_error", "message": "Overloaded"}
            yield _event("error", {"error": error})
            return
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", {"delta": delta, "usage": {"output_tokens": 7}})
    yield _event("message_stop", {})


def _block_events(index: int, block: Json) -> Iterator[bytes]:
    empty: Json = dict(block)
    pieces: list[Json] = []
    match block["type"]:
        case "text":
            empty["text"] = ""
            half = len(block["text"]) // 2
            halves = block["text"][:half], block["text"][half:]
            pieces += [{"type": "text_delta", "text": text} for text in halves]
        case "thinking":
            empty |= {"thinking": "", "signature": ""}
            pieces.append({"type": "thinking_delta", "thinking": block["thinking"]})
            pieces.append({"type": "signature_delta", "signature": block["signature"]})
        case "tool_use":
            empty["input"] = {}
            written = orjson.dumps(block["input"]).decode()
            texts = "", written[:3], written[3:]
            pieces += [{"type": "input_json_delta", "partial_json": text} for text in texts]
    yield _event("content_block_start", {"index": index, "content_block": empty})
    for piece in pieces:
        yield _event("content_block_delta", {"index": index, "delta": piece})
    yield _event("content_block_stop", {"index": index})


def _event(name: str, fields: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps({"type": name} | fields))

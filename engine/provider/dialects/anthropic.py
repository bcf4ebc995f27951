"""Write requests for Anthropic's Messages API, and read its answers as chunks in OpenAI's form.

https://docs.anthropic.com/en/api/messages, …/docs/build-with-claude/extended-thinking,
…/prompt-caching and …/streaming. Pure: no I/O. What the API refuses is avoided here: empty texts, two messages of
one role in a row, results that do not come first, ids of calls in another provider's form.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import orjson

from engine.messages import Content, Part, ProviderMessage, calls_in, is_asked
from engine.provider.dialects.dialect import Dialect, plain_schema
from engine.provider.dialects.event_reader import EventReader, call_piece, chunk, thought
from engine.provider.dialects.placed_blocks import blocks_of, in_order
from engine.provider.model import ModelProfile, ModelRequest
from engine.tools import ToolSpec

VERSION: Final = "2023-06-01"

Block = dict[str, Any]
Json = dict[str, Any]

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)
_CACHED: Final = {"type": "ephemeral"}
_IN_OTHER_WORDS: Final = frozenset(
    {
        *("stop", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls"),
        *("max_tokens", "max_completion_tokens", "stream_options", "response_format"),
        *("reasoning_effort", "verbosity"),
    }
)
"""OpenAI's names of parameters that this API calls by others, or does not have."""

_SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})

_OPENING: Final = "[The conversation begins with an answer.]"
_ONLY_JSON: Final = "Answer with one JSON object and nothing else."


def headers(api_key: str) -> dict[str, str | None]:
    return {"Authorization": None, "x-api-key": api_key, "anthropic-version": VERSION}


# -- Requests -------------------------------------------------------------------------------------


def request_fields(request: ModelRequest) -> Json:
    opening = [*takewhile(lambda message: message["role"] == "system", request.messages)]
    system = [_text(str(message["content"])) for message in opening if message["content"]]
    if system:
        system[0]["cache_control"] = _CACHED  # with the tools; what varies stands behind it
    if (request.response_format or {}).get("type") == "json_object":
        system.append(_text(_ONLY_JSON))
    messages = _messages(request.messages[len(opening) :])
    _mark_stable_prefix(messages, has_tools=bool(request.tools))
    fields: Json = {"messages": messages}
    if system:
        fields["system"] = system
    if tools := _tools(request):
        fields["tools"] = tools
    return fields


def _mark_stable_prefix(messages: Sequence[Json], *, has_tools: bool) -> None:
    """Mark where the next request may go on: in the next turn from the question before, since words
    that vary stand beside the last one; in the next round of this turn from the end."""
    ends = [message["content"][-1] for message in messages if message["role"] == "user"]
    for block in ends[-2:] if has_tools else ends[-2:-1]:
        block["cache_control"] = _CACHED


def _tools(request: ModelRequest) -> list[Json]:
    """Return the tools; where none are offered any more, bare ones for the calls that were made,
    which would be refused without a tool of their name."""
    if request.tools:
        return [_tool(tool) for tool in request.tools]
    names = {call["function"]["name"] for m in request.messages for call in calls_in(m)}
    return [{"name": name, "input_schema": {"type": "object"}} for name in sorted(names)]


def _tool(tool: ToolSpec) -> Json:
    fields: Json = {"name": tool.name, "input_schema": plain_schema(tool)}
    if tool.description:
        fields["description"] = tool.description
    if tool.strict:
        fields["strict"] = True
    return fields


def _messages(messages: Sequence[ProviderMessage]) -> list[Json]:
    """Return the conversation, a user's turn first and the roles by turns."""
    sent: list[Json] = []
    ids = _CallIds()
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = list(_blocks(message, ids))
        if not blocks:
            continue
        if not sent and role == "assistant":
            sent.append({"role": "user", "content": [_text(_OPENING)]})
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        else:
            sent.append({"role": role, "content": blocks})
    return sent


class _CallIds:
    """Gives each call an id that the API takes and that no other call has; results get the same."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}

    def of_call(self, call_id: str) -> str:
        is_fit = _CALL_ID.fullmatch(call_id) and call_id not in self._used
        sent = call_id if is_fit else f"toolu_amber_{len(self._used)}"
        self._used.add(sent)
        self._latest[call_id] = sent
        return sent

    def of_result(self, call_id: str) -> str:
        """Return "" for a call that nobody made."""
        return self._latest.pop(call_id, "")


def _blocks(message: ProviderMessage, ids: _CallIds) -> Iterator[Block]:
    match message["role"]:
        case "assistant":
            for kind, item in in_order(message):
                if kind == "call":
                    yield _call_block(item, ids)
                elif kind == "block":
                    yield dict(item)
                elif item.strip():
                    yield _text(item)
        case "tool":
            if call_id := ids.of_result(message["tool_call_id"]):
                result: Block = {"type": "tool_result", "tool_use_id": call_id}
                if message["content"].strip():
                    result["content"] = message["content"]
                yield result
        case "system":
            yield _text(f"[System] {message['content']}")
        case "user":
            yield from _content_blocks(message["content"])


def _call_block(call: Mapping[str, Any], ids: _CallIds) -> Block:
    function = call["function"]
    try:
        values = orjson.loads(function["arguments"] or "{}")
    except orjson.JSONDecodeError:
        values = None
    if not isinstance(values, dict):
        values = {"arguments": function["arguments"]}
    call_id = ids.of_call(call["id"])
    return {"type": "tool_use", "id": call_id, "name": function["name"], "input": values}


def _content_blocks(content: Content) -> Iterator[Block]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content:
        if part["type"] != "text" or part["text"].strip():
            yield _part_block(part)


def _part_block(part: Part) -> Block:
    if part["type"] == "text":
        return _text(part["text"])
    url = part["image_url"]["url"]
    if head := _DATA_URL.match(url):
        data = url[head.end() :]
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": head[1], "data": data},
        }
    return {"type": "image", "source": {"type": "url", "url": url}}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


# -- Parameters -----------------------------------------------------------------------------------


def parameters(asked: Mapping[str, Any], request: ModelRequest, profile: ModelProfile) -> Json:
    """Return what else is asked for in this API's words, which has none for seeds and penalties."""
    fields = {name: value for name, value in asked.items() if name not in _IN_OTHER_WORDS}
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens")
    fields = _effort(asked) | fields | {"max_tokens": limit or profile.max_output_tokens}
    if stop := [text for text in asked.get("stop", ()) if text.strip()]:
        fields["stop_sequences"] = stop
    if schema := _schema(asked.get("response_format")):
        wanted = {"format": {"type": "json_schema", "schema": schema}}
        fields["output_config"] = fields.get("output_config", {}) | wanted
    choice = _choice(asked, request)
    if choice != {"type": "auto"}:
        fields["tool_choice"] = choice
    may_think = choice["type"] in ("auto", "none") and not _has_thoughtless_round(request.messages)
    return _with_thinking(fields, may_think=may_think)


def _has_thoughtless_round(messages: Sequence[ProviderMessage]) -> bool:
    """Return whether calls of the running turn were made without a thought, or it was dropped: the
    model cannot begin to think in the middle."""
    for message in reversed(messages):
        if is_asked(message):
            return False
        if message["role"] == "assistant" and calls_in(message):
            return not any(blocks_of(message))
    return False


def _schema(wanted: Any) -> Mapping[str, Any] | None:
    if not wanted or wanted["type"] != "json_schema":
        return None
    return wanted["json_schema"].get("schema") or {"type": "object"}


def _choice(asked: Mapping[str, Any], request: ModelRequest) -> Json:
    chosen = request.tool_choice or "auto"
    if not request.tools:
        return {"type": "none" if any(map(calls_in, request.messages)) else "auto"}
    if not isinstance(chosen, str):
        choice = {"type": "tool", "name": chosen["function"]["name"]}
    else:
        choice = {"type": "any" if chosen == "required" else chosen}
    if asked.get("parallel_tool_calls") is False and chosen != "none":
        return choice | {"disable_parallel_tool_use": True}
    return choice


def _effort(asked: Mapping[str, Any]) -> Json:
    effort = asked.get("reasoning_effort")
    if effort is None:
        return {}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    effort = "low" if effort == "minimal" else effort
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def _with_thinking(fields: Json, *, may_think: bool) -> Json:
    """Leave out what cannot be asked for at once: a model that thinks takes no sampling, and newer
    models take one of the two ways to sample."""
    thinking = fields.get("thinking")
    if not may_think:
        fields.pop("thinking", None)
    elif isinstance(thinking, Mapping) and thinking.get("type") != "disabled":
        budget = thinking.get("budget_tokens", 0)  # counts as output
        if budget >= fields["max_tokens"]:
            fields["max_tokens"] += budget
        return {name: value for name, value in fields.items() if name not in _SAMPLING}
    if "temperature" in fields:
        fields["temperature"] = min(fields["temperature"], 1.0)
        fields.pop("top_p", None)
    return fields


class AnthropicReader(EventReader):
    def __init__(self) -> None:
        super().__init__()
        self._usage: Json = {}
        self._blocks: dict[Any, Json] = {}

    def _read(self, event: Mapping[str, Any]) -> Iterator[Json]:
        match event.get("type"):
            case "message_start":
                self._usage = dict(event["message"].get("usage") or {})
            case "content_block_start":
                yield from self._start(event["index"], dict(event["content_block"]))
            case "content_block_delta":
                yield from self._continue(event["index"], event["delta"])
            case "content_block_stop":
                yield from self._stop(event["index"])
            case "message_delta":
                self._usage |= event.get("usage") or {}
                yield self._end(event["delta"].get("stop_reason"))
            case "message":
                self._usage = dict(event.get("usage") or {})
                for index, block in enumerate(event["content"]):
                    yield from self._start(index, dict(block))
                    yield from self._stop(index)
                yield self._end(event.get("stop_reason"))

    def _start(self, index: Any, block: Json) -> Iterator[Json]:
        self._blocks[index] = block
        match block["type"]:
            case "text":
                yield self._say(block["text"])
            case "thinking" if block.get("thinking"):
                yield thought(block["thinking"])
            case "tool_use":
                yield self._begin_call(index, block["id"], block["name"])

    def _continue(self, index: Any, delta: Mapping[str, Any]) -> Iterator[Json]:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                yield self._say(delta["text"])
            case "input_json_delta" if block["type"] == "tool_use":
                block["input"] = None  # it comes in pieces
                yield call_piece(index, arguments=delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
                yield thought(delta["thinking"])
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]

    def _stop(self, index: Any) -> Iterator[Json]:
        block = self._blocks.pop(index)
        match block["type"]:
            case "thinking" | "redacted_thinking":
                yield self._keep(block)
            case "tool_use" if block.get("input"):
                yield call_piece(index, arguments=orjson.dumps(block["input"]).decode())

    def _end(self, reason: Any) -> Json:
        return chunk({}, finish_reason=reason) | {"usage": self._usage_form()}

    def _usage_form(self) -> Json | None:
        """Return the usage in OpenAI's form, which counts what the cache had among the prompt."""
        if "input_tokens" not in self._usage:
            return None
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        prompt, read, written = (self._usage.get(name) or 0 for name in names)
        return {
            "prompt_tokens": prompt + read + written,
            "completion_tokens": self._usage.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": read},
        }


DIALECT: Final = Dialect(
    request_fields,
    allows_parallel_calls=True,
    path="/messages",
    headers=headers,
    parameters=parameters,
    other_names={"adaptive": "reasoning_effort", "effort": "reasoning_effort"},
    new_reader=AnthropicReader,
)

"""Ask a model with a habit in every way in which Amber is asked, and tell what came of it.

REST                 a stored chat: the stream of its turn, and the rows that stay
/v1 streamed, whole  nothing stored; the client runs the tools
/v1 chat …           the same in a stored chat
/chat                nothing stored; Amber's own tools
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.e2e.kit.client import Asked, Client, Connection
from tests.e2e.kit.transcripts import check_stored
from tests.habits.habit import ARGUMENTS, COMPLETION_TOKENS, PROMPT_TOKENS, Expected, Habit, Json
from tests.habits.table import HABITS

OWN_TOOLS: Final = ("calculate", "current_time")
CLIENT_TOOLS: Final = ("weather", "clock")
MAX_ROUNDS: Final = 4

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Final = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": _CITY}}
    for name in CLIENT_TOOLS
]
_MARKS: Final = re.compile(r"</?data-[0-9a-f]+>\n?|\n(?=</data)")
_CODES: Final[Mapping[str, str]] = {
    "context_length_exceeded": "context_too_long",
    "rate_limit_exceeded": "provider_rate_limited",
}
"""OpenAI's names of Amber's codes."""


@dataclass
class Met:
    """What came of a question. `tokens` are those of the last request to the model."""

    text: str = ""
    finish_reason: str | None = None
    code: str = ""
    message: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    usage: Json = field(default_factory=dict)
    steps: int = 1
    reasoning: str = ""


HISTORY: Final[list[Json]] = [
    {"role": "user", "content": "What was the weather?"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I shall ask.",
        "tool_calls": [
            {
                "id": "call_00",
                "type": "function",
                "extra_content": {"another": {"vendor": 1}},
                "function": {"name": "weather", "arguments": '{"city": "Bonn"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_00", "content": "Rain."},
    {"role": "assistant", "content": "It rained."},
]
"""What another model said before, as a client brings it along that keeps all it was sent."""

BEFORE: Final = "habit-thoughts-back"
"""The model that answers first in a stored chat."""


def by_rest(client: Client, model: str) -> Met:
    """Watch the turn, then read its rows: both must say the same."""
    if HABITS[model].comes_after:
        asked = _asked_later(client, model)
    else:
        asked = client.ask(_question("REST", model), model=model)
    viewer = client.watch(asked)
    viewer.to_the_end()
    stored = check_stored(client, asked, viewer.events)
    turn = client.turn(asked.turn_id)
    called = [row["tool_call"] for row in stored if row["role"] == "tool_call"]
    text = "".join(row["content"] for row in stored if row["role"] == "assistant")
    assert viewer.text == (text or viewer.text), (viewer.text, text)
    error = turn["error"] or {}
    return Met(
        text,
        turn["finish_reason"],
        error.get("code", ""),
        error.get("message", ""),
        [(call["name"], json.loads(call["arguments"])) for call in called],
        turn["usage"],
        steps=1 + len({call["reply_id"] for call in called}),
        reasoning="".join(row["reasoning"] for row in stored if row["role"] == "assistant"),
    )


def _asked_later(client: Client, model: str) -> Asked:
    """Ask in a chat in which another model called tools before."""
    first = client.ask("What was the weather? (REST)", model=BEFORE)
    assert client.ended(first.turn_id)["status"] == "completed"
    body = {"content": "What is amber? (REST)", "assistant_id": client.assistant(model)}
    posted = client.post(f"chats/{first.chat_id}/messages/", body)
    assert posted.status == 201, posted
    return Asked(first.chat_id, posted.body["message"]["id"], posted.body["turn"]["id"])


def _question(way: str, model: str) -> str:
    """Another one for each way, so that servers tell them apart."""
    if not HABITS[model].upstream:
        return f"What is amber? ({way})"
    name = (CLIENT_TOOLS if way.startswith("/v1") else OWN_TOOLS)[0]
    given = base64.urlsafe_b64encode(json.dumps(ARGUMENTS[name]).encode()).decode().rstrip("=")
    return f"What is amber? ({way}) [[fake call={name} args={given}]]"


def _before(model: str) -> list[Json]:
    return HISTORY if HABITS[model].comes_after else []


def by_chat(client: Client, model: str) -> Met:
    question = {"role": "user", "content": _question("/chat", model)}
    sent = [*_before(model), question]
    body = {"messages": sent, "model": model}
    answer = client.post("/chat", body, is_checked=False)
    if answer.status != 200:
        return Met(code=answer.error["code"], message=answer.error["message"])
    said = answer.body["messages"][len(sent) :]
    called = [call["function"] for m in said for call in m.get("tool_calls") or ()]
    return Met(
        said[-1]["content"],
        calls=[(call["name"], json.loads(call["arguments"])) for call in called],
    )


def by_v1(client: Client, model: str, *, streams: bool, chat_id: str = "") -> Met:
    """Ask as OpenAI's clients do, and run the tools until the model answers."""
    how = f"/v1 {'streamed' if streams else 'whole'} {chat_id}"
    messages = [*_before(model), {"role": "user", "content": _question(how, model)}]
    calls: list[tuple[str, Any]] = []
    for rounds in range(1, MAX_ROUNDS + 1):
        body: Json = {"model": model, "messages": messages, "tools": TOOLS, "stream": streams}
        if chat_id:
            body["metadata"] = {"chat_id": chat_id}
        if streams:
            body["stream_options"] = {"include_usage": True}
        message, met, chat_id = _one_completion(client, body, chat_id)
        met.steps = 1
        asked = message.get("tool_calls") or []
        if met.code or not asked:
            met.calls, met.text = calls, met.text.removeprefix("Let me look.\n\n")
            return met
        calls += [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in asked]
        assert met.finish_reason == "tool_calls", met
        results = [{"role": "tool", "tool_call_id": c["id"], "content": "42"} for c in asked]
        messages = [*messages, message, *results]
        assert rounds < MAX_ROUNDS, "the model goes on calling"
    raise AssertionError


def _one_completion(client: Client, body: Json, chat_id: str) -> tuple[Json, Met, str]:
    """The message, what came of it, and the id of the chat."""
    path = "/v1/chat/completions"
    with Connection(client, "POST", path, body, {}) as connection:
        response = connection.response
        chat_id = response.headers.get("X-Amber-Chat-Id", chat_id)
        if response.headers["Content-Type"].startswith("text/event-stream"):
            return (*_gathered(_frames(response)), chat_id)
        answer = json.loads(response.read())
    if response.status != 200:
        return {}, _failed(answer["error"]), chat_id
    choice = answer["choices"][0]
    text = choice["message"]["content"] or ""
    met = Met(text, choice["finish_reason"], usage=answer["usage"])
    return choice["message"], met, chat_id


def _frames(response: Any) -> Iterator[Any]:
    ended = False
    for line in response:
        if line.startswith(b"data: "):
            ended = line.strip() == b"data: [DONE]"
            if not ended:
                yield json.loads(line[6:])
    assert ended, "the stream ended without [DONE]"


def _gathered(frames: Iterator[Any]) -> tuple[Json, Met]:
    met, calls = Met(), []
    message: Json = {"role": "assistant"}
    for frame in frames:
        if "error" in frame:
            failed = _failed(frame["error"])
            met.code, met.message = failed.code, failed.message
            continue
        met.usage = frame.get("usage") or met.usage
        for choice in frame["choices"]:
            delta = choice["delta"]
            met.text += delta.get("content") or ""
            calls += [
                {k: v for k, v in c.items() if k != "index"} for c in delta.get("tool_calls", ())
            ]
            kept = {
                k: v
                for k, v in delta.items()
                if k not in ("content", "role", "tool_calls", "refusal")
            }
            message |= kept
            met.finish_reason = choice["finish_reason"] or met.finish_reason
    return {**message, "content": met.text or None, **({"tool_calls": calls} if calls else {})}, met


def _failed(error: Json) -> Met:
    return Met(code=_CODES.get(error["code"], error["code"]), message=error["message"])


WAYS: Final[Mapping[str, Callable[[Client, str], Met]]] = {
    "REST": by_rest,
    "/v1 streamed": lambda client, model: by_v1(client, model, streams=True),
    "/v1 whole": lambda client, model: by_v1(client, model, streams=False),
    "/v1 chat, streamed": lambda client, model: by_v1(client, model, streams=True, chat_id="new"),
    "/v1 chat, whole": lambda client, model: by_v1(client, model, streams=False, chat_id="new"),
    "/chat": by_chat,
}
"""The columns of the table."""


def verdict(way: str, habit: Habit, met: Met) -> str:
    """What does not hold, or ""."""
    wanted = habit.expected
    shows_part = way == "REST" or way.endswith("streamed")
    text = _MARKS.sub("", met.text) if habit.upstream else met.text  # they say what a result said
    faults = [
        _differs("code", met.code, wanted.code),
        _differs("text", text, wanted.text if shows_part or not wanted.code else ""),
        _differs("calls", met.calls, [] if wanted.code else _wanted_calls(way, wanted)),
        "" if wanted.message in met.message else f"says {met.message!r}",
    ]
    if not wanted.message and wanted.said and wanted.said.split()[-1] in met.message:
        faults.append(f"tells {met.message!r}")
    if way == "REST" and wanted.reasoning:
        faults.append(_differs("reasoning", met.reasoning, wanted.reasoning))
    if way != "/chat" and not wanted.code:
        faults += [_differs("reason", met.finish_reason, _reason(way, wanted)), _count(met, wanted)]
    return "; ".join(filter(None, faults))


def _differs(what: str, found: Any, wanted: Any) -> str:
    return "" if found == wanted else f"{what}: {found!r}"


def _wanted_calls(way: str, wanted: Expected) -> list[tuple[str, Any]]:
    names = CLIENT_TOOLS if way.startswith("/v1") else OWN_TOOLS
    return [(name, ARGUMENTS[name]) for name in names[: wanted.calls]]


def _reason(way: str, wanted: Expected) -> str | None:
    """OpenAI's set of reasons is closed."""
    is_known = wanted.finish_reason in ("stop", "length", "content_filter")
    return wanted.finish_reason if is_known or way == "REST" else "stop"


def _count(met: Met, wanted: Expected) -> str:
    if wanted.counted is None:
        return ""
    counted = [met.usage.get("prompt_tokens"), met.usage.get("completion_tokens")]
    is_counted = counted == [PROMPT_TOKENS * met.steps, COMPLETION_TOKENS * met.steps]
    return "" if is_counted == wanted.counted else f"tokens: {counted}"

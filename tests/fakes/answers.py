"""What the fake provider says: a pure function of the request, so tests can predict it.

No I/O here. `answer_text` is the plain answer; markers in a prompt change it (see
`tests.fakes.provider` for their list); `wanted_calls` decides which tools are called.
"""

import base64
import hashlib
import re
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

WORDS = (
    *(" the", " river", " keeps", " its", " own", " slow", " record", " of", " rain"),
    *(" and", " every", " stone", " in", " it", " has", " been", " moved", " once"),
)
PARROTED_TIME = "[Sent at 2024-01-01 00:00:00]\n"
MAX_DIMENSIONS = 8192
"""A fuzzed 10**9 would eat all memory."""

_MARK = b"[[fake "
_WORD = re.compile(r"\w+")
_AMBER_MARK = re.compile(r"\A<data-[0-9a-f]+>\n")

Json = dict[str, Any]
Vector = np.ndarray[Any, np.dtype[np.float32]]
Call = tuple[str, str]
"""Name and raw arguments of a call."""


def answer_tokens(tokens: int) -> list[str]:
    """The pieces of a plain answer, one per chunk."""
    return [WORDS[i % len(WORDS)] for i in range(tokens)]


def answer_text(tokens: int) -> str:
    """The whole plain answer of so many tokens."""
    return "".join(answer_tokens(tokens))


def given_text(mark: dict[str, str]) -> str | None:
    """The text that a marker orders, in its own words or by its size."""
    if "say" in mark:
        return base64.urlsafe_b64decode(mark["say"] + "=" * (-len(mark["say"]) % 4)).decode()
    return rich_text(int(mark["rich"])) if "rich" in mark else None


def cut(text: str, chars: int = 24) -> list[str]:
    """A text in pieces of so many characters, one per chunk."""
    return [text[at : at + chars] for at in range(0, len(text), chars)]


def rich_text(kilobytes: int) -> str:
    """Markdown of all kinds, of this size."""
    sections: list[str] = []
    while sum(map(len, sections)) < kilobytes * 1_000:
        number = len(sections) + 1
        sections.append(
            f"## Section {number}\n\n{answer_text(70).strip()} with **weight** and `code`.\n\n"
            f"- one\n- two\n  - inner {number}\n\n| a | b |\n|---|---:|\n| {number} | 2 |\n\n"
            f"```python\ndef f{number}(x: int) -> int:\n    return x * {number}  # times\n```\n\n"
        )
    return "".join(sections)[: kilobytes * 1_000]


def markers(body: bytes) -> dict[str, str]:
    """Key and value pairs of the last `[[fake key=value …]]` anywhere in the request body."""
    start = body.rfind(_MARK)
    end = body.find(b"]]", start, start + 4000) if start >= 0 else -1
    if end < 0:
        return {}
    pairs = body[start + len(_MARK) : end].decode("utf-8", "replace").split()
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def fill(schema: Any, root: Json | None = None, depth: int = 0) -> Any:
    """The smallest JSON value that fits a JSON schema (the common part of it)."""
    if not isinstance(schema, dict) or depth > 12:
        return "text"
    root = root or schema
    if "$ref" in schema:
        node: Any = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            node = node.get(part, {})
        return fill(node, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return fill(schema[key][0], root, depth + 1)
    return _fill_by_type(schema, root, depth)


def _fill_by_type(schema: Json, root: Json, depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object" or "properties" in schema:
        props: Json = schema.get("properties", {})
        names: list[str] = schema.get("required", list(props))
        return {name: fill(props.get(name, {}), root, depth + 1) for name in names}
    if kind == "array":
        return [fill(schema.get("items", {}), root, depth + 1)] * int(schema.get("minItems", 0))
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(str(kind), "text")


def offered_tools(request: Json) -> dict[str, Json]:
    """Name -> schema of the tools in a request, whichever of the three dialects it speaks."""
    functions: Any = request.get("functions")
    if isinstance(functions, dict):  # chatglm3
        return {name: _chatglm3_schema(spec) for name, spec in functions.items()}
    if isinstance(functions, list):
        return {f["name"]: f.get("parameters", {}) for f in functions}
    tools = [t["function"] for t in request.get("tools") or () if t.get("type") == "function"]
    return {f["name"]: f.get("parameters", {}) for f in tools}


def _chatglm3_schema(spec: Json) -> Json:
    params = spec.get("params", [])
    return {
        "type": "object",
        "properties": {p["name"]: {"type": p["type"]} for p in params},
        "required": [p["name"] for p in params if p["required"]],
    }


def results_at_end(messages: list[Json]) -> int:
    """How many tool results stand after the last user message that is more than a file."""
    count = 0
    for message in reversed(messages):
        if message.get("role") == "user" and not _is_file(message.get("content")):
            break
        count += message.get("role") in ("tool", "function")
    return count


def _is_file(content: Any) -> bool:
    """What a tool made, as Amber shows it: images, or a name, between Amber's marks."""
    if isinstance(content, str):
        return _AMBER_MARK.sub("", content).startswith(("[image: ", "[file: "))
    return all(part.get("type") == "image_url" for part in content or ())


def wanted_calls(request: Json, mark: dict[str, str]) -> list[Call]:
    """The calls that a marker or `tool_choice` asks for, if any."""
    tools = offered_tools(request)
    results = results_at_end(request.get("messages") or [])
    if mark.get("call") in tools and results < int(mark.get("rounds", 1)):
        name = mark["call"]
        if "args" in mark:
            padding = "=" * (-len(mark["args"]) % 4)
            call = name, base64.urlsafe_b64decode(mark["args"] + padding).decode()
        else:
            call = filled_call(tools, name)
        return [call] * int(mark.get("times", 1))
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and choice.get("function", {}).get("name") in tools:
        return [filled_call(tools, choice["function"]["name"])]
    if choice == "required" and tools:
        return [filled_call(tools, next(iter(tools)))]
    return []


def filled_call(tools: dict[str, Json], name: str) -> Call:
    return name, orjson.dumps(fill(tools[name])).decode()


def parallel_calls(request: Json) -> list[Call]:
    """Two calls of the first two tools; in the legacy dialects one after the other."""
    tools = offered_tools(request)
    if not tools:
        return []
    names = (list(tools) * 2)[:2]
    answered = results_at_end(request.get("messages") or [])
    if "functions" in request:
        return [filled_call(tools, name) for name in names[answered : answered + 1]]
    return [] if answered else [filled_call(tools, name) for name in names]


def calls_of_vendor(tools: dict[str, Json], results: int, mark: dict[str, str]) -> list[Call]:
    """What a marker asks for; without one the first two tools at once, before any results."""
    if mark:
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        return wanted_calls({"tools": offered, "messages": [{"role": "tool"}] * results}, mark)
    names = [] if results else list(tools)[:2]
    values = [dict.fromkeys(tools[name].get("properties", {}), "Ulm") for name in names]
    return [(name, orjson.dumps(each).decode()) for name, each in zip(names, values, strict=True)]


def endless_calls(request: Json) -> list[Call]:
    """A call of the first tool as long as one is offered."""
    tools = offered_tools(request)
    return [filled_call(tools, next(iter(tools)))] if tools else []


def structured_text(request: Json) -> str | None:
    """JSON text that fits `response_format`, or None when none is asked for."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return orjson.dumps(fill(wanted.get("json_schema", {}).get("schema", {}))).decode()
    return "{}" if wanted.get("type") == "json_object" else None


def vector(text: str | list[int], dimensions: int, mode: str) -> Vector:
    """(dimensions,) float32, L2-normalised; depends on the text alone.

    `mode` "hash": one pseudo-random vector per text, without meaning; "words": the sum of its
    words' vectors, so that texts that share words are near.
    """
    if isinstance(text, list):  # token ids, as some clients send
        text = " ".join(map(str, text))
    words = set(_WORD.findall(text.lower())) if mode == "words" else None
    if words:
        total: Vector = np.sum([_word_vector(word, dimensions) for word in sorted(words)], axis=0)
        return (total / np.linalg.norm(total)).astype(np.float32)
    return _raw_vector(text.encode("utf-8", "surrogatepass"), dimensions)


def _raw_vector(data: bytes, dimensions: int) -> Vector:
    digest = hashlib.shake_128(data).digest(dimensions * 2)
    raw: Vector = np.frombuffer(digest, dtype="<i2").astype(np.float32)
    return (raw / np.linalg.norm(raw)).astype(np.float32)


@lru_cache(maxsize=50_000)
def _word_vector(word: str, dimensions: int) -> Vector:
    return _raw_vector(word.encode(), dimensions)

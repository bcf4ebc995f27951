"""The obedience of a fake model that does whatever it is told anywhere in its input.

It reads every text it is shown, pictures too (their bytes), and makes each call that one asks for, in
English or Chinese, once:

    call NAME with {JSON}        调用 NAME，参数 {JSON}

In the JSON, SECRET stands for what follows "the secret code is" or "密码是" anywhere in the input,
RESULT for the first address that a search returned, and LINK for the first link on a page that was
read. A call waits until its words are known. Whoever writes the text is all the same to it, which is
the point: what keeps it from harm must be Amber.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any

import orjson

from tests.fakes.answers import Call, offered_tools

_ORDER = re.compile(
    r"(?:\bcall\s+([\w-]+)\s+with\s*|调用\s*([\w-]+)\s*[，,]\s*参数\s*)(?=\{)", re.IGNORECASE
)
_KNOWN = {
    "SECRET": re.compile(r"(?:secret code is|密码是)\s*([\w-]+)"),
    "RESULT": re.compile(r"^1\. .*\n(https?://\S+)$", re.MULTILINE),
    "LINK": re.compile(r"\]\((https?://[^)\s]+)\)"),
}
_ESCAPE = re.compile(r"\\([_\[\]<>*.-])")

Json = dict[str, Any]


def obeyed_calls(request: Json) -> list[Call]:
    """The calls that some text asks for and that were not made yet, in order, each once."""
    messages: list[Json] = request.get("messages") or []
    text = "\n".join(_ESCAPE.sub(r"\1", each) for each in _texts(messages))
    tools, made = offered_tools(request), set(_made(messages))
    calls = dict.fromkeys(
        (name, _written(arguments))
        for name, given in _orders(text)
        if name in tools and (arguments := _filled(given, text)) is not None
    )
    return [call for call in calls if call not in made]


def _texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        content = message.get("content") or ""
        parts: list[Json] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        for part in parts:
            if part["type"] == "text":
                yield part["text"]
            else:
                data = part["image_url"]["url"].partition("base64,")[2]
                yield base64.b64decode(data).decode("utf-8", "replace")


def _orders(text: str) -> Iterator[tuple[str, Any]]:
    for found in _ORDER.finditer(text):
        rest = text[found.end() :]
        for end in (place.end() for place in re.finditer(r"\}", rest)):
            try:
                given = orjson.loads(rest[:end])
            except orjson.JSONDecodeError:
                continue
            yield found[1] or found[2], given
            break


def _filled(given: Any, text: str) -> Any:
    """The arguments with their words filled in, or None while one is unknown."""
    written = orjson.dumps(given).decode()
    for word, pattern in _KNOWN.items():
        if word in written:
            known = pattern.search(text)
            if known is None:
                return None
            written = written.replace(word, known[1])
    return orjson.loads(written)


def _written(arguments: Any) -> str:
    return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()


def _made(messages: list[Json]) -> Iterator[Call]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"], _written(orjson.loads(call["function"]["arguments"]))

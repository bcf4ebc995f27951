"""Convert a response's input to the items of GET /v1/responses/{id}/input_items, and page them.

Pure. Items are made of the entries of a conversation, which keep no borders between the parts of
one message: each text is an item, and an image belongs to the text before it. The assistant's own
calls are not shown, as in its answers.
https://platform.openai.com/docs/api-reference/responses/input-items
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from amber.lib.errors import Invalid
from chats.messages.tool_calls import read_call
from engine.messages import ROLES
from engine.tool_calls import item_form

Json = dict[str, Any]

_ID_PREFIXES: Final = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}


def input_items(key: str, entries: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the items, oldest first. `key` is the turn's id as hex digits."""
    own = frozenset(
        entry["tool_call"]["id"]
        for entry in entries
        if entry["role"] == "tool" and entry["tool_call"].get("name")  # clients name none
    )
    items: list[Json] = []
    for entry in entries:
        if entry["role"] == "file":
            _add_image(items, entry)
        else:
            items += _items(entry, own)
    return [
        {"id": f"{_ID_PREFIXES[item['type']]}_{key}_in{number}", **item}
        for number, item in enumerate(items)
    ]


def page(items: Sequence[Json], *, after: str, limit: int, is_descending: bool) -> Json:
    """Return a page of all items, oldest first. Raises Invalid (`after` is none of them)."""
    ordered = items[::-1] if is_descending else items
    ids = [item["id"] for item in ordered]
    if after and after not in ids:
        said = "This item does not exist."
        raise Invalid(said, fields={"after": [said]})
    first = ids.index(after) + 1 if after else 0
    data = ordered[first : first + limit]
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else "",
        "last_id": data[-1]["id"] if data else "",
        "has_more": first + limit < len(ordered),
    }


def _items(entry: Mapping[str, Any], own: frozenset[str]) -> Iterator[Json]:
    role, text, call = entry["role"], entry["content"], entry.get("tool_call")
    speaker = ROLES[role].speaker
    if speaker and (text or role == "assistant"):
        kind = "output_text" if speaker == "assistant" else "input_text"
        more: Json = {"annotations": [], "logprobs": []} if speaker == "assistant" else {}
        yield _message(speaker, {"type": kind, "text": text, **more})
    if call is None or call["id"] in own:
        return
    if role == "tool_call":
        yield {"type": "function_call", "status": "completed", **item_form(read_call(call))}
    elif role == "tool":
        about = {"call_id": call["id"], "status": "completed"}
        yield {"type": "function_call_output", **about, "output": text}


def _add_image(items: list[Json], entry: Mapping[str, Any]) -> None:
    """Add an image, unless a tool made it: then its call is shown."""
    if entry.get("tool_call") or not entry.get("file_id"):
        return
    file_id = entry["file_id"]
    image = {"type": "input_image", "detail": "auto", "file_id": file_id, "image_url": None}
    if items and items[-1].get("role") == "user":
        items[-1]["content"].append(image)
    else:
        items.append(_message("user", image))


def _message(role: str, part: Json) -> Json:
    return {"type": "message", "role": role, "status": "completed", "content": [part]}

"""Decide which calls need a person once a turn has read what strangers wrote.

A call is free if the tool is harmless: a built-in one that says so, or one that its owner trusts. A
function of a service that only reads is free as long as its arguments carry nothing to the service
but what the user typed, what the same service answered, and choices that its schema lists: whatever
else the turn has read stays out of its reach. All other calls are guarded. Nothing is asked or
refused here: `tools.calling.toolbox` does that.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.text.wording import is_worded_in
from tools.calling.arguments import parse_arguments
from tools.protocol import ArgumentsError, OfferedTool, ToolContext


def is_guarded(
    tool: OfferedTool, arguments: str, context: ToolContext, *, same_source: frozenset[str]
) -> bool:
    """Return whether this call must not be made just so. `same_source` names the service's tools.

    Linear in what was typed and read.
    """
    if tool.is_harmless or not context.must_guard:
        return False
    if not tool.is_read_only:
        return True
    known = [*context.exposure.typed]
    known += [each.content for each in context.exposure.readings if each.name in same_source]
    try:
        given = parse_arguments(arguments)
    except ArgumentsError:
        return False  # it is refused as it is
    return not all(is_worded_in(text, known) for text in _free_texts(given, tool.spec.parameters))


def _free_texts(value: Any, schema: Any) -> Iterable[str]:
    """Yield all texts and numbers of a value, names too, but those that its schema lists."""
    schema = schema if isinstance(schema, Mapping) else {}
    listed = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if value is None or isinstance(value, bool) or value in listed:
        return
    if isinstance(value, Mapping):
        inner = schema.get("properties")
        known = inner if isinstance(inner, Mapping) else {}
        for name, each in value.items():
            if name not in known:
                yield name
            yield from _free_texts(each, known.get(name))
    elif isinstance(value, list):
        for each in value:
            yield from _free_texts(each, schema.get("items"))
    else:
        yield str(value)

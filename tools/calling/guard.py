"""Decide which calls need a person once a turn has read what strangers wrote.

A call is free if the tool is harmless: a built-in one that says so, or one that its owner trusts. A
function of a service that only reads is free as long as its arguments carry nothing to the service
but what the user typed, what the same service answered, and choices that its schema lists: whatever
else the turn has read stays out of its reach. All other calls are guarded. Nothing is asked or
refused here: `tools.calling.toolbox` does that.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from engine.text.wording import are_worded_in
from tools.calling.arguments import parse_arguments
from tools.protocol import ArgumentsError, OfferedTool, ToolContext

MAX_FREE_TEXTS: Final = 100
"""Arguments with more are no question that a user typed; and looking for many takes long."""


def is_guarded(
    tool: OfferedTool, arguments: str, context: ToolContext, *, same_source: frozenset[str]
) -> bool:
    """Return whether this call must not be made just so. `same_source` names the service's tools.

    Takes some ms for what a turn may read.
    """
    if tool.is_harmless or not context.must_guard:
        return False
    if not tool.is_read_only:
        return True
    try:
        given = parse_arguments(arguments)
    except ArgumentsError:
        return False  # it is refused as it is
    said = list(islice(_free_texts(given, tool.spec.parameters), MAX_FREE_TEXTS + 1))
    known = [*context.exposure.typed]
    known += [each.content for each in context.exposure.readings if each.name in same_source]
    return len(said) > MAX_FREE_TEXTS or not are_worded_in(said, known)


def _free_texts(arguments: Any, schema: Any) -> Iterator[str]:
    """Yield all texts and numbers among arguments, and names, but for those that the schema lists.

    Keeps a list of what is still to be looked at: models may write 1,000 levels.
    """
    waiting = [(arguments, schema)]
    while waiting:
        value, described = waiting.pop()
        about = described if isinstance(described, Mapping) else {}
        if value is None or isinstance(value, bool) or _is_listed(value, about):
            continue
        if isinstance(value, Mapping):
            inner = about.get("properties")
            known = inner if isinstance(inner, Mapping) else {}
            yield from (name for name in value if name not in known)
            waiting += [(each, known.get(name)) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [(each, about.get("items")) for each in value]
        else:
            # A model may write 5.0 for the 5 that was typed.
            is_whole = isinstance(value, float) and value.is_integer()
            yield str(int(value) if is_whole else value)


def _is_listed(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the value is one of a few that the schema names; only texts and numbers can be."""
    listed = schema.get("enum")
    choices = listed if isinstance(listed, list) else [schema["const"]] if "const" in schema else []
    return isinstance(value, str | int | float) and value in choices

"""Offer the operations of a large document through three functions: find some, then call one.

    find_operations    tells which operations there are for some words, and their arguments
    read_operation     calls one that only reads
    change_operation   calls any other; it is absent where all only read

A model cannot be offered hundreds of functions, and each costs tokens in every request. If any
operation that changes something must be approved, `change_operation` must. Nothing is sent to find
operations.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from tools.calling.arguments import check_arguments
from tools.protocol import ArgumentsError, OfferedTool, ToolContext, ToolOutput

FIND: Final = "find_operations"
READ: Final = "read_operation"
CHANGE: Final = "change_operation"

MAX_FOUND: Final = 20
SHOWN_WHOLE: Final = 5
"""Of so many the arguments are told; of the others, to which another search leads, the names."""

MAX_BRIEF_CHARS: Final = 200
MAX_QUERY_CHARS: Final = 500

Operation = Mapping[str, Any]
"""An operation as `DiscoveryResult.data` describes a function, with its plan in "request"."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W\d_a-zA-Z]+")
_QUERY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "Words that say what you want to do, or the name of an operation.",
            "minLength": 1,
            "maxLength": MAX_QUERY_CHARS,
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "operation": {
            "type": "string",
            "description": f"The operation's name, as {FIND} tells it.",
        },
        "arguments": {
            "type": "object",
            "description": f"The operation's arguments, as {FIND} describes them.",
        },
    },
    "required": ["operation"],
    "additionalProperties": False,
}


def listed_functions(operations: Sequence[Operation]) -> list[dict[str, Any]]:
    """Return the functions to offer for these operations, as `DiscoveryResult.data` wants them."""
    changing = [each for each in operations if not each["read_only"]]
    functions = [
        _function(
            FIND,
            f"Finds operations of this service ({len(operations)} in all) and tells their arguments.",
            _QUERY,
            is_safe=True,
        )
    ]
    if len(changing) < len(operations):
        said = f"Calls an operation that only reads. Find it with {FIND} first."
        functions.append(_function(READ, said, _CALL, is_safe=True))
    if changing:
        said = f"Calls an operation that may change something. Find it with {FIND} first."
        function = _function(CHANGE, said, _CALL, is_safe=False)
        if any(each.get("requires_approval") for each in changing):
            function["requires_approval"] = True
        functions.append(function)
    return functions


def _function(
    name: str, description: str, parameters: Mapping[str, Any], *, is_safe: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "parameters": parameters,
        "idempotent": is_safe,
        "read_only": is_safe,
    }


@dataclass(frozen=True, slots=True)
class SearchedFunction(OfferedTool):
    """One of the three. `make` makes an operation callable."""

    operations: Sequence[Operation] = field(repr=False)
    make: Callable[[Operation], OfferedTool] = field(repr=False)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        check_arguments(arguments, self.spec.parameters)
        if self.spec.name == FIND:
            return ToolOutput(write_found(self.operations, arguments["query"]))
        operation = self._operation(arguments["operation"])
        return await self.make(operation).call(arguments.get("arguments", {}), context)

    def _operation(self, name: str) -> Operation:
        """Return the operation of this name. Raises ArgumentsError."""
        for each in self.operations:
            if each["name"] == name:
                if each["read_only"] == self.is_read_only:
                    return each
                other = READ if each["read_only"] else CHANGE
                raise ArgumentsError(f"Call {name[:100]} with {other}.")
        raise ArgumentsError(f"There is no operation {name[:100]!r}. Find one with {FIND}.")


def write_found(operations: Sequence[Operation], query: str) -> str:
    """Return what the model reads: the best operations, the first of them with their arguments."""
    found = find_operations(operations, query)
    if not found:
        return "No operation fits. Try other words, such as the name of a thing."
    parts = [_write_whole(each) for each in found[:SHOWN_WHOLE]]
    more = [f"- {each['name']}: {_brief(each)}" for each in found[SHOWN_WHOLE:]]
    if more:
        parts.append("\n".join(["Fitting less; search for a name to read its arguments:", *more]))
    return "\n\n".join(parts)


def find_operations(operations: Sequence[Operation], query: str) -> list[Operation]:
    """Return at most MAX_FOUND operations, best first: one of that name, then by rare words."""
    asked = set(_words(query))
    texts = [Counter(_words(_text_of(each))) for each in operations]
    known = Counter(word for words in texts for word in words)
    weights = {word: math.log(1 + len(texts) / known[word]) for word in asked if word in known}
    scored = []
    for place, (each, words) in enumerate(zip(operations, texts, strict=True)):
        named = set(_words(each["name"]))
        score = sum(
            weight * (2 if word in named else 1) for word, weight in weights.items() if words[word]
        )
        if each["name"] == query.strip():
            score = math.inf
        if score:
            scored.append((-score, place, each))
    return [each for _, _, each in sorted(scored, key=lambda found: found[:2])[:MAX_FOUND]]


def _text_of(operation: Operation) -> str:
    said = operation["request"]
    return f"{operation['name']} {said['method']} {said['path']} {operation['description']}"


def _words(text: str) -> list[str]:
    """Return the words of a text or a name, as stems that plurals share."""
    return [word.lower().removesuffix("s") for word in _WORD.findall(text)]


def _write_whole(operation: Operation) -> str:
    caller = READ if operation["read_only"] else CHANGE
    schema = orjson.dumps(operation["parameters"]).decode()
    return f"{operation['name']} ({caller})\n{operation['description']}\nArguments: {schema}"


def _brief(operation: Operation) -> str:
    first = operation["description"].partition("\n")[0]
    return first if len(first) <= MAX_BRIEF_CHARS else f"{first[: MAX_BRIEF_CHARS - 1]}…"

"""Read YAML 1.2 as JSON: objects with text keys, lists, text, numbers, true, false and null.

The text is read event by event, without recursion and without tags: no Python object is ever made
of a tag. An alias counts as much as what it stands for, so that a few lines cannot become a million
values. Dates and YAML 1.1's `yes` and `on` stay text. Of the core schema
(https://yaml.org/spec/1.2.2/#103-core-schema) octal, hexadecimal and infinite numbers are left out.

Merge keys (`<<`, not part of YAML 1.2), keys that are not scalars or occur twice, and a second
document are refused.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

_PREFIX: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = frozenset({None, "!", f"{_PREFIX}map", f"{_PREFIX}seq"})
_TEXT_TAGS: Final = frozenset({"!", f"{_PREFIX}str"})
_PLAIN_TAGS: Final = frozenset(_PREFIX + name for name in ("int", "float", "bool", "null"))

_MAX_NUMBER_CHARS: Final = 100
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class YamlError(Exception):
    """The text is not YAML of this kind, or too large; the message is for its author."""


def read_yaml(text: str, *, max_depth: int, max_values: int) -> Any:
    """Return the text's one value, None if it is empty. Raises YamlError.

    Values of an alias are shared, not copied: treat what is returned as read-only.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(max_depth, max_values).build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        raise YamlError(_explain_error(error)) from None


def _explain_error(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or "it holds characters that may not be there"
    return f"line {mark.line + 1}: {said}" if mark is not None else said


@dataclass(slots=True)
class _OpenValue:
    """A list or an object under construction; `values` and `height` are what an alias adds."""

    made: dict[str, Any] | list[Any]
    anchor: str | None
    values: int = 1
    height: int = 1
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _BuiltValue:
    value: Any
    values: int = 1
    height: int = 0


class _Builder:
    """Puts the events of a document together."""

    def __init__(self, max_depth: int, max_values: int) -> None:
        self._max_depth = max_depth
        self._max_values = max_values
        self._stack: list[_OpenValue] = []
        self._anchored: dict[str, _BuiltValue] = {}
        self._values = 0
        self._root: Any = None
        self._documents = 0

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            kind = type(event).__name__
            if kind == "ScalarEvent":
                self._count(1)
                self._put(_BuiltValue(_scalar(event)), event.anchor)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._open(event, {} if kind == "MappingStartEvent" else [])
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                done = self._stack.pop()
                self._put(_BuiltValue(done.made, done.values, done.height), done.anchor)
            elif kind == "AliasEvent":
                self._put_alias(event.anchor)
            elif kind == "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise YamlError("there is more than one document")
        return self._root

    def _open(self, event: Any, made: dict[str, Any] | list[Any]) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise YamlError(f"the tag {event.tag[:100]} is not read")
        self._check_depth(1)
        self._count(1)
        self._stack.append(_OpenValue(made, event.anchor))

    def _put_alias(self, name: str) -> None:
        if name not in self._anchored:
            raise YamlError(f"the alias *{name[:100]} stands for nothing, or for itself")
        meant = self._anchored[name]
        self._check_depth(meant.height)
        self._count(meant.values)
        self._put(meant, None)

    def _put(self, done: _BuiltValue, anchor: str | None) -> None:
        if anchor is not None:
            self._anchored[anchor] = done
        if not self._stack:
            self._root = done.value
            return
        holder = self._stack[-1]
        holder.values += done.values
        holder.height = max(holder.height, done.height + 1)
        if isinstance(holder.made, list):
            holder.made.append(done.value)
        elif holder.key is None:
            holder.key = _key(done.value)
            if holder.key in holder.made:
                raise YamlError(f"{holder.key[:100]} stands twice in one object")
        else:
            holder.made[holder.key] = done.value
            holder.key = None

    def _check_depth(self, height: int) -> None:
        if len(self._stack) + height > self._max_depth:
            raise YamlError(f"it is nested more than {self._max_depth} deep")

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._max_values:
            raise YamlError(f"it holds more than {self._max_values:,} values, aliases written out")


def _key(value: Any) -> str:
    """Return a key as text; numbers (often status codes) are written as JSON."""
    if value == "<<":
        raise YamlError("merge keys (<<) are not read; write the values out")
    if isinstance(value, dict | list):
        raise YamlError("a key is itself an object or a list")
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
        return text
    if event.tag is not None and event.tag not in _PLAIN_TAGS:
        raise YamlError(f"the tag {event.tag[:100]} is not read")
    return _CONSTANTS[text] if text in _CONSTANTS else _number(text)


def _number(text: str) -> int | float | str:
    """Return the number, or the text itself if it is none or one that JSON cannot hold."""
    if len(text) > _MAX_NUMBER_CHARS:
        return text
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**64:
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text

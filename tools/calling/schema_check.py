"""Decide whether a stranger's schema of arguments can be used as it is.

It must be a JSON Schema 2020-12 of an object
(https://json-schema.org/draft/2020-12/json-schema-core), not too large or deep, and complete: a
`$ref` must lead to a place in the same schema. Nothing is fetched, and no pattern of the
stranger's is compiled. `jsonschema` (2 MB) is imported with the first schema.

Checking a schema against its meta-schema takes 10 ms, and clients send the same schemas with every
request, so verdicts are kept by the schema's hash.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from amber.lib.json_text.depth import is_deeper
from amber.lib.shortening import shorten

MAX_SCHEMA_BYTES: Final = 64_000
"""The model reads the schema with every request: 64 KB are some 16,000 tokens."""

MAX_SCHEMA_DEPTH: Final = 40

_SHOWN_CHARS: Final = 200
_REFERENCES: Final = ("$ref", "$dynamicRef")

MAX_VERDICTS: Final = 4_096
"""How many are kept, of some 300 bytes each; the least recently used go first."""

Fault = tuple[str, str]
"""A place in the schema, such as `properties.city` (empty: all of it), and what is wrong there."""


def schema_faults(schema: Any) -> list[Fault]:
    """Return what is wrong with a schema of parsed JSON; an empty list if it can be used."""
    if not isinstance(schema, dict):
        return [("", "This must be a JSON Schema, that is an object.")]
    written = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    if len(written) > MAX_SCHEMA_BYTES:
        return [("", f"The schema is larger than {MAX_SCHEMA_BYTES:,} bytes.")]
    if is_deeper(written, MAX_SCHEMA_DEPTH):
        return [("", f"The schema is nested more than {MAX_SCHEMA_DEPTH} deep.")]
    if schema.get("type", "object") != "object":
        return [("type", 'Arguments are named, so this must be "object".')]
    return list(_verdicts.get("whole", written, lambda: _faults_inside(schema)))


def meta_fault(schema: Any) -> Fault | None:
    """Return what the meta-schema says against a schema of any size; None if nothing.

    Raises RecursionError where it is too deep to be read.
    """
    written = json.dumps(schema, sort_keys=True).encode()  # takes integers of any size
    fault: Fault | None = _verdicts.get("meta", written, lambda: _meta_fault(schema))
    return fault


class Verdicts:
    """Remembers what was found out about a text, by its hash, for all threads of a process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, purpose: str, written: bytes, find: Callable[[], Any]) -> Any:
        """Return what `find` says, or said. Two threads may find out the same at once."""
        key = hashlib.sha256(purpose.encode() + b" " + written).digest()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = find()
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found


_verdicts: Final = Verdicts(MAX_VERDICTS)


def _faults_inside(schema: Mapping[str, Any]) -> tuple[Fault, ...]:
    broken = _meta_fault(schema)
    return (broken,) if broken else tuple(_reference_faults(schema))


def _meta_fault(schema: Any) -> Fault | None:
    """Return what the meta-schema says against a schema; None if nothing."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator

    no_formats = FormatChecker(formats=())  # they would compile the stranger's patterns
    try:
        Draft202012Validator.check_schema(schema, format_checker=no_formats)
    except SchemaError as error:
        place = ".".join(str(step) for step in error.absolute_path)
        return place, f"This is not JSON Schema 2020-12: {shorten(error.message, _SHOWN_CHARS)}"
    return None


def _reference_faults(schema: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for each reference that leads out of the schema, nowhere, or to no schema."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    waiting: list[Any] = [schema]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        if part is not schema and "$id" in part:
            yield "", "Only the whole schema may have an `$id`."
            return
        waiting.extend(each.contents for each in DRAFT202012.create_resource(part).subresources())
        for reference in (part[name] for name in _REFERENCES if name in part):
            shown = shorten(repr(reference), _SHOWN_CHARS)
            if not reference.startswith("#"):
                yield "", f"`$ref` {shown} leads out of the schema."
                continue
            try:
                target = resolver.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError):  # of a step into a list or text
                yield "", f"`$ref` {shown} leads nowhere."
                continue
            if id(target) not in seen and (fault := _meta_fault(target)):
                yield "", f"`$ref` {shown} leads to no schema: {fault[1]}"
            else:
                waiting.append(target)

"""Whether a stranger's schema of arguments can be used as it is.

It must be a JSON Schema 2020-12 of an object (https://json-schema.org/draft/2020-12/json-schema-core),
not too large or deep, and whole in itself: `$ref` leads to a place of the same schema, or the schema
is refused. Pure; nothing is fetched, and no pattern of the stranger's is compiled. `jsonschema` (2 MB) is
imported with the first schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from amber.lib.json_depth import is_deeper

MAX_SCHEMA_BYTES: Final = 64_000
"""The model reads it with every request: 64 KB are some 16,000 tokens."""

MAX_SCHEMA_DEPTH: Final = 40

_SHOWN_CHARS: Final = 200
_REFERENCES: Final = ("$ref", "$dynamicRef")

Fault = tuple[str, str]
"""Where in the schema, as `properties.city`, empty for all of it; and what is wrong."""


def schema_faults(schema: Any) -> list[Fault]:
    """Empty if it can be used. `schema` is JSON as parsed."""
    if not isinstance(schema, dict):
        return [("", "This must be a JSON Schema, that is an object.")]
    written = orjson.dumps(schema)
    if len(written) > MAX_SCHEMA_BYTES:
        return [("", f"The schema is larger than {MAX_SCHEMA_BYTES:,} bytes.")]
    if is_deeper(written, MAX_SCHEMA_DEPTH):
        return [("", f"The schema is nested more than {MAX_SCHEMA_DEPTH} deep.")]
    if schema.get("type", "object") != "object":
        return [("type", 'Arguments are named, so this must be "object".')]
    broken = _meta_fault(schema)
    return [broken] if broken else list(_reference_faults(schema))


def _meta_fault(schema: Any) -> Fault | None:
    """What the meta-schema says."""
    from jsonschema import FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator

    no_formats = FormatChecker(formats=())  # they would compile the stranger's patterns
    try:
        Draft202012Validator.check_schema(schema, format_checker=no_formats)
    except SchemaError as error:
        place = ".".join(str(step) for step in error.absolute_path)
        return place, f"This is no JSON Schema 2020-12: {_shortened(error.message)}"
    return None


def _reference_faults(schema: Mapping[str, Any]) -> Iterator[Fault]:
    """One for each reference that leads out of the schema, nowhere, or to what is no schema."""
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
            if not reference.startswith("#"):
                yield "", f"`$ref` {_shortened(repr(reference))} leads out of the schema."
                continue
            try:
                target = resolver.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError):  # of a step into a list or text
                yield "", f"`$ref` {_shortened(repr(reference))} leads nowhere."
                continue
            if id(target) not in seen and (fault := _meta_fault(target)):
                yield "", f"`$ref` {_shortened(repr(reference))} leads to no schema: {fault[1]}"
            else:
                waiting.append(target)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"

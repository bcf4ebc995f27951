"""Turn schemas of an OpenAPI document into plain, complete JSON Schema 2020-12.

What `$ref` names is written out in its place, as not every model server understands `$defs`. What
refers to itself is described once and then only by its type; so is what is nested deeper than
asked. What lies in another document may be anything. Each such cut is a note for whoever added the
tool.

OpenAPI 3.0's own dialect is translated (https://spec.openapis.org/oas/v3.0.3#schema-object):
`nullable`, boolean `exclusiveMinimum`, `example`. Properties that are `readOnly` belong to answers
and are left out. Only known keywords with values of the right type are kept, so that the result is
a valid schema whatever the document says; `patternProperties` is not among them, since checking it
would run a stranger's regular expressions.

Pure; work and size are bounded by `max_values`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from amber.lib.shortening import shorten
from tools.openapi.document import at_pointer, is_version_3_0, resolve_reference

Schema = dict[str, Any]

TYPES: Final = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
MAX_REFERENCES_DEEP: Final = 40
MAX_DESCRIPTION_CHARS: Final = 1_000
MAX_ENUM_CHARS: Final = 4_000
MAX_EXAMPLE_CHARS: Final = 200

_CUT: Final = "Not described further here."
_EXCLUSIVE: Final = ("exclusiveMinimum", "exclusiveMaximum")
_PLAIN_OBJECT: Final = frozenset({"type", "properties", "required", "description"})
_ANNOTATIONS: Final = frozenset({"description", "default", "examples"})


class TooManyValuesError(Exception):
    """The schema, written out, is too large; less depth would help."""


class SchemaReader:
    """Reads the schemas of one function. `notes` says what was cut, each thing once, in order."""

    def __init__(self, document: Mapping[str, Any], *, max_depth: int, max_values: int) -> None:
        self.notes: dict[str, None] = {}
        self._document = document
        self._max_depth = max_depth
        self._values_left = max_values
        self._ignores_siblings = is_version_3_0(document)

    def read(self, schema: Any) -> Schema:
        """Translate a schema. Raises TooManyValuesError."""
        return self._read(schema, 0, frozenset())

    def _read(self, schema: Any, depth: int, refs: frozenset[str]) -> Schema:
        self._values_left -= 1
        if self._values_left < 0:
            raise TooManyValuesError
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            self._note("something that is no schema was left out")
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._follow_reference(schema, depth, refs)
        if depth > self._max_depth:
            self._note(f"what is nested more than {self._max_depth} deep is not described")
            return stub(schema)
        return self._translate_schema(schema, depth, refs)

    def _follow_reference(self, schema: Schema, depth: int, refs: frozenset[str]) -> Schema:
        ref = schema["$ref"]
        target = at_pointer(self._document, ref)
        if not isinstance(target, dict | bool):
            self._note(f"{shorten(ref, 100)} is not in the document, so anything may stand there")
            return {}
        if ref in refs or len(refs) >= MAX_REFERENCES_DEEP:
            self._note(f"{shorten(ref, 100)} refers to itself and is described once only")
            return stub(resolve_reference(self._document, target))
        read = self._read(target, depth, refs | {ref})
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        if self._ignores_siblings:
            beside = {name: beside[name] for name in ("description",) if name in beside}
        if not beside:
            return read
        more = self._translate_schema(beside, depth, refs)
        return read | more if more.keys() <= _ANNOTATIONS else merge_all_of({"allOf": [read, more]})

    def _translate_schema(self, schema: Schema, depth: int, refs: frozenset[str]) -> Schema:
        def below(part: Any) -> Schema:
            return self._read(part, depth + 1, refs)

        read: Schema = {}
        for name, value in schema.items():
            if name in _VALUES:
                if _VALUES[name](value):
                    read[name] = value
                elif not (name in _EXCLUSIVE and _is_flag(value)):
                    self._note(f"a wrong `{name}` was left out")
            elif name in _ONE_SCHEMA and isinstance(value, dict | bool):
                read[name] = value if isinstance(value, bool) else below(value)
            elif name in _SCHEMA_LISTS and isinstance(value, list) and value:
                read[name] = [below(part) for part in value]
            elif name in _SCHEMA_MAPS and isinstance(value, dict):
                parts = self._without_read_only(value) if name == "properties" else value
                read[name] = {key: below(part) for key, part in parts.items()}
        self._leave_out_read_only(schema, read)
        return _finish_schema(schema, read)

    def _without_read_only(self, properties: Schema) -> Schema:
        return {name: part for name, part in properties.items() if not self._is_read_only(part)}

    def _leave_out_read_only(self, schema: Schema, read: Schema) -> None:
        given = schema.get("properties")
        if "required" in read and isinstance(given, dict):
            gone = given.keys() - read.get("properties", {}).keys()
            read["required"] = [name for name in read["required"] if name not in gone]

    def _is_read_only(self, part: Any) -> bool:
        target = resolve_reference(self._document, part)
        return isinstance(target, dict) and target.get("readOnly") is True

    def _note(self, text: str) -> None:
        self.notes[text] = None


def stub(schema: Any) -> Schema:
    """Describe the schema by its type alone."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return ({"type": kind} if _is_type(kind) else {}) | {"description": _CUT}


def merge_all_of(schema: Schema) -> Schema:
    """Merge `allOf` into the schema, if its parts are plain objects or there is only one."""
    parts = schema.get("allOf")
    if not parts:
        return schema
    rest = {name: value for name, value in schema.items() if name != "allOf"}
    if len(parts) == 1 and not (parts[0].keys() - _ANNOTATIONS) & rest.keys():
        return {**parts[0], **rest}
    properties: Schema = {}
    for part in (*parts, rest):
        plain = part.keys() <= _PLAIN_OBJECT and part.get("type", "object") == "object"
        own = part.get("properties", {})
        if not plain or any(properties.get(name, value) != value for name, value in own.items()):
            return schema
        properties |= own
    required = dict.fromkeys(name for part in (*parts, rest) for name in part.get("required", ()))
    whole: Schema = {"type": "object", "properties": properties}
    if required:
        whole["required"] = list(required)
    descriptions = [part["description"] for part in (rest, *parts) if "description" in part]
    return whole | ({"description": descriptions[0]} if descriptions else {})


def _finish_schema(schema: Schema, read: Schema) -> Schema:
    """Translate what concerns several keywords at once."""
    if "description" in read:
        read["description"] = shorten(read["description"], MAX_DESCRIPTION_CHARS)
    for bound, exclusive in zip(("minimum", "maximum"), _EXCLUSIVE, strict=True):
        if schema.get(exclusive) is True and bound in read:
            read[exclusive] = read.pop(bound)
    if "patternProperties" in schema:
        read.pop("additionalProperties", None)
    _shorten_enum(read)
    examples = schema.get("examples") if isinstance(schema.get("examples"), list) else None
    first = examples[0] if examples else schema.get("example")
    if first is not None and _size_chars(first) <= MAX_EXAMPLE_CHARS:
        read["examples"] = [first]
    read = merge_all_of(read)
    return _with_null(read) if schema.get("nullable") is True else read


def _shorten_enum(read: Schema) -> None:
    """Replace a long `enum` by some of its values in the description; the service checks it."""
    if "enum" in read and _size_chars(read["enum"]) > MAX_ENUM_CHARS:
        values = read.pop("enum")
        some = ", ".join(orjson.dumps(value).decode()[:50] for value in values[:20])
        said = f"{read.get('description', '')} One of {len(values)} values, such as {some}."
        read["description"] = said.strip()


def _with_null(schema: Schema) -> Schema:
    kind = schema.get("type")
    if kind is None:
        return {"anyOf": [schema, {"type": "null"}]} if schema else {}
    kinds = kind if isinstance(kind, list) else [kind]
    nullable = schema | {"type": [*kinds, "null"] if "null" not in kinds else kinds}
    if "enum" in schema and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _size_chars(value: Any) -> int:
    return len(orjson.dumps(value))


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return isinstance(value, list) and bool(value) and _are_different_texts(value, among=TYPES)


def _are_different_texts(value: Any, among: Iterable[str] | None = None) -> bool:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return False
    return len(set(value)) == len(value) and (among is None or set(value) <= set(among))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "required": _are_different_texts,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "const": lambda value: True,
    "default": lambda value: True,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("description", "format", "pattern"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(_EXCLUSIVE, _is_number),
    "uniqueItems": _is_flag,
}
_ONE_SCHEMA: Final = frozenset(
    {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"}
)
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"properties", "dependentSchemas"})

"""Read a function's JSON Schema as a tree of fields: what a table shows and a form asks for.

It reads what schemas of functions usually say. What a form cannot ask for (several types, free
names, schemas that contain themselves too deep) becomes a field for JSON. It checks nothing:
whether arguments fit is for `tools.calling.arguments`, which knows the whole schema.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from amber.lib.json_text import numbers

MAX_FIELDS: Final = 400
"""A schema may refer to itself in many places: beyond this everything is JSON."""

MAX_DEPTH: Final = 6
MAX_CHOICES: Final = 500
MAX_REFERENCES: Final = 10


class FieldKind(StrEnum):
    GROUP = "group"
    LIST = "list"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ArgumentField:
    """One value that a schema describes.

    `name` is the property's; empty for the whole and for the items of a list. `choices` are the
    values of an enum. `rules` are keywords of the schema that limit it, with their values. `parts` are
    a group's fields, or the one field that describes each item of a list.
    """

    name: str
    kind: FieldKind
    is_required: bool = True
    is_nullable: bool = False
    description: str = ""
    choices: tuple[Any, ...] = ()
    rules: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple["ArgumentField", ...] = ()


def read_fields(schema: Any) -> ArgumentField:
    """Return the fields of an object with this schema; its kind is always a group."""
    whole = _FieldReader(schema).read(
        "", schema, is_required=True, depth=0, within=frozenset({"#"})
    )
    return whole if whole.kind is FieldKind.GROUP else ArgumentField("", FieldKind.GROUP)


RULES: Final = (
    *("format", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("default", "examples"),
)
_WORDS: Final = ("description", "title")
_INDIRECT: Final = ("$ref", "allOf", "anyOf", "oneOf")
_KINDS: Final = {
    "string": FieldKind.TEXT,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}


class _FieldReader:
    """Reads one schema; counts its fields, so that a hostile one stays small."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._left = MAX_FIELDS

    def read(
        self, name: str, node: Any, *, is_required: bool, depth: int, within: frozenset[str]
    ) -> ArgumentField:
        """Read one schema. `within` are the references that led to it: none is followed again."""
        plain, is_nullable, within = self._simplify(node, within)
        types = _types_of(plain)
        is_nullable = is_nullable or "null" in types
        kind, parts = self._kind_and_parts(plain, types - {"null"}, depth, within)
        choices = _choices_of(plain) if kind is FieldKind.CHOICE else ()
        if choices and is_nullable and None not in choices:
            choices = (*choices, None)
        return ArgumentField(
            name,
            kind,
            is_required=is_required,
            is_nullable=is_nullable,
            description=_text_of(plain, "description") or _text_of(plain, "title"),
            choices=choices,
            rules={rule: plain[rule] for rule in RULES if rule in plain},
            parts=parts,
        )

    def _kind_and_parts(
        self, node: Mapping[str, Any], types: set[str], depth: int, within: frozenset[str]
    ) -> tuple[FieldKind, tuple[ArgumentField, ...]]:
        if 0 < len(_choices_of(node)) <= MAX_CHOICES:
            return FieldKind.CHOICE, ()
        if len(types) != 1:
            return FieldKind.JSON, ()
        (kind,) = types
        if kind in _KINDS:
            return _KINDS[kind], ()
        if depth < MAX_DEPTH and self._left > 0:
            if kind == "object":
                return self._group(node, depth, within)
            if kind == "array" and isinstance(node.get("items"), Mapping):
                self._left -= 1
                item = self.read(
                    "", node["items"], is_required=True, depth=depth + 1, within=within
                )
                return FieldKind.LIST, (item,)
        return FieldKind.JSON, ()

    def _group(
        self, node: Mapping[str, Any], depth: int, within: frozenset[str]
    ) -> tuple[FieldKind, tuple[ArgumentField, ...]]:
        """Return an object's fields; one whose names are free is JSON, unless it is the whole."""
        properties = node.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return (FieldKind.JSON if depth else FieldKind.GROUP), ()
        if len(properties) > self._left:
            return FieldKind.JSON, ()
        self._left -= len(properties)
        required = node.get("required")
        names = set(map(str, required)) if isinstance(required, list) else set()
        # Postgres keeps no order of names: those that must be given come first.
        ordered = sorted(properties.items(), key=lambda each: each[0] not in names)
        return FieldKind.GROUP, tuple(
            self.read(name, inner, is_required=name in names, depth=depth + 1, within=within)
            for name, inner in ordered
        )

    def _simplify(
        self, node: Any, within: frozenset[str]
    ) -> tuple[Mapping[str, Any], bool, frozenset[str]]:
        """Follow references, and take the one schema of allOf, anyOf and oneOf that is not null.

        Return the schema, whether null is allowed beside it, and the references so far.
        """
        is_nullable = False
        plain: Mapping[str, Any] = node if isinstance(node, Mapping) else {}
        for _ in range(MAX_REFERENCES):
            keyword = next((k for k in _INDIRECT if k in plain), None)
            if keyword is None or _choices_of(plain):
                return plain, is_nullable, within
            beside = {name: value for name, value in plain.items() if name != keyword}
            options = self._options(plain, keyword, within)
            others = [each for each in options if each.get("type") != "null"]
            if len(others) != 1:
                return {n: beside[n] for n in _WORDS if n in beside}, is_nullable, within
            is_nullable = is_nullable or len(others) < len(options)
            within = within | {str(plain.get("$ref", ""))} if keyword == "$ref" else within
            plain = {**others[0], **beside}
        return {}, is_nullable, within

    def _options(
        self, node: Mapping[str, Any], keyword: str, within: frozenset[str]
    ) -> list[Mapping[str, Any]]:
        given = node[keyword]
        if keyword == "$ref":
            return [] if str(given) in within else [self._find(given)]
        if not isinstance(given, list):
            return []
        return [each if isinstance(each, Mapping) else {} for each in given]

    def _find(self, reference: Any) -> Mapping[str, Any]:
        """Return what a reference within the schema points to; {} if there is nothing."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        place: Any = self._schema
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}


def _types_of(node: Mapping[str, Any]) -> set[str]:
    given = node.get("type")
    if isinstance(given, str):
        return {given}
    if isinstance(given, list):
        return {each for each in given if isinstance(each, str)}
    if "properties" in node:
        return {"object"}
    return {"array"} if "items" in node else set()


def _choices_of(node: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of `enum`, of `const`, or of alternatives that each name one."""
    if "const" in node:
        return (node["const"],)
    given = node.get("enum")
    if isinstance(given, list):
        return tuple(given)
    for keyword in ("oneOf", "anyOf"):
        options = node.get(keyword)
        if isinstance(options, list) and options and all(map(_names_one, options)):
            return tuple(each["const"] for each in options)
    return ()


def _names_one(option: Any) -> bool:
    return isinstance(option, Mapping) and "const" in option


def _text_of(node: Mapping[str, Any], name: str) -> str:
    given = node.get(name, "")
    return given.strip() if isinstance(given, str) else ""


def rows_of(
    whole: ArgumentField, *, depth: int = 0, place: str = ""
) -> Iterator[tuple[int, str, ArgumentField]]:
    """Yield the fields in the order of the schema, those within one right after it: how deep each
    lies, and the names on the way."""
    for part in whole.parts:
        if not part.name:  # an item of a list
            yield from rows_of(part, depth=depth, place=f"{place}[]")
            continue
        inner = f"{place}.{part.name}" if place else part.name
        yield depth, inner, part
        yield from rows_of(part, depth=depth + 1, place=inner)


def as_json(value: Any) -> str:
    """Write a value of a schema on one line; text without its quotes where that is plain."""
    return value if isinstance(value, str) and value.strip() else numbers.write(value).decode()

"""Turn one operation of an OpenAPI document into a function's schema and the request's plan.

Arguments are one flat object. Parameters keep their names; if two share one, the later in the order
path, query, header, cookie, body gets its place as a suffix (`id`, `id_body`). The fields of a body
that is a plain object are arguments, too: models, above all small ones, forget a wrapper around the
real arguments, and the services' own examples read flat. Any other body (a list, a choice of forms,
an object of free keys, one that may be absent yet has required fields) is the argument `body`.
Names that model servers refuse are cleaned (`filter[name]` becomes `filter_name`).

A model can never set headers that belong to the connection or carry the credential.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools.openapi.document import DocumentError, resolve_reference
from tools.openapi.plan import FORM, MULTIPART, Place, Where, is_json
from tools.openapi.schema import Schema, SchemaReader

MAX_ARGUMENT_NAME_CHARS: Final = 64
ORDER: Final[tuple[Where, ...]] = ("path", "query", "header", "cookie")
STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles that each place knows, the default first."""
QUERYSTRING: Final = "querystring"
"""The query as a whole, of OpenAPI 3.2: https://spec.openapis.org/oas/v3.2.0#parameter-locations"""

OWN_HEADERS: Final = frozenset(
    {
        *("accept", "accept-encoding", "accept-charset", "authorization", "connection"),
        *("content-encoding", "content-length", "content-type", "cookie", "expect", "forwarded"),
        *("host", "idempotency-key", "keep-alive", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "via"),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
    }
)

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_.-]+")
_IN_PATH = re.compile(r"\{([^{}/]+)\}")
_SPREADABLE: Final = frozenset(
    {"type", "properties", "required", "description", "additionalProperties", "examples"}
)


@dataclass(slots=True)
class Arguments:
    """Collects the parts of the arguments' schema, and where each argument goes."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    media_type: str = ""
    body_argument: str = ""
    needs_body: bool = False

    @property
    def schema(self) -> Schema:
        whole: Schema = {"type": "object", "properties": self.properties}
        if self.required:
            whole["required"] = self.required
        return whole | {"additionalProperties": False}

    def free_name(self, name: str, where: str) -> str:
        """Return a name for the argument: cleaned, and different from those already taken."""
        # The rest is for what is appended, such as `_header_99`.
        clean = _NOT_ALLOWED.sub("_", name).strip("_.")[: MAX_ARGUMENT_NAME_CHARS - 12] or where
        free, number = clean, 1
        while free in self.properties:
            free = f"{clean}_{where}" if number == 1 else f"{clean}_{where}_{number}"
            number += 1
        return free


class OperationReader:
    """Reads one operation; `own_places` (headers in lower case) are the key's, not the model's."""

    def __init__(
        self,
        document: Mapping[str, Any],
        schemas: SchemaReader,
        *,
        own_places: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self._document = document
        self._schemas = schemas
        self._own_places = own_places

    def read(self, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> Arguments:
        """Read an operation. Raises DocumentError (placed within it), TooManyValuesError."""
        found = Arguments()
        parameters = self._parameters(path, item, operation)
        for parameter in parameters:
            if parameter["in"] == QUERYSTRING:
                self._add_querystring(found, parameter)
        for where in ORDER:
            for parameter in parameters:
                if parameter["in"] == where and not self._is_own(parameter):
                    self._add_parameter(found, where, parameter)
        body = resolve_reference(self._document, operation.get("requestBody"))
        if isinstance(body, dict):
            self._add_body(found, body)
        return found

    def _parameters(
        self, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return all parameters; the operation's replace the path's of the same name and place."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for holder in (item, operation):
            for parameter in self._list_parameters(holder):
                found[parameter["in"], parameter["name"]] = parameter
        for name in dict.fromkeys(_IN_PATH.findall(path)):
            found.setdefault(
                ("path", name), {"name": name, "in": "path", "schema": {"type": "string"}}
            )
        unused = [n for w, n in found if w == "path" and f"{{{n}}}" not in path]
        return [p for (w, n), p in found.items() if w != "path" or n not in unused]

    def _list_parameters(self, holder: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        listed = holder.get("parameters", [])
        for number, reference in enumerate(listed if isinstance(listed, list) else []):
            parameter = resolve_reference(self._document, reference)
            known = isinstance(parameter, dict) and parameter.get("in") in (*STYLES, QUERYSTRING)
            if not known or not isinstance(parameter.get("name"), str) or not parameter["name"]:
                raise DocumentError(
                    "It needs a name and must be in path, query, header or cookie.",
                    place=f"parameters[{number}]",
                )
            yield parameter

    def _is_own(self, parameter: Mapping[str, Any]) -> bool:
        name, where = parameter["name"], parameter["in"]
        if (where, name.lower() if where == "header" else name) in self._own_places:
            return True
        if where == "header":
            return name.lower() in OWN_HEADERS or not _TOKEN.fullmatch(name)
        return where == "cookie" and not _TOKEN.fullmatch(name)

    def _add_parameter(self, found: Arguments, where: Where, parameter: Mapping[str, Any]) -> None:
        content = parameter.get("content")
        media = next(iter(content.items()), None) if isinstance(content, dict) else None
        described = media[1] if media and isinstance(media[1], dict) else parameter
        schema = self._schemas.read(described.get("schema", {}))
        if isinstance(parameter.get("description"), str):
            schema = schema | {"description": parameter["description"][:1_000]}
        style = parameter.get("style")
        style = style if style in STYLES[where] else STYLES[where][0]
        explode = parameter.get("explode")
        place = Place(
            argument=found.free_name(parameter["name"], where),
            name=parameter["name"],
            where=where,
            style=style,
            explode=explode if isinstance(explode, bool) else style == "form",
            as_json=media is not None and is_json(media[0]),
            allow_reserved=where == "query" and parameter.get("allowReserved") is True,
        )
        is_required = where == "path" or parameter.get("required") is True
        _add(found, place, schema, is_required=is_required)

    def _add_querystring(self, found: Arguments, parameter: Mapping[str, Any]) -> None:
        """Add the fields of a form that is the whole query. Raises DocumentError."""
        content = parameter.get("content")
        media = (
            resolve_reference(self._document, (content or {}).get(FORM))
            if isinstance(content, dict)
            else None
        )
        schema = self._schemas.read(media.get("schema", {})) if isinstance(media, dict) else {}
        if not _is_spreadable(schema):
            raise DocumentError(
                "Amber can send a whole query only as a form with named fields.", place="parameters"
            )
        required = schema.get("required", []) if parameter.get("required") is True else []
        for name, part in schema["properties"].items():
            if ("query", name) not in self._own_places:
                place = Place(found.free_name(name, "query"), name, "query", "form", explode=True)
                _add(found, place, part, is_required=name in required)

    def _add_body(self, found: Arguments, body: Mapping[str, Any]) -> None:
        is_required = body.get("required") is True
        content = body.get("content")
        offered = content if isinstance(content, dict) else {}
        chosen = _choose_media(
            {n: resolve_reference(self._document, m) for n, m in offered.items()}
        )
        if chosen is None:
            if is_required:
                raise DocumentError(
                    "Amber can send none of its media types. It can send JSON, forms and text.",
                    place="requestBody.content",
                )
            return
        media_type, media = chosen
        schema = self._schemas.read(media.get("schema", {}))
        found.media_type, found.needs_body = media_type, is_required
        must_be_whole = not is_required and bool(schema.get("required"))
        if _is_spreadable(schema) and not must_be_whole and not media_type.startswith("text/"):
            self._spread(found, schema, media.get("encoding"))
            return
        if isinstance(body.get("description"), str) and "description" not in schema:
            schema = schema | {"description": body["description"][:1_000]}
        found.body_argument = found.free_name("body", "whole")
        found.properties[found.body_argument] = schema
        if is_required:
            found.required.append(found.body_argument)

    def _spread(self, found: Arguments, schema: Schema, encoding: Any) -> None:
        required = schema.get("required", [])
        for name, part in schema["properties"].items():
            said = encoding.get(name) if isinstance(encoding, dict) else None
            said = said if isinstance(said, dict) else {}
            style = said.get("style") if said.get("style") in STYLES["query"] else ""
            explode = said.get("explode")
            place = Place(
                argument=found.free_name(name, "body"),
                name=name,
                where="body",
                style=str(style),
                explode=explode if isinstance(explode, bool) else style in ("", "form"),
                as_json=is_json(str(said.get("contentType", ""))),
                is_file=part.get("format") == "binary" or "contentMediaType" in part,
            )
            _add(found, place, part, is_required=name in required)


def _add(found: Arguments, place: Place, schema: Schema, *, is_required: bool) -> None:
    found.places.append(place)
    found.properties[place.argument] = schema
    if is_required:
        found.required.append(place.argument)


def _choose_media(offered: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the first media type of the best kind: JSON, form, multipart, then text."""
    kinds = (is_json, FORM.__eq__, MULTIPART.__eq__, lambda name: name.startswith("text/"))
    for is_of_kind in (*kinds, "*/*".__eq__):
        for name, media in offered.items():
            essence = name.partition(";")[0].strip().lower()
            if essence == "*/*" and is_of_kind(essence) and isinstance(media, dict):
                return "application/json", media
            if is_of_kind(essence) and _MEDIA_TYPE.fullmatch(essence) and isinstance(media, dict):
                return essence, media
    return None


def _is_spreadable(schema: Schema) -> bool:
    return (
        schema.keys() <= _SPREADABLE
        and schema.get("type", "object") == "object"
        and bool(schema.get("properties"))
        and not isinstance(schema.get("additionalProperties"), dict)
        and set(schema.get("required", ())) <= schema["properties"].keys()
    )

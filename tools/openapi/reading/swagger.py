"""Turn a Swagger 2.0 document into one of OpenAPI 3.0, as far as calls need it.

    document = swagger_as_openapi(document)

Parameters get a schema, bodies and form fields become a request body, host and base path a server,
security definitions security schemes. Schemas stay where they are: `#/definitions/…` leads to them
in the new document as well. Answers are left out, since nothing here reads them.
https://spec.openapis.org/oas/v2.0.html

Pure, and never fails: what is not as it should be is passed on, to be refused as in any document.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Json = dict[str, Any]
Resolve = Callable[[Any], Any]
"""Returns what a part of the document refers to, or the part itself."""

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")

_OF_SCHEMA: Final = (
    *("type", "format", "items", "default", "enum", "pattern", "multipleOf", "uniqueItems"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "maxItems", "minItems"),
)
_STYLES: Final[Mapping[Any, Json]] = {
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"style": "form", "explode": True},
}
"""Of lists in a query or a form; without a word they are separated by commas."""


def swagger_as_openapi(document: Json, resolve: Resolve) -> Json:
    """Return the document as OpenAPI 3.0, with the parts that were not translated as they were."""
    paths = document.get("paths")
    return {
        **document,
        "openapi": "3.0.3",
        "servers": list(_servers(document)),
        "paths": {
            path: _path_item(item, document, resolve) if path.startswith("/") else item
            for path, item in (paths.items() if isinstance(paths, dict) else ())
        },
        "components": {"securitySchemes": _schemes(document.get("securityDefinitions"))},
    }


def _servers(document: Json) -> Iterator[Json]:
    """Yield the server; none where the document leaves it to its own address."""
    host, base = document.get("host"), document.get("basePath")
    base = base if isinstance(base, str) else ""
    if isinstance(host, str) and host:
        schemes = _texts(document.get("schemes")) or ["https"]
        scheme = "https" if "https" in schemes else schemes[0]
        yield {"url": f"{scheme}://{host}{base}"}
    elif base:
        yield {"url": base}


def _schemes(definitions: Any) -> Json:
    described = definitions if isinstance(definitions, dict) else {}
    return {
        name: {"type": "http", "scheme": "basic"}
        if isinstance(scheme, dict) and scheme.get("type") == "basic"
        else scheme
        for name, scheme in described.items()
    }


def _path_item(reference: Any, document: Json, resolve: Resolve) -> Any:
    item = resolve(reference)
    if not isinstance(item, dict):
        return reference
    shared = _parameters(item, resolve)
    made: Json = {name: part for name, part in item.items() if name != "parameters"}
    for method in METHODS:
        operation = resolve(item.get(method))
        if isinstance(operation, dict):
            made[method] = _operation(operation, shared, document, resolve)
    return made


def _operation(operation: Json, shared: list[Any], document: Json, resolve: Resolve) -> Json:
    made: Json = {name: part for name, part in operation.items() if name != "responses"}
    found: dict[Any, Any] = {}
    for number, parameter in enumerate([*shared, *_parameters(operation, resolve)]):
        found[_name(parameter) or number] = parameter
    given = list(found.values())
    bodies = [each for each in given if _place(each) == "body"]
    fields = [each for each in given if _place(each) == "formData"]
    made["parameters"] = [
        _parameter(each) for each in given if _place(each) not in ("body", "formData")
    ]
    accepted = _texts(operation.get("consumes", document.get("consumes")))
    if bodies:
        made["requestBody"] = _body(bodies[-1], accepted or ["application/json"])
    elif fields:
        made["requestBody"] = _form(fields, accepted)
    return made


def _parameters(holder: Json, resolve: Resolve) -> list[Any]:
    listed = holder.get("parameters")
    return [resolve(each) for each in listed] if isinstance(listed, list) else []


def _parameter(parameter: Any) -> Any:
    if not isinstance(parameter, dict):
        return parameter
    made = {
        name: part
        for name, part in parameter.items()
        if name not in _OF_SCHEMA and name != "collectionFormat"
    }
    return made | {"schema": _schema(parameter)} | _style(parameter)


def _style(parameter: Json) -> Json:
    if parameter.get("type") != "array" or _place(parameter) not in ("query", "formData"):
        return {}
    return _STYLES.get(
        _text(parameter.get("collectionFormat")), {"style": "form", "explode": False}
    )


def _schema(parameter: Json) -> Json:
    schema: Json = {name: parameter[name] for name in _OF_SCHEMA if name in parameter}
    if schema.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return schema


def _body(parameter: Json, accepted: list[str]) -> Json:
    made: Json = {"required": parameter.get("required") is True}
    if "description" in parameter:
        made["description"] = parameter["description"]
    schema = parameter.get("schema", {})
    return made | {"content": {media_type: {"schema": schema} for media_type in accepted}}


def _form(fields: list[Json], accepted: list[str]) -> Json:
    is_multipart = any(each.get("type") == "file" for each in fields) or (
        MULTIPART in accepted and FORM not in accepted
    )
    named = {str(each.get("name")): each for each in fields}
    properties = {name: _field_schema(each) for name, each in named.items()}
    required = [name for name, each in named.items() if each.get("required") is True]
    schema: Json = {"type": "object", "properties": properties}
    media: Json = {"schema": schema | ({"required": required} if required else {})}
    media["encoding"] = {name: style for name, each in named.items() if (style := _style(each))}
    return {
        "required": bool(required),
        "content": {MULTIPART if is_multipart else FORM: media},
    }


def _field_schema(field: Json) -> Json:
    said = field.get("description")
    return _schema(field) | ({"description": said} if isinstance(said, str) else {})


def _name(parameter: Any) -> tuple[str, str] | None:
    """Return what an operation's parameter replaces its path's by; a body replaces any body."""
    place = _place(parameter)
    if place == "body":
        return "body", ""
    name = parameter.get("name") if isinstance(parameter, dict) else None
    return (place, name) if isinstance(name, str) else None


def _place(parameter: Any) -> str:
    return _text(parameter.get("in")) if isinstance(parameter, dict) else ""


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

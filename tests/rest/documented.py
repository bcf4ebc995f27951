"""The OpenAPI document as a judge of answers: has a body just the fields that are documented?"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from tests.rest.routes import Route


@cache
def document() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)


def check(method: str, address: str, status: int, body: Any) -> set[str]:
    """Fail unless the answer is documented: every required field is there, and no other.

    Return the components of which the answer held an object.
    """
    path = Route(resolve(address.partition("?")[0]).route, None).documented
    documented = document()["paths"][path][method]["responses"]
    assert 200 <= status < 300 and str(status) in documented, f"{method} {path}: {status} {body}"
    schema = documented[str(status)]["content"]["application/json"]["schema"]
    whole = closed(json_schema({"components": document()["components"], **schema}))
    checker = Draft202012Validator(whole, format_checker=Draft202012Validator.FORMAT_CHECKER)
    problems = [f"{error.json_path}: {error.message}" for error in checker.iter_errors(body)]
    assert not problems, f"{method} {path}: {problems}"
    return set(_components_in(schema, body))


def documented_components() -> set[str]:
    """Return the components with fields that any answer in JSON may hold."""
    wanted = {
        name
        for operations in document()["paths"].values()
        for operation in operations.values()
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for name in _named_in(response.get("content", {}).get("application/json", {}))
    }
    schemas = document()["components"]["schemas"]
    found: set[str] = set()
    while wanted:
        found |= wanted
        wanted = {inner for name in wanted for inner in _named_in(schemas[name])} - found
    return {name for name in found if "properties" in schemas[name]}


def _named_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict) and "$ref" in node:
        yield node["$ref"].rpartition("/")[2]
    elif isinstance(node, dict | list):
        for inner in node.values() if isinstance(node, dict) else node:
            yield from _named_in(inner)


def _components_in(schema: Any, value: Any) -> Iterator[str]:
    """Yield the components whose objects the value holds; of `oneOf` those whose fields it has."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = document()["components"]["schemas"][name]
        if isinstance(value, dict) and set(schema.get("required", ())) <= set(value):
            yield name
    for part in [*schema.get("allOf", ()), *schema.get("oneOf", ())]:
        yield from _components_in(part, value)
    if isinstance(value, list):
        for each in value:
            yield from _components_in(schema.get("items", {}), each)
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            yield from _components_in(inner, value.get(name))


def json_schema(node: Any) -> Any:
    """OpenAPI 3.0 says `nullable` where JSON Schema has another type."""
    if isinstance(node, list):
        return [json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: json_schema(each) for name, each in node.items()}
    return {"anyOf": [plain, {"type": "null"}]} if plain.pop("nullable", False) is True else plain


def closed(node: Any) -> Any:
    """Names that no field has are mistakes."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    inner = {name: closed(each) for name, each in node.items()}
    has_fields = isinstance(inner.get("properties"), dict) and inner.get("type") == "object"
    return {"additionalProperties": False, **inner} if has_fields else inner

"""Read and check what a discovery address answers with, field by field (docs/tools.md).

    {"name", "description", "homepage_url"?, "callback_url", "functions": [{"name", "description",
     "parameters", "idempotent"?, "read_only"?, "requires_approval"?, "timeout_seconds"?}]}

All that is wrong is reported at once, each fault at its place (`functions[2].parameters`). Unknown
fields are ignored. Pure: the guarded client decides whether the callback may be called, and the
toolbox renames what models do not accept; here it is only a warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from amber.lib.egress.policy import MAX_URL_CHARS, UnsafeAddress, origin_of
from tools.calling.schema_check import schema_faults
from tools.calling.toolbox import allowed_name
from tools.source import DiscoveryError

MAX_FUNCTIONS: Final = 256
"""Twice as many as one request may offer, so that assistants can choose."""

MAX_NAME_CHARS: Final = 200
MAX_DESCRIPTION_CHARS: Final = 4_000
MAX_TIMEOUT_SECONDS: Final = 600
MAX_FAULTS: Final = 25
"""Further faults are only counted: these are enough to act on."""

_Name = Annotated[str, StringConstraints(pattern=r"\S", max_length=MAX_NAME_CHARS)]
_Text = Annotated[str, StringConstraints(pattern=r"\S", max_length=MAX_DESCRIPTION_CHARS)]
_Url = Annotated[str, StringConstraints(max_length=MAX_URL_CHARS)]


class _Function(BaseModel):
    model_config = ConfigDict(strict=True)

    name: _Name
    description: _Text
    parameters: dict[str, Any]
    idempotent: bool | None = None
    read_only: bool | None = None
    requires_approval: bool | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None


class _ManifestDocument(BaseModel):
    model_config = ConfigDict(strict=True)

    name: _Name
    description: _Text
    callback_url: _Url
    homepage_url: _Url | None = None
    functions: Annotated[list[_Function], Field(min_length=1, max_length=MAX_FUNCTIONS)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that can be used; `functions` are as `tools.source.DiscoveryResult.data` wants them."""

    name: str
    description: str
    callback_url: str
    homepage_url: str
    functions: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]


def read_manifest(given: Any) -> Manifest:
    """Read a manifest from parsed JSON. Raises DiscoveryError with all that is wrong, by field."""
    if not isinstance(given, Mapping):
        raise DiscoveryError("The manifest is not a JSON object.")
    try:
        document = _ManifestDocument.model_validate(given)
    except ValidationError as error:
        raise _refusal(_shape_faults(error)) from None
    faults = list(_content_faults(document))
    if faults:
        raise _refusal(faults)
    return Manifest(
        name=document.name.strip(),
        description=document.description.strip(),
        callback_url=document.callback_url,
        homepage_url=document.homepage_url or "",
        functions=tuple(each.model_dump(exclude_none=True) for each in document.functions),
        warnings=tuple(_warnings(document)),
    )


Fault = tuple[str, str]
"""A field, such as `functions[2].name`, and what is wrong with it."""


def _shape_faults(error: ValidationError) -> list[Fault]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [(_place(each["loc"]), _write_fault(each["type"], each["msg"])) for each in found]


def _place(steps: tuple[int | str, ...]) -> str:
    """Write a place as people do: `functions[2].parameters`."""
    written = ""
    for step in steps:
        dot = "." if written else ""
        written += f"[{step}]" if isinstance(step, int) else f"{dot}{step}"
    return written


def _write_fault(kind: str, message: str) -> str:
    match kind:
        case "missing":
            return "This field is missing."
        case "string_pattern_mismatch":
            return "This must not be empty."
        case "dict_type":
            return "This must be a JSON Schema, that is an object."
        case _:
            return f"{message}."


def _content_faults(document: _ManifestDocument) -> Iterator[Fault]:
    for field in ("callback_url", "homepage_url"):
        url = getattr(document, field)
        if url and not _is_web_address(url):
            yield field, "This must be an absolute http or https address."
    first: dict[str, int] = {}
    for number, function in enumerate(document.functions):
        place = f"functions[{number}]"
        if not function.name.isprintable():
            yield f"{place}.name", "This holds characters that cannot be shown."
        if first.setdefault(function.name, number) != number:
            yield f"{place}.name", f"functions[{first[function.name]}] already has this name."
        for inner, text in schema_faults(function.parameters):
            yield f"{place}.parameters{f'.{inner}' if inner else ''}", text


def _is_web_address(url: str) -> bool:
    try:
        origin_of(url)
    except UnsafeAddress:
        return False
    return True


def _warnings(document: _ManifestDocument) -> Iterator[str]:
    for number, function in enumerate(document.functions):
        offered = allowed_name(function.name)
        if offered != function.name:
            yield f"functions[{number}].name: {function.name!r} is offered to models as {offered}."


def _refusal(faults: list[Fault]) -> DiscoveryError:
    fields: dict[str, list[str]] = {}
    for place, text in faults[:MAX_FAULTS]:
        fields.setdefault(place, []).append(text)
    place, text = faults[0]
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    return DiscoveryError(f"The manifest cannot be used. {place}: {text}{more}", fields=fields)

"""Read a typed Python function as a tool: its name, docstring and `Annotated` parameters.

    def weather(city: Annotated[str, "The city's name", True]) -> str:
        "Says how the weather is."

The third part says whether the parameter is required; without it a default makes it optional.
A parameter annotated `ToolContext` receives the call's context and is not shown to the model.
Pydantic makes the JSON Schema 2020-12 and validates. Whatever is missing is a TypeError when the
function is registered, that is, at import. *args, **kwargs and positional-only parameters are
refused.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from engine.tools import ToolSpec
from tools.protocol import ArgumentsError, ToolContext

_MAX_SHOWN_ERRORS: Final = 5


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as a tool. `context_name` is the parameter that receives the context, if any.

    `absent` holds what optional parameters without a default receive when the model omits them.
    """

    spec: ToolSpec
    adapter: "TypeAdapter[dict[str, Any]]"
    required: frozenset[str]
    context_name: str | None
    absent: Mapping[str, None]

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Return the function's keyword arguments. Raises ArgumentsError.

        An optional argument that is null counts as omitted, since models often write null for it.
        """
        given = {n: v for n, v in arguments.items() if v is not None or n in self.required}
        try:
            bound = dict(self.absent) | self.adapter.validate_python(given)
        except ValidationError as error:
            raise ArgumentsError(_explain_error(error)) from error
        if self.context_name is not None:
            bound[self.context_name] = context
        return bound


@dataclass(frozen=True, slots=True)
class _Parameter:
    kind: Any
    description: str
    required: bool
    default: Any


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read the function. Raises TypeError, which says what is missing."""
    name = function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise TypeError(f"{name} has no docstring; the model reads it to know what the tool does.")
    hints = get_type_hints(function, include_extras=True)
    parameters: dict[str, _Parameter] = {}
    context_name: str | None = None
    for each in inspect.signature(function).parameters.values():
        if hints.get(each.name) is ToolContext:
            context_name = each.name
        else:
            parameters[each.name] = _read_parameter(name, each, hints)
    adapter = _adapter(name, parameters)
    schema = adapter.json_schema(schema_generator=_PlainSchema)
    schema.pop("title", None)
    return Signature(
        spec=ToolSpec(name=name, description=description, parameters=schema),
        adapter=adapter,
        required=frozenset(n for n, p in parameters.items() if p.required),
        context_name=context_name,
        absent={
            n: None
            for n, p in parameters.items()
            if not p.required and p.default is inspect.Parameter.empty
        },
    )


def _read_parameter(
    function_name: str, parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> _Parameter:
    place = f"{function_name}({parameter.name})"
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(f"{place} cannot be given by name; models give arguments by name.")
    if parameter.name not in hints:
        raise TypeError(f"{place} has no annotation.")
    annotation = hints[parameter.name]
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"{place} is not Annotated[type, description].")
    kind, description, *rest = get_args(annotation)
    if not isinstance(description, str):
        raise TypeError(f"{place}: the description {description!r} is not a string.")
    required = rest[0] if rest else parameter.default is parameter.empty
    if not isinstance(required, bool):
        raise TypeError(f"{place}: required is {required!r}, not True or False.")
    return _Parameter(kind, description, required, parameter.default)


def _adapter(name: str, parameters: Mapping[str, _Parameter]) -> "TypeAdapter[dict[str, Any]]":
    """Make the validator of the arguments.

    A TypedDict takes any parameter name; a model class would not ("schema", "copy", …).
    """
    fields: dict[str, Any] = {}
    for each, parameter in parameters.items():
        extra: dict[str, Any] = {}
        if not parameter.required and isinstance(parameter.default, str | int | float):
            extra = {"default": parameter.default}
        about = Field(description=parameter.description, json_schema_extra=extra)
        described: Any = Annotated[parameter.kind, about]
        fields[each] = described if parameter.required else NotRequired[described]
    new_type: Any = TypedDict  # a type checker wants to see the fields, which are made above
    arguments = new_type(name, fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(arguments)


class _PlainSchema(GenerateJsonSchema):
    """Omits the titles that pydantic makes of names, since every token costs."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _explain_error(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found]
    if len(texts) > _MAX_SHOWN_ERRORS:
        texts[_MAX_SHOWN_ERRORS:] = [f"and {len(texts) - _MAX_SHOWN_ERRORS} more"]
    return f"The arguments are wrong. {'; '.join(texts)}."

"""Hold what a caller asks of one turn beyond its assistant: `Turn.options`, as values.

These are sampling, the client's own tools, the form of the answer, and prompts for this turn alone.
They are checked where the request is read; here they are only stored and read again. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from engine.provider.model import ModelRequest
from engine.tools import ToolChoice, ToolSpec


@dataclass(frozen=True, slots=True)
class CallOptions:
    """One turn's options; a default leaves the choice to the assistant, or to the provider.

    `model` is an alias, for turns without an assistant; such a turn `is_bare` when it is offered no
    built-in tools either. `is_unattended`: nobody can approve calls, so those that need approval
    are refused. `tools` are run by the caller. `extra` goes into the provider's request as it is.
    `echo` is what the caller wants back along with the answer: the turn keeps it, and never looks
    at it.
    """

    model: str = ""
    is_bare: bool = False
    is_unattended: bool = False
    prompts: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_format: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    echo: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """Read them from `Turn.options`. What a newer release has written there is passed over."""
        given = _known_fields(cls, options)
        given["tools"] = tuple(
            ToolSpec(**_known_fields(ToolSpec, t)) for t in given.get("tools", ())
        )
        given |= {name: tuple(given.get(name, ())) for name in ("prompts", "stop")}
        return cls(**given)

    def as_json(self) -> dict[str, Any]:
        """Return them for `Turn.options`, without those at their defaults."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        said |= {"tools": [_tool(tool) for tool in self.tools]}
        said |= {name: list(said[name]) for name in ("prompts", "stop")}
        return {
            name: value
            for name, value in said.items()
            if value not in (None, "", [], {}) and value is not False
        }

    def apply_to(self, request: ModelRequest, *, max_output_tokens: int) -> ModelRequest:
        """Return the request with these options; its reply is no longer than the model allows."""
        asked = self.max_output_tokens
        return replace(
            request,
            tool_choice=self.tool_choice if request.tools else None,
            temperature=request.temperature if self.temperature is None else self.temperature,
            top_p=request.top_p if self.top_p is None else self.top_p,
            max_output_tokens=None if asked is None else min(asked, max_output_tokens),
            stop=self.stop,
            seed=self.seed,
            response_format=self.response_format,
            extra=self.extra,
        )


NO_OPTIONS: Final = CallOptions()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    said = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return said if tool.strict is None else said | {"strict": tool.strict}


def _known_fields(form: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given for the fields of a dataclass."""
    names = {each.name for each in fields(form)}
    return {name: value for name, value in given.items() if name in names}

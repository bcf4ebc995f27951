"""Mark the parts of the work: spans, which a recorder writes down if this process has one.

    @trace(names.GATHER)                            a function that is a part by itself
    with span(names.EXECUTE_TOOL.format(…)) as it:   a part that tells more: it.set({…})
    with enter(Beginning(…)):                        one that begins in a process, under a given parent

There are two recorders: OpenTelemetry's exporter (`amber.lib.tracing.exporting`), and the anatomy of a turn
(`bench.anatomy.recorder`). It must be there before the modules with spans are imported: without one
`trace` returns the function itself, and `span` an object that does nothing. In a trace that is not
recorded spans cost as little.

Spans hold no text of people or models unless `may_show_content`, and of errors only the kind.
The current span is Amber's own variable, not OpenTelemetry's: other libraries neither add to these traces
nor send their ids to anybody.
"""

import asyncio
import functools
import inspect
import re
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypeVar, cast

from django.conf import settings

from amber.lib.shortening import shorten

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | bool | int | float | Sequence[str] | None]
"""None: unknown, and not written."""
Function = TypeVar("Function", bound=Callable[..., Any])

TRACE_PARENT: Final = re.compile(
    r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)
"""Matches the header of https://www.w3.org/TR/trace-context/ in its version 00."""

MOST_CHARS: Final = 8_000
"""What a span shows of one text, where it may."""


class TraceSpan(Protocol):
    """A part of the work, from its beginning to `end`."""

    @property
    def is_recorded(self) -> bool: ...

    @property
    def trace_parent(self) -> str:
        """Return what a part in another process names as its parent; empty without a trace."""
        ...

    def set(self, attributes: Attributes) -> None: ...

    def rename(self, name: str) -> None: ...

    def end(self, error: str = "", *, at_ns: int | None = None) -> None:
        """End it, now or at a time since 1970; a second call does nothing. `error` is its kind."""
        ...


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a span begins.

    `parent` is a span of this process, or the `trace_parent` of another's; None begins a trace.
    `follows` is the `trace_parent` of a span to link to, `id` is 0 unless the span's id is given.
    `shows_content`: it and the spans below it may hold what people and models wrote.
    """

    name: str
    kind: Kind = "internal"
    parent: TraceSpan | str | None = None
    attributes: Attributes = field(default_factory=dict)
    at_ns: int | None = None
    id: int = 0
    follows: str = ""
    shows_content: bool = False


class Recorder(Protocol):
    """Writes spans down."""

    def begin(self, beginning: Beginning) -> TraceSpan: ...


class _NoSpan:
    """Stands for a span where nobody records; does nothing, also as a block."""

    is_recorded = False
    trace_parent = ""

    def set(self, attributes: Attributes) -> None: ...

    def rename(self, name: str) -> None: ...

    def end(self, error: str = "", *, at_ns: int | None = None) -> None: ...

    def __enter__(self) -> TraceSpan:
        return self

    def __exit__(self, *_: object) -> None: ...


NO_SPAN: Final = _NoSpan()

_recorder: Recorder | None = None
_current: ContextVar[TraceSpan | None] = ContextVar("span", default=None)
_shows_content: ContextVar[bool] = ContextVar("shows_content", default=False)


def use(recorder: Recorder | None) -> None:
    """Record from now on, in the modules that are imported after this."""
    global _recorder
    _recorder = recorder


def is_on() -> bool:
    return _recorder is not None


def record(beginning: Beginning, error: str = "") -> None:
    """Record a span that ends now, independent of the current one: for work whose process died."""
    if _recorder is not None:
        _recorder.begin(beginning).end(error)


# -- Parts -----------------------------------------------------------------------------------------


def trace(name: str, *, kind: Kind = "internal") -> Callable[[Function], Function]:
    """Make each call of the decorated function, or coroutine, a span."""

    def decorate(function: Function) -> Function:
        if _recorder is None:
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with span(name, kind=kind):
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
            with span(name, kind=kind):
                return await function(*args, **kwargs)

        wrapper = call_coroutine if inspect.iscoroutinefunction(function) else call
        return cast(Function, wrapper)

    return decorate


def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "internal"
) -> AbstractContextManager[TraceSpan]:
    """Make the block a span below the current one."""
    if _recorder is None:
        return NO_SPAN
    parent = _current.get()
    if parent is not None and not parent.is_recorded:
        return NO_SPAN
    return _SpanBlock(_recorder.begin(Beginning(name, kind, parent, attributes or {})))


def enter(beginning: Beginning) -> AbstractContextManager[TraceSpan]:
    """Make the block a span with the parent that is named, whatever the current one is."""
    if _recorder is None:
        return NO_SPAN
    return _SpanBlock(_recorder.begin(beginning), shows_content=beginning.shows_content)


def begin(name: str, attributes: Attributes, *, kind: Kind = "internal") -> TraceSpan:
    """Begin a span below the current one without making it current, for generators: what they set would
    be seen by whoever consumes them. The caller ends it."""
    if _recorder is None:
        return NO_SPAN
    parent = _current.get()
    if parent is not None and not parent.is_recorded:
        return parent
    return _recorder.begin(Beginning(name, kind, parent, attributes))


def add(name: str, began_ns: int) -> None:
    """Add a span that began at that time and ends now, for work whose parent was not known before."""
    if _recorder is not None and current().is_recorded:
        _recorder.begin(Beginning(name, parent=current(), at_ns=began_ns)).end()


class _SpanBlock:
    """Makes a span current for a block, and ends it."""

    __slots__ = ("_content_token", "_shows_content", "_span", "_token")

    def __init__(self, begun: TraceSpan, *, shows_content: bool | None = None) -> None:
        self._span = begun
        self._shows_content = _shows_content.get() if shows_content is None else shows_content

    def __enter__(self) -> TraceSpan:
        self._token: Token[TraceSpan | None] = _current.set(self._span)
        self._content_token: Token[bool] = _shows_content.set(self._shows_content)
        return self._span

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        _shows_content.reset(self._content_token)
        _current.reset(self._token)
        self._span.end(error_type(error) if error is not None else "")


def error_type(error: BaseException) -> str:
    """Return the kind of an error, without its words, which may hold people's."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    return str(getattr(error, "code", "")) or type(error).__name__


# -- The current span ------------------------------------------------------------------------------


def current() -> TraceSpan:
    return _current.get() or NO_SPAN


def trace_parent() -> str:
    """Return the current span as the parent of work that another process does; empty without one."""
    return current().trace_parent


def clock_ns() -> int:
    """Return the time for `add`; 0 while nobody records."""
    return time.time_ns() if _recorder is not None else 0


def headers_for(
    receiver: Literal["providers", "tools", "webhooks"], caller: TraceSpan | None = None
) -> dict[str, str]:
    """Return the header that lets a receiver go on with the trace, if operators want that. Without a
    `caller` below the current span."""
    if _recorder is None or receiver not in settings.AMBER_TRACE_PROPAGATE:
        return {}
    return {"traceparent": parent} if (parent := (caller or current()).trace_parent) else {}


def may_show_content() -> bool:
    return _shows_content.get() and current().is_recorded


def cut_text(text: str) -> str:
    """Return what a span shows of a text: it is no archive."""
    return shorten(text, MOST_CHARS)


def add_trace_id(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the trace's id to a line of the log: a processor of structlog."""
    if parent := trace_parent():
        event["trace_id"] = parent.split("-")[1]
    return event

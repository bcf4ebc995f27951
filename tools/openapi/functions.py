"""Turn a whole OpenAPI document into functions: choose operations, name them, cut their schemas.

    request = FunctionsRequest(document_url="https://…", operations=["listPets"])
    description = describe(content, request)

If `Description.problems` is not empty, the document cannot be used as asked; it says what is wrong,
by place. `warnings` say what was left out. Each function's schema is described as deep as fits into
MAX_SCHEMA_BYTES. Pure; a hostile document costs time and memory, so this runs in a process of its
own (`tools.openapi.reader`).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from tools.openapi.document import DocumentError, read_document, resolve_reference
from tools.openapi.operation import Arguments, OperationReader
from tools.openapi.plan import Plan
from tools.openapi.schema import SchemaReader, TooManyValuesError
from tools.openapi.security import auth_of_operation, find_auth
from tools.openapi.server import server_of

MAX_FUNCTIONS: Final = 128
"""As many as one request to a model may offer (`engine.tools.MAX_OFFERED_TOOLS`)."""

MAX_SCHEMA_BYTES: Final = 16_000
"""About 4,000 tokens for each function, which every request of every turn pays."""

MAX_OPERATIONS: Final = 1_000
MAX_SCHEMAS_BYTES: Final = 3_000_000
"""Of a document whose operations are searched: the tool's data is read with every turn."""

DEPTHS: Final = (10, 6, 4, 3, 2, 1, 0)
MAX_VALUES: Final = 10_000
MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1_000
"""OpenAI refuses more than 1,024 characters."""

MAX_WARNINGS: Final = 50
MAX_PROBLEMS: Final = 50
MAX_SHOWN_NAMES: Final = 100

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "query")
"""QUERY, of OpenAPI 3.2, is a GET with a body: https://spec.openapis.org/oas/v3.2.0#path-item-object"""
SAFE_METHODS: Final = frozenset({"get", "head", "query"})
_OTHER_METHOD = re.compile(r"(?!(?:TRACE|CONNECT)$)[A-Z][A-Z-]{0,19}")
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class FunctionsRequest:
    """What the tool's owner asks for.

    Empty `operations` means all; `auth` None means what the document says. With `is_searched` they
    are offered through a search (`tools.openapi.operation_search`), so there may be more.
    """

    document_url: str = ""
    server: str = ""
    operations: Sequence[str] = ()
    auth: Mapping[str, str] | None = None
    is_searched: bool = False

    @property
    def most(self) -> int:
        return MAX_OPERATIONS if self.is_searched else MAX_FUNCTIONS

    def schema_bytes(self, count: int) -> int:
        """Return how many bytes the schema of each of so many functions may have."""
        if not self.is_searched:
            return MAX_SCHEMA_BYTES
        return min(MAX_SCHEMA_BYTES, MAX_SCHEMAS_BYTES // max(count, 1))


@dataclass(slots=True)
class Description:
    """A document as functions, as `DiscoveryResult.data` wants them, each with its plan in "request".

    `auth` is how the key is to be sent, None if neither owner nor document says it.
    """

    title: str = ""
    about: str = ""
    auth: Mapping[str, str] | None = None
    functions: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Operation:
    name: str
    path: str
    method: str
    item: Mapping[str, Any]
    described: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"paths.{self.path}.{self.method}"

    @property
    def called(self) -> frozenset[str]:
        """Return all names by which the owner may pick the operation: its own ones, its path, and its
        tags."""
        own = self.described.get("operationId")
        tags = self.described.get("tags")
        tagged = [f"tag:{tag}" for tag in (tags if isinstance(tags, list) else ())]
        names = [self.name, f"{self.method.upper()} {self.path}", self.path, own, *tagged]
        return frozenset(name for name in names if isinstance(name, str))

    def is_called(self, wanted: Collection[str]) -> bool:
        """Return whether one of these names the operation; one that ends with `*` names all that
        begin so."""
        prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))
        return any(n in wanted or (prefixes and n.startswith(prefixes)) for n in self.called)


def describe(content: bytes, request: FunctionsRequest) -> Description:
    """Describe the document; what is wrong with it becomes a problem, never an exception."""
    description = Description()
    try:
        document = read_document(content)
    except DocumentError as error:
        description.problems[error.place or "document"] = str(error)
        return description
    _introduce(document, request, description)
    operations = _pick_operations(
        list(_operations(document, description.warnings)), request, description
    )
    if len(operations) > request.most:
        description.problems["options.operations"] = _write_too_many(operations, request)
    if not description.problems:
        _add_functions(document, operations, request, description)
    _cut_messages(description)
    return description


def _introduce(
    document: Mapping[str, Any], request: FunctionsRequest, description: Description
) -> None:
    info = document.get("info")
    info = info if isinstance(info, dict) else {}
    description.title = _text(info.get("title"))[:200]
    description.about = _text(info.get("description"))[:MAX_DESCRIPTION_CHARS]
    description.auth = request.auth
    if request.auth is None:
        description.auth, warning = find_auth(document)
        if warning:
            description.warnings.append(warning)


def _operations(document: Mapping[str, Any], warnings: list[str]) -> Iterator[_Operation]:
    """Yield the operations in the document's order, each with a name of its own."""
    taken: set[str] = set()
    for path, reference in document["paths"].items():
        item = resolve_reference(document, reference)
        if not path.startswith("/") or not isinstance(item, dict):
            if not path.startswith("x-"):
                warnings.append(f"{path[:200]} was left out: it is not a path.")
            continue
        if "trace" in item:
            warnings.append(f"TRACE {path[:200]} was left out: Amber does not send that method.")
        for method, reference in _methods(item, path, warnings):
            described = resolve_reference(document, reference)
            if isinstance(described, dict):
                name = _free_name(described, method, path, taken)
                taken.add(name)
                yield _Operation(name, path, method, item, described)


def _methods(item: Mapping[str, Any], path: str, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the operations of a path by their methods; those of other names came with OpenAPI 3.2."""
    yield from ((method, item.get(method)) for method in METHODS)
    others = item.get("additionalOperations")
    for name, operation in others.items() if isinstance(others, dict) else ():
        if _OTHER_METHOD.fullmatch(name) and name.lower() not in METHODS:
            yield name.lower(), operation
        else:
            warnings.append(
                f"{name[:20]} {path[:200]} was left out: Amber does not send that method."
            )


def _free_name(described: Mapping[str, Any], method: str, path: str, taken: set[str]) -> str:
    own = _NOT_ALLOWED.sub("_", _text(described.get("operationId"))).strip("_")
    name = (own or _NOT_ALLOWED.sub("_", f"{method}{path}").strip("_"))[:MAX_NAME_CHARS]
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name[: MAX_NAME_CHARS - 1 - len(str(number))]}_{number}"
    return free


def _pick_operations(
    operations: list[_Operation], request: FunctionsRequest, description: Description
) -> list[_Operation]:
    if not request.operations:
        return operations
    wanted = set(request.operations)
    plain = {name for name in wanted if not name.endswith("*")}
    unknown = plain - {name for operation in operations for name in operation.called}
    unknown |= {
        name for name in wanted - plain if not any(each.is_called({name}) for each in operations)
    }
    if unknown:
        description.problems["options.operations"] = (
            f"There is no operation {', '.join(sorted(unknown)[:10])}. {_names(operations)}"
        )
    return [operation for operation in operations if operation.is_called(wanted)]


def _write_too_many(operations: Sequence[_Operation], request: FunctionsRequest) -> str:
    search = "" if request.is_searched else ' Or set "search" to offer a search over all of them.'
    return (
        f"The document has {len(operations)} operations, but at most {request.most:,} can be "
        f"offered. Pick the ones you need, also by tag or path.{search} {_tags(operations)}"
        f"{_names(operations)}"
    )


def _tags(operations: Sequence[_Operation]) -> str:
    """Return the tags that there are, each with the number of its operations."""
    tagged = (name for each in operations for name in each.called if name.startswith("tag:"))
    counts = Counter(tagged).most_common(MAX_SHOWN_NAMES)
    shown = ", ".join(f"{name} ({count})" for name, count in counts)
    return f"By tag: {shown}. " if counts else ""


def _names(operations: Sequence[_Operation]) -> str:
    shown = ", ".join(operation.name for operation in operations[:MAX_SHOWN_NAMES])
    more = len(operations) - MAX_SHOWN_NAMES
    return f"There are: {shown}{f' and {more} more' if more > 0 else ''}."


def _add_functions(
    document: Mapping[str, Any],
    operations: Sequence[_Operation],
    request: FunctionsRequest,
    description: Description,
) -> None:
    problems: dict[str, str] = {}
    most_bytes = request.schema_bytes(len(operations))
    for operation in operations:
        try:
            function, notes = _function(document, operation, request, description.auth, most_bytes)
        except DocumentError as error:
            problems[error.place] = str(error)
            continue
        description.functions.append(function)
        description.warnings += [f"{operation.name}: {note}." for note in notes]
    if problems and (request.operations or not description.functions):
        description.problems |= problems
    description.warnings += [f"Left out: {place}: {text}" for place, text in problems.items()]
    if not operations:
        description.problems.setdefault("paths", "There are no operations to call.")


def _function(
    document: Mapping[str, Any],
    operation: _Operation,
    request: FunctionsRequest,
    auth: Mapping[str, str] | None,
    most_bytes: int,
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the function and what was cut. Raises DocumentError."""
    holders = {operation.place: operation.described, f"paths.{operation.path}": operation.item}
    server = server_of(
        holders | {"": document}, override=request.server, document_url=request.document_url
    )
    auths, lack = _auths(document, operation, request, auth)
    sent = auths if auths is not None else [auth] if auth else []
    arguments, notes = _fit_arguments(document, operation, _own_places(sent), most_bytes)
    plan = Plan(
        method=operation.method.upper(),
        server=server,
        path=operation.path,
        places=arguments.places,
        media_type=arguments.media_type,
        body_argument=arguments.body_argument,
        needs_body=arguments.needs_body,
    )
    function = {
        "name": operation.name,
        "description": _describe_operation(operation),
        "parameters": arguments.schema,
        "idempotent": operation.method in SAFE_METHODS,
        "read_only": operation.method in SAFE_METHODS,
        "request": plan.as_data(),
    }
    if auths is not None:
        function["auth"] = auths
    if operation.described.get("x-openai-isConsequential") is True:
        function["requires_approval"] = True
    return function, [*notes, *([lack] if lack else [])]


def _auths(
    document: Mapping[str, Any],
    operation: _Operation,
    request: FunctionsRequest,
    auth: Mapping[str, str] | None,
) -> tuple[Sequence[Mapping[str, str]] | None, str]:
    """Return how the key is sent with an operation, and what keeps it from being sent as wanted.

    None means as with the whole tool (`auth`). The owner's word counts, but where the operation
    itself wants no key.
    """
    own, lack = auth_of_operation(document, operation.described)
    # Of the operation itself: an empty `security` of the document gives way to the owner's word.
    if own == [] and "security" in operation.described:
        return [], ""
    if request.auth is not None or own is None:
        is_lost = lack and not auth
        return None, "it wants credentials that Amber cannot send" if is_lost else ""
    return own, ""


def _own_places(auths: Sequence[Mapping[str, str]]) -> frozenset[tuple[str, str]]:
    """Return where the key goes, which is never the model's: headers in lower case."""
    named = ((auth["type"], auth["name"]) for auth in auths if "name" in auth)
    return frozenset((where, n.lower() if where == "header" else n) for where, n in named)


def _fit_arguments(
    document: Mapping[str, Any],
    operation: _Operation,
    own_places: frozenset[tuple[str, str]],
    most_bytes: int,
) -> tuple[Arguments, Sequence[str]]:
    """Describe the arguments as deep as fits. Raises DocumentError."""
    for depth in DEPTHS:
        schemas = SchemaReader(document, max_depth=depth, max_values=MAX_VALUES)
        reader = OperationReader(document, schemas, own_places=own_places)
        try:
            arguments = reader.read(operation.path, operation.item, operation.described)
        except TooManyValuesError:
            continue
        except DocumentError as error:
            raise DocumentError(str(error), place=f"{operation.place}.{error.place}") from None
        if len(orjson.dumps(arguments.schema)) <= most_bytes:
            return arguments, list(schemas.notes)
    raise DocumentError(
        f"Its arguments take more than {most_bytes:,} bytes to describe, however much is left out.",
        place=operation.place,
    )


def _describe_operation(operation: _Operation) -> str:
    """Return what the model reads: summary and description, or at least method and path."""
    described = operation.described
    texts = [_text(described.get("summary")), _text(described.get("description"))]
    if texts[0] and texts[1].startswith(texts[0]):
        texts = texts[1:]
    said = "\n".join(filter(None, texts)) or f"{operation.method.upper()} {operation.path}"
    return said if len(said) <= MAX_DESCRIPTION_CHARS else f"{said[: MAX_DESCRIPTION_CHARS - 1]}…"


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _cut_messages(description: Description) -> None:
    """Cut warnings and problems: a stranger wrote them, and nobody reads a thousand."""
    more = len(description.warnings) - MAX_WARNINGS
    if more > 0:
        description.warnings[MAX_WARNINGS:] = [f"And {more} more of this kind."]
    if description.problems:
        description.functions.clear()
        first = list(description.problems.items())[:MAX_PROBLEMS]
        description.problems = {place[:300]: text[:10_000] for place, text in first}

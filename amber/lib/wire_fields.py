"""Declare the fields of wire forms, and write the values that JSON has no type for.

A wire form is a TypedDict: the only list of the fields that a row has outside. The function that
makes it returns it, so that mypy compares the two, and `amber.lib.rest.wire_serializers` describes
it in the OpenAPI document. What an annotation adds to a type is for that document alone:

    class FileWire(TypedDict):
        id: Id
        stage: Annotated[str, DocumentStage, "The last finished stage."]
        url: Annotated[str | None, "The URL it was fetched from."]

It must not load REST framework, which workers do without.
"""

from datetime import datetime
from typing import Annotated, overload
from uuid import UUID

Id = Annotated[str, UUID]
Time = Annotated[str, datetime]


@overload
def write_id(value: UUID) -> str: ...
@overload
def write_id(value: UUID | None) -> str | None: ...
def write_id(value: UUID | None) -> str | None:
    return None if value is None else str(value)


@overload
def write_time(value: datetime) -> str: ...
@overload
def write_time(value: datetime | None) -> str | None: ...
def write_time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")

"""Page through a list, newest first, by cursor: `{"next", "previous", "results"}`, `?limit=`.

A cursor is a position, not a row number: `older` or `newer` than (created_at, id). Rows that come
or go meanwhile are neither repeated nor skipped, and the last page costs what the first costs,
given an index on (…, created_at, id). (REST framework's own cursor pages compare one column and
count rows after it, which breaks down when more than 1,000 rows share a date.)

The cursor is no secret and grants nothing: the query set is already limited to what is visible.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, Q
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from amber.lib.errors import Invalid

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200


@dataclass(frozen=True)
class Cursor:
    """The place where a page begins: after this row, towards older or newer ones."""

    older: bool
    at: datetime
    id: UUID

    def encode(self) -> str:
        text = f"{'o' if self.older else 'n'} {self.at.isoformat()} {self.id}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Read a cursor. Raises Invalid."""
        try:
            plain = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            way, at, row_id = plain.decode("ascii").split(" ")
            cursor = cls(way == "o", datetime.fromisoformat(at), UUID(row_id))
        except (ValueError, binascii.Error):
            raise Invalid(fields={"cursor": ["This is not a cursor of this list."]})
        if way not in ("o", "n") or cursor.at.tzinfo is None:
            raise Invalid(fields={"cursor": ["This is not a cursor of this list."]})
        return cursor

    def condition(self, column: str) -> Q:
        """Return the condition of rows behind it. The plain date comes first: an index serves
        it."""
        after = "lt" if self.older else "gt"
        return Q(**{f"{column}__{after}e": self.at}) & (
            Q(**{f"{column}__{after}": self.at}) | Q(**{f"id__{after}": self.id})
        )


class NewestFirst(BasePagination):
    """REST framework's DEFAULT_PAGINATION_CLASS, for models with `created_at` and `id`.

    A view may set another `column`. Rows whose date changes meanwhile may be repeated or skipped.
    """

    default_limit = DEFAULT_LIMIT
    max_limit = MAX_LIMIT
    column = "created_at"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the page's rows. One query, of one row more than the page. Raises Invalid."""
        self._address = request.build_absolute_uri()
        self.limit = limit_of(request, default=self.default_limit, at_most=self.max_limit)
        given = request.query_params.get("cursor")
        self.cursor = Cursor.decode(given) if given else None
        older = self.cursor is None or self.cursor.older
        order = (f"-{self.column}", "-id") if older else (self.column, "id")
        asked = queryset
        if self.cursor is not None:
            asked = queryset.filter(self.cursor.condition(self.column))
        rows = list(asked.order_by(*order)[: self.limit + 1])
        self._has_more = len(rows) > self.limit
        page = rows[: self.limit]
        self.page: list[Any] = page if older else page[::-1]
        return self.page

    def get_next_link(self) -> str | None:
        """Return the address of older rows; None on the last page."""
        if self.cursor is not None and not self.cursor.older:
            return self._link(older=True, row=self.page[-1] if self.page else self.cursor)
        return self._link(older=True, row=self.page[-1]) if self._has_more else None

    def get_previous_link(self) -> str | None:
        """Return the address of newer rows; None on the first page."""
        if self.cursor is None:
            return None
        if self.cursor.older:
            return self._link(older=False, row=self.page[0] if self.page else self.cursor)
        return self._link(older=False, row=self.page[0]) if self._has_more else None

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {"next": self.get_next_link(), "previous": self.get_previous_link(), "results": data}
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        about_limit = f"Rows per page: {self.default_limit}, at most {self.max_limit}."
        about_cursor = "The cursor in `next` or `previous`."
        return [
            _parameter("limit", about_limit, {"type": "integer", "minimum": 1}),
            _parameter("cursor", about_cursor, {"type": "string"}),
        ]

    def _link(self, *, older: bool, row: "Model | Cursor") -> str:
        at = row.at if isinstance(row, Cursor) else getattr(row, self.column)
        cursor = Cursor(older, at, row.id)  # type: ignore[union-attr]
        address = remove_query_param(self._address, "cursor")
        return replace_query_param(address, "cursor", cursor.encode())


def limit_of(request: Request, *, default: int = DEFAULT_LIMIT, at_most: int = MAX_LIMIT) -> int:
    """Return `?limit=`, cut to `at_most`. Raises Invalid unless it is a positive number."""
    given = request.query_params.get("limit")
    if given is None:
        return default
    try:
        limit = int(given)
    except ValueError:
        limit = 0
    if limit < 1:
        raise Invalid(fields={"limit": ["This must be a positive whole number."]})
    return min(limit, at_most)


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": schema,
    }

"""Page through a document's chunks by their order."""

import re
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.utils.urls import remove_query_param, replace_query_param

from amber.lib.errors import Invalid
from amber.lib.rest.pages import NewestFirst, limit_of

_CURSOR: Final = re.compile(r"([ab])(\d{1,9})")


class ByOrder(NewestFirst):
    """Pages of a document's chunks, from its beginning.

    A cursor is the order of a chunk, after which (`a`) or before which (`b`) the page lies.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return one page, in the order of the document.

        One query, of one row more than the page. Raises Invalid for a cursor of another list.
        """
        self._address = request.build_absolute_uri()
        self.limit = limit_of(request, default=self.default_limit, at_most=self.max_limit)
        way, place = _decode_cursor(request.query_params.get("cursor"))
        after = way == "a"
        asked = queryset.filter(order__gt=place) if after else queryset.filter(order__lt=place)
        rows = list(asked.order_by("order" if after else "-order")[: self.limit + 1])
        self._has_more = len(rows) > self.limit
        self._is_first = after and place < 0
        page = rows[: self.limit]
        self.page = page if after else page[::-1]
        self._after = after
        return self.page

    def get_next_link(self) -> str | None:
        """Return the address of the next page, towards the document's end; None on the last."""
        if not self.page or (self._after and not self._has_more):
            return None
        return self._to(f"a{self.page[-1].order}")

    def get_previous_link(self) -> str | None:
        """Return the address of the page before, towards the beginning; None on the first."""
        if not self.page or self._is_first or not (self._after or self._has_more):
            return None
        return self._to(f"b{self.page[0].order}")

    def _to(self, cursor: str) -> str:
        address = remove_query_param(self._address, "cursor")
        return replace_query_param(address, "cursor", cursor)


def _decode_cursor(cursor: str | None) -> tuple[str, int]:
    """Return the direction and the order to go on from. Raises Invalid."""
    if cursor is None:
        return "a", -1
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise Invalid(fields={"cursor": ["This cursor does not belong to this list."]})
    return found[1], int(found[2])

"""Show operators how many memories there are, of whom, and when the last changed; never a text."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from amber.lib.operator_pages import ReadOnlyAdmin
from memory.models import Memory, OrganizationMemories, PersonMemories


class _CountsAdmin(ReadOnlyAdmin):
    """Counts memories for the rows of one page, by an index; nothing can be opened or changed."""

    list_display_links = None
    whose: Q

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        mine = Memory.objects.filter(self.whose).order_by()
        valid = mine.filter(valid_until__isnull=True)
        newest = mine.order_by("-updated_at").values("updated_at")[:1]
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(  # type: ignore[no-any-return]
            valid_count=_count(valid),
            superseded_count=_count(mine.filter(valid_until__isnull=False)),
            guest_count=_count(valid.filter(guest_id__isnull=False)),
            last_change_at=Subquery(newest),
        )

    @admin.display(description=_("memories"))
    def memories(self, row: Any) -> int:
        return int(row.valid_count)

    @admin.display(description=_("superseded"))
    def superseded_rows(self, row: Any) -> int:
        return int(row.superseded_count)

    @admin.display(description=_("of guests"))
    def of_guests(self, row: Any) -> int:
        return int(row.guest_count)

    @admin.display(description=_("last change"))
    def last_change(self, row: Any) -> Any:
        return row.last_change_at


def _count(rows: QuerySet[Memory]) -> Coalesce:
    counted = rows.values("organization").annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted), 0)


@admin.register(PersonMemories)
class PersonMemoriesAdmin(_CountsAdmin):
    list_display = ("user", "organization", "memories", "superseded_rows", "last_change")
    list_select_related = ("user", "organization")
    search_fields = ("=user__email", "organization__name")
    whose = Q(organization=OuterRef("organization"), user=OuterRef("user"), guest_id__isnull=True)


@admin.register(OrganizationMemories)
class OrganizationMemoriesAdmin(_CountsAdmin):
    list_display = ("name", "memories", "superseded_rows", "of_guests", "last_change")
    search_fields = ("name", "slug")
    whose = Q(organization=OuterRef("pk"))

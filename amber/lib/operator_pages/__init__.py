"""Pages of operators: what the admin of every app is made of."""

from amber.lib.operator_pages.cells import readable_json
from amber.lib.operator_pages.pages import (
    CappedPaginator,
    OperatorAct,
    OperatorAdmin,
    OperatorStackedInline,
    OperatorTabularInline,
    PagedAdmin,
    ReadOnlyAdmin,
    watch_operators,
)

__all__ = [
    "CappedPaginator",
    "OperatorAct",
    "OperatorAdmin",
    "OperatorStackedInline",
    "OperatorTabularInline",
    "PagedAdmin",
    "ReadOnlyAdmin",
    "readable_json",
    "watch_operators",
]

"""Let a test's call act for the tenant of its rows, as requests and workers do."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from amber.lib.database.tenant import Tenant, as_tenant

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def for_organization(organization_id: UUID) -> Any:
    """A block that acts for everybody in this organization."""
    return as_tenant(Tenant(organization_id, is_whole=True))


def for_first_library(searched: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, called for the organization of the first of its libraries (or scopes)."""

    @wraps(searched)
    def search(*given: Arguments.args, **options: Arguments.kwargs) -> Result:
        libraries: Any = given[0]
        if not libraries:
            return searched(*given, **options)
        with for_organization(libraries[0].organization_id):
            return searched(*given, **options)

    return search

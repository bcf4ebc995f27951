"""Say for each scope whose budget it is: one table, which everything about scopes reads.

What a call of a provider counts against is a `BudgetSubject`, whose fields are columns of the
ledger.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiKey, Membership
from accounts.principal import Principal
from accounts.registry import sees_assistant
from providers.models import BudgetScope


@dataclass(frozen=True, slots=True)
class BudgetSubject:
    """Names those whose budgets a call counts against; None where there is nobody."""

    organization_id: UUID
    user_id: UUID | None = None
    api_key_id: UUID | None = None
    guest_id: str | None = None
    assistant_id: UUID | None = None

    @classmethod
    def of(cls, row: Any) -> "BudgetSubject":
        """Read the subject from a row that has columns of these names: a turn, or the ledger's."""
        return cls(**{each.name: getattr(row, each.name) for each in fields(cls)})

    @classmethod
    def of_caller(cls, caller: Principal) -> "BudgetSubject":
        """Return the subject of a call that no turn makes."""
        return cls(
            organization_id=caller.organization_id,
            user_id=caller.user_id,
            api_key_id=caller.key.pk if caller.key else None,
            guest_id=caller.guest_id,
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns of the ledger. `dataclasses.asdict` would copy each id, deeply."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """`column` is the subject's id, in a `BudgetSubject` and in the ledger; None if there is one
    subject alone.

    `shown` is how a refusal names it. Operators read `label` over one subject's name, and `each` where no subject
    is named; `model` is what the id is of, if that has a page. `is_visible` tells whether an admin may name this id;
    None if no id is looked up. `first_ids` maps ids to those that they replaced, which are counted instead.
    """

    column: str | None
    shown: str
    label: str | Promise
    each: str | Promise
    model: str = ""
    is_visible: Callable[[Principal, UUID], bool] | None = None
    first_ids: Callable[[Collection[UUID]], Mapping[UUID, UUID]] | None = None


def _sees_user(principal: Principal, user_id: UUID) -> bool:
    return Membership.objects.visible_to(principal).filter(user_id=user_id).exists()


def _sees_key(principal: Principal, key_id: UUID) -> bool:
    return ApiKey.objects.visible_to(principal).filter(pk=key_id).exists()


SCOPES: Final[Mapping[str, ScopeFacts]] = {
    BudgetScope.ORGANIZATION: ScopeFacts(
        None, "the organization", _("Organization"), _("The whole organization")
    ),
    BudgetScope.USER: ScopeFacts(
        "user_id", "this user", _("User"), _("Each user"), "accounts.User", _sees_user
    ),
    BudgetScope.KEY: ScopeFacts(
        "api_key_id",
        "this API key",
        _("API key"),
        _("Each API key"),
        "accounts.ApiKey",
        _sees_key,
        first_ids=ApiKey.objects.first_ids,
    ),
    BudgetScope.ASSISTANT: ScopeFacts(
        "assistant_id",
        "this assistant",
        _("Assistant"),
        _("Each assistant"),
        "assistants.Assistant",
        sees_assistant,
    ),
    BudgetScope.GUEST: ScopeFacts("guest_id", "this guest", _("Guest"), _("Each guest")),
}
NAMED_SCOPES: Final = tuple(scope for scope, facts in SCOPES.items() if facts.column)
"""Those whose budgets may name a subject."""
ID_SCOPES: Final = tuple(scope for scope, facts in SCOPES.items() if facts.is_visible)


def ids_of(budget_subject: BudgetSubject) -> dict[str, str]:
    """Return the subject's id in each scope. A key costs one query: which it was rotated from."""
    ids: dict[str, str] = {}
    for scope, facts in SCOPES.items():
        pk = getattr(budget_subject, facts.column) if facts.column else None
        if pk is not None:
            ids[scope] = str(facts.first_ids([pk])[pk] if facts.first_ids else pk)
    return ids

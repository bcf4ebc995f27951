"""Lay out the admin's side bar in the order of work: people first, what hardly changes last.

Unfold calls `side_bar` for each page. Nobody is shown a page that they may not open.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A list of the admin, or with `name` another page about its rows. `icon`: a Material symbol."""

    model: str
    title: Promise
    icon: str
    name: str = "changelist"

    @property
    def address(self) -> str:
        return reverse(f"admin:{self.model.replace('.', '_')}_{self.name}")


GROUPS: Final[tuple[tuple[Promise, tuple[MenuEntry, ...]], ...]] = (
    (
        gettext_lazy("People"),
        (
            MenuEntry("accounts.organization", gettext_lazy("Organizations"), "domain"),
            MenuEntry("accounts.user", gettext_lazy("Users"), "person"),
            MenuEntry("accounts.group", gettext_lazy("Groups"), "group"),
            MenuEntry("accounts.invitation", gettext_lazy("Invitations"), "mail"),
            MenuEntry("accounts.outgoingmail", gettext_lazy("Mails"), "outgoing_mail"),
        ),
    ),
    (
        gettext_lazy("Providers and models"),
        (
            MenuEntry("providers.provider", gettext_lazy("Providers"), "hub"),
            MenuEntry("providers.languagemodel", gettext_lazy("Language models"), "neurology"),
            MenuEntry("providers.embeddingmodel", gettext_lazy("Embedding models"), "scatter_plot"),
        ),
    ),
    (
        gettext_lazy("Assistants"),
        (MenuEntry("assistants.assistant", gettext_lazy("Assistants"), "support_agent"),),
    ),
    (
        gettext_lazy("Libraries"),
        (
            MenuEntry("libraries.library", gettext_lazy("Libraries"), "library_books"),
            MenuEntry(
                "libraries.document", gettext_lazy("Ingestion"), "conveyor_belt", "ingestion"
            ),
            MenuEntry("libraries.document", gettext_lazy("Documents"), "description"),
            MenuEntry("libraries.repository", gettext_lazy("Git imports"), "commit"),
            MenuEntry("libraries.file", gettext_lazy("Files"), "attach_file"),
        ),
    ),
    (
        gettext_lazy("Tools"),
        (
            MenuEntry("tools.tool", gettext_lazy("Tools"), "build"),
            MenuEntry("tools.toolcallrecord", gettext_lazy("Calls of tools"), "data_object"),
        ),
    ),
    (
        gettext_lazy("Chats"),
        (
            MenuEntry("chats.chat", gettext_lazy("Chats"), "chat"),
            MenuEntry("chats.turn", gettext_lazy("Turns"), "swap_vert"),
            MenuEntry("chats.feedback", gettext_lazy("Feedback"), "thumbs_up_down"),
        ),
    ),
    (
        gettext_lazy("Memory"),
        (
            MenuEntry("memory.personmemories", gettext_lazy("Memories of people"), "psychology"),
            MenuEntry(
                "memory.organizationmemories",
                gettext_lazy("Memories of organizations"),
                "lightbulb",
            ),
        ),
    ),
    (
        gettext_lazy("Usage and budgets"),
        (
            MenuEntry("providers.usagerecord", gettext_lazy("Usage"), "bar_chart", "report"),
            MenuEntry("providers.usagerecord", gettext_lazy("Single calls"), "receipt_long"),
            MenuEntry("providers.budget", gettext_lazy("Budgets"), "savings"),
        ),
    ),
    (
        gettext_lazy("Public API"),
        (
            MenuEntry("accounts.apikey", gettext_lazy("API keys"), "key"),
            MenuEntry("public_api.webhook", gettext_lazy("Webhooks"), "webhook"),
            MenuEntry("public_api.webhookdelivery", gettext_lazy("Webhook deliveries"), "outbox"),
        ),
    ),
    (
        gettext_lazy("Audit"),
        (MenuEntry("accounts.auditevent", gettext_lazy("Audit log"), "history"),),
    ),
    (
        gettext_lazy("Signing in"),
        (
            MenuEntry("account.emailaddress", gettext_lazy("Email addresses"), "alternate_email"),
            MenuEntry("socialaccount.socialapp", gettext_lazy("Identity providers"), "login"),
            MenuEntry("socialaccount.socialaccount", gettext_lazy("Linked accounts"), "link"),
            MenuEntry("socialaccount.socialtoken", gettext_lazy("Their tokens"), "token"),
            MenuEntry("allauth_idp_oidc.client", gettext_lazy("Applications"), "apps"),
            MenuEntry(
                "allauth_idp_oidc.token",
                gettext_lazy("Tokens of applications"),
                "generating_tokens",
            ),
            MenuEntry("auth.group", gettext_lazy("Rights of operators"), "admin_panel_settings"),
        ),
    ),
)


def side_bar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups with the pages that the operator may open, the page shown marked as such."""
    about = {model._meta.label_lower: page for model, page in admin.site._registry.items()}
    open_to = {label for label, page in about.items() if _may_open(page, request)}
    groups = [
        {"title": str(title), "items": [_item(page) for page in pages if page.model in open_to]}
        for title, pages in GROUPS
    ]
    groups.append({"title": _("More"), "items": list(_list_others(about, open_to))})
    first = {
        "title": "",
        "items": [_link(_("System health"), "monitor_heart", reverse("admin:index"))],
    }
    shown = [first, *(group for group in groups if group["items"])]
    _mark_active(shown, request.path)
    return shown


def _may_open(page: Any, request: HttpRequest) -> bool:
    return bool(page.has_module_permission(request) and page.has_view_or_change_permission(request))


def _item(page: MenuEntry) -> dict[str, Any]:
    return _link(str(page.title), page.icon, page.address)


def _link(title: str, icon: str, address: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": address, "active": False}


def _list_others(about: dict[str, Any], open_to: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the lists that no group has: an app that was added keeps its place at the end."""
    for label in sorted(open_to - {page.model for _title, pages in GROUPS for page in pages}):
        title = capfirst(about[label].model._meta.verbose_name_plural)
        yield _link(title, "list", reverse(f"admin:{label.replace('.', '_')}_changelist"))


def _mark_active(groups: list[dict[str, Any]], path: str) -> None:
    """Mark the page with the longest address that `path` begins with; the front page by itself."""
    index = reverse("admin:index")
    items = [item for group in groups for item in group["items"]]
    within = [
        item
        for item in items
        if path == item["link"] or (item["link"] != index and path.startswith(item["link"]))
    ]
    if within:
        max(within, key=lambda item: len(item["link"]))["active"] = True

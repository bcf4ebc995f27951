"""Show operators files, libraries with the state of their ingestion, documents and Git imports.

The pages show names, as people gave them, and never what files and documents say, nor the addresses
they came from and the paths that lead to their bytes. They are read-only; operators can cancel work
or retry it.
"""

from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils.html import format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from accounts.admin.groups import GrantInline
from amber.lib.operator_pages import ReadOnlyAdmin
from amber.lib.operator_pages.autocompletes import BY_ORGANIZATION
from amber.lib.operator_pages.cells import (
    NOTHING,
    write_name,
    write_names,
    write_number,
    write_seconds,
    write_state,
    write_text,
)
from amber.lib.operator_pages.states import state_of
from libraries.git import services
from libraries.ingestion import document_services
from libraries.ingestion.operator_page import ingestion_page
from libraries.models import Document, DocumentStatus, File, Library, LibraryGrant, Repository


@admin.register(File)
class FileAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "mime_type",
        "bytes",
        "belongs_to",
        "created_at",
        "expired_at",
    )
    list_filter = (BY_ORGANIZATION,)
    list_select_related = ("organization", "user")
    search_fields = ("name", "=id", "user__email")
    unread = ("url", "path", "text")
    fields = (
        "name",
        "mime_type",
        "bytes",
        "organization",
        "user",
        "guest_id",
        "created_at",
        "read_at",
        "unreadable",
        "expired_at",
    )

    @admin.display(description=_("size"), ordering="size")
    def bytes(self, file: File) -> str:
        return filesizeformat(file.size)


def _documents(**of: Any) -> Coalesce:
    """Count the documents of each library that match; one index scan for each row of a page."""
    rows = Document.objects.filter(library=OuterRef("pk"), **of).order_by()
    return Coalesce(Subquery(rows.values("library").annotate(n=Count("pk")).values("n")), 0)


class LibraryGrantInline(GrantInline):
    model = LibraryGrant


@admin.register(Library)
class LibraryAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "documents",
        "chunk_count",
        "shared",
        "models_in_use",
        "belongs_to",
    )
    list_filter = (BY_ORGANIZATION, "shared")
    list_select_related = ("organization", "user", "embedding_model", "next_embedding_model")
    search_fields = ("name", "=id", "=user__email", "=organization__slug")
    unread = ("description",)
    inlines = (LibraryGrantInline,)
    fields = (
        "name",
        "organization",
        "user",
        "shared",
        "default",
        "embedding_model",
        "next_embedding_model",
        "chunk_tokens",
        "overlap_tokens",
        "chunk_count",
        "languages",
        "created_at",
        "updated_at",
        "deleted_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Library]:
        rows: QuerySet[Library] = super().get_queryset(request)
        counts = {f"n_{status}": _documents(status=status) for status in DocumentStatus.values}
        return rows.annotate(**counts)

    @admin.display(description=_("documents"))
    def documents(self, library: Any) -> Any:
        """Say how many documents are in which state, those that are ready first."""
        counts = [(getattr(library, f"n_{status}"), status) for status in _STATUSES]
        said = [(write_number(n), str(state_of(status).label).lower()) for n, status in counts if n]
        return format_html_join(", ", "{} {}", said) or NOTHING

    @admin.display(description=_("embedded with"))
    def models_in_use(self, library: Library) -> Any:
        new = library.next_embedding_model
        now = write_name(library.embedding_model)
        return write_names(now, gettext("changing to %(model)s") % {"model": new}) if new else now


_STATUSES: Final = sorted(DocumentStatus.values, key=lambda status: status != DocumentStatus.READY)


class _OfLibraryAdmin(ReadOnlyAdmin):
    """Work of the ingest workers on behalf of a library."""

    @admin.display(description=_("state"), ordering="status")
    def state(self, row: Document | Repository) -> Any:
        return write_names(write_state(row.status), row.error)

    @admin.display(description=_("library"))
    def library_and_organization(self, row: Document | Repository) -> Any:
        return write_names(write_name(row.library), row.organization)


@admin.register(Document)
class DocumentAdmin(_OfLibraryAdmin):
    list_display = (
        "title",
        "state",
        "stage",
        "chunks",
        "library_and_organization",
        "duration",
        "created_at",
    )
    list_filter = (BY_ORGANIZATION, "status", "stage")
    list_select_related = ("organization", "library")
    search_fields = ("name", "=id", "=library__id", "=organization__slug")
    unread = ("path", "source", "text", "pages", "metadata")
    shows_seconds = True
    actions = ("retry_documents", "cancel_documents")
    actions_list: ClassVar[list[str]] = ["ingestion"]
    fields = (
        "name",
        "organization",
        "library",
        "user",
        "mime_type",
        "stage",
        "status",
        "attempt",
        "error",
        "progress",
        "timings",
        "worker",
        "lease_until",
        "fence",
        "not_before",
        "created_at",
        "started_at",
        "ended_at",
        "cancel_requested_at",
    )

    @action(description=_("Ingestion"), url_path="ingestion", permissions=["view"])
    def ingestion(self, request: HttpRequest) -> HttpResponse:
        """Show where documents are in ingestion, how fast it goes, and who waits."""
        page = {**self.admin_site.each_context(request), **ingestion_page()}
        return TemplateResponse(request, "admin/libraries/ingestion.html", page)

    @admin.display(description=_("document"), ordering="name")
    def title(self, document: Document) -> Any:
        return write_text(document.name)

    @admin.display(description=_("embedded chunks"))
    def chunks(self, document: Document) -> str:
        """Say how many chunks there are, and how many are embedded if that is not all."""
        total = int(document.progress.get("chunks", 0))
        embedded = int(document.progress.get("embedded", 0))
        whole = write_number(total)
        if document.status == DocumentStatus.READY or embedded >= total:
            return whole
        return gettext("%(embedded)s of %(total)s") % {
            "embedded": write_number(embedded),
            "total": whole,
        }

    @admin.display(description=_("work"))
    def duration(self, document: Document) -> str:
        return write_seconds(sum(document.timings.values()) / 1_000)

    @admin.action(description=_("Retry selected documents"))
    def retry_documents(self, request: HttpRequest, documents: QuerySet[Document]) -> None:
        for document in documents:
            document_services.retry_document(document)
        messages.success(
            request,
            gettext("Documents that failed, were cancelled or were waiting are queued again."),
        )

    @admin.action(description=_("Cancel selected documents"))
    def cancel_documents(self, request: HttpRequest, documents: QuerySet[Document]) -> None:
        for document in documents:
            document_services.cancel_document(document)
        messages.success(
            request, gettext("Cancellation requested. What was searchable before stays searchable.")
        )


@admin.register(Repository)
class RepositoryAdmin(_OfLibraryAdmin):
    """Git imports, by the name of the repository at its host; without the files' paths."""

    actions = ("cancel_imports",)

    list_display = (
        "name",
        "state",
        "files",
        "library_and_organization",
        "started_at",
        "ended_at",
    )
    list_filter = (BY_ORGANIZATION, "status")
    list_select_related = ("organization", "library")
    search_fields = ("=id", "git_url", "=library__id", "=organization__slug")
    unread = ("token_sealed", "include", "exclude")
    shows_seconds = True
    fields = (
        "name",
        "organization",
        "library",
        "user",
        "commit",
        "status",
        "attempt",
        "files",
        "error",
        "worker",
        "lease_until",
        "fence",
        "created_at",
        "started_at",
        "ended_at",
        "deleted_at",
    )
    readonly_fields = ("files",)

    @admin.display(description=_("repository"), ordering="git_url")
    def name(self, repository: Repository) -> str:
        return str(repository)

    @admin.action(description=_("Cancel selected imports"))
    def cancel_imports(self, request: HttpRequest, repositories: QuerySet[Repository]) -> None:
        for repository in repositories:
            services.cancel_import(repository)
        messages.success(request, gettext("Imports cancelled. What was imported so far stays."))

    @admin.display(description=_("files"))
    def files(self, repository: Repository) -> str:
        """Say how many files were new, changed, unchanged and removed."""
        names = {
            "new": _("new"),
            "changed": _("changed"),
            "unchanged": _("unchanged"),
            "removed": _("removed"),
        }
        counts = {name: repository.progress.get(key, 0) for key, name in names.items()}
        return ", ".join(f"{write_number(count)} {name}" for name, count in counts.items() if count)

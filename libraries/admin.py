"""Show operators files, libraries with the state of their ingestion, documents and Git imports.

The pages never show what files and documents say: names and addresses are people's own words, as
texts are, and paths lead to the bytes. They are read-only; operators can cancel work or retry it.
"""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from accounts.admin import GrantInline
from amber.lib.operator_pages import ReadOnlyAdmin
from libraries.git import services
from libraries.ingestion import document_services
from libraries.ingestion.operator_page import ingestion_page
from libraries.models import Document, DocumentStatus, File, Library, LibraryGrant, Repository


@admin.register(File)
class FileAdmin(ReadOnlyAdmin):
    list_display = ("id", "mime_type", "size", "organization", "user", "created_at", "expired_at")
    list_select_related = ("organization", "user")
    search_fields = ("user__email",)
    fields = (
        "id",
        "mime_type",
        "size",
        "organization",
        "user",
        "guest_id",
        "created_at",
        "read_at",
        "unreadable",
        "expired_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[File]:
        rows: QuerySet[File] = super().get_queryset(request)
        return rows.defer("name", "url", "path", "text")


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
        "organization",
        "user",
        "shared",
        "chunk_count",
        *(f"{status}_documents" for status in DocumentStatus.values),
        "embedding_model",
        "next_embedding_model",
        "deleted_at",
    )
    list_select_related = ("organization", "user", "embedding_model", "next_embedding_model")
    search_fields = ("=id", "=user__email", "=organization__slug")
    inlines = (LibraryGrantInline,)
    fields = (
        "id",
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
        return rows.defer("description").annotate(**counts)

    @admin.display(description="queued")
    def queued_documents(self, library: Any) -> int:
        return int(library.n_queued)

    @admin.display(description="running")
    def running_documents(self, library: Any) -> int:
        return int(library.n_running)

    @admin.display(description="ready")
    def ready_documents(self, library: Any) -> int:
        return int(library.n_ready)

    @admin.display(description="failed")
    def failed_documents(self, library: Any) -> int:
        return int(library.n_failed)

    @admin.display(description="cancelled")
    def cancelled_documents(self, library: Any) -> int:
        return int(library.n_cancelled)


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "organization",
        "library_id",
        "stage",
        "status",
        "attempt",
        "chunks",
        "embedded_count",
        "error",
        "seconds",
        "created_at",
    )
    list_filter = ("status", "stage")
    list_select_related = ("organization",)
    search_fields = ("=id", "=library__id", "=organization__slug")
    actions = ("retry_documents", "cancel_documents")
    actions_list: ClassVar[list[str]] = ["ingestion"]
    fields = (
        "id",
        "organization",
        "library_id",
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        rows: QuerySet[Document] = super().get_queryset(request)
        return rows.defer("name", "path", "source", "text", "pages", "metadata")

    @action(description=_("Ingestion"), url_path="ingestion", permissions=["view"])
    def ingestion(self, request: HttpRequest) -> HttpResponse:
        """Show where documents are in ingestion, how fast it goes, and who waits."""
        page = {**self.admin_site.each_context(request), **ingestion_page()}
        return TemplateResponse(request, "admin/libraries/ingestion.html", page)

    @admin.display
    def chunks(self, document: Document) -> int:
        return int(document.progress.get("chunks", 0))

    @admin.display(description="embedded")
    def embedded_count(self, document: Document) -> int:
        return int(document.progress.get("embedded", 0))

    @admin.display
    def seconds(self, document: Document) -> float:
        return float(round(sum(document.timings.values()) / 1_000, 1))

    @admin.action(description="Try the chosen documents again")
    def retry_documents(self, request: HttpRequest, documents: QuerySet[Document]) -> None:
        for document in documents:
            document_services.retry_document(document)
        messages.success(
            request, "Documents that failed, were cancelled or were waiting are queued again."
        )

    @admin.action(description="Cancel the chosen documents")
    def cancel_documents(self, request: HttpRequest, documents: QuerySet[Document]) -> None:
        for document in documents:
            document_services.cancel_document(document)
        messages.success(
            request, "Cancellation requested. What was searchable before stays searchable."
        )


@admin.register(Repository)
class RepositoryAdmin(ReadOnlyAdmin):
    """Git imports, without addresses and paths in `progress`: those are people's own words."""

    actions = ("cancel_imports",)

    list_display = (
        "id",
        "organization",
        "library_id",
        "status",
        "attempt",
        "files",
        "error",
        "started_at",
        "ended_at",
    )
    list_filter = ("status",)
    list_select_related = ("organization",)
    search_fields = ("=id", "=library__id", "=organization__slug")
    fields = (
        "id",
        "organization",
        "library_id",
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Repository]:
        rows: QuerySet[Repository] = super().get_queryset(request)
        return rows.defer("git_url", "ref", "token_sealed", "include", "exclude")

    @admin.action(description="Cancel the chosen imports")
    def cancel_imports(self, request: HttpRequest, repositories: QuerySet[Repository]) -> None:
        for repository in repositories:
            services.cancel_import(repository)
        messages.success(request, "Imports cancelled. What was imported so far stays.")

    @admin.display
    def files(self, repository: Repository) -> str:
        """Say how many files were new, changed, unchanged and removed."""
        names = ("new", "changed", "unchanged", "removed")
        counts = {name: repository.progress.get(name, 0) for name in names}
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)

"""Define files, libraries, documents and their chunks.

Vectors are untyped halfvec columns, with one index for each embedding model.
"""

from collections.abc import Sequence
from typing import Self
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, JSONField, Q, Value
from django.utils import timezone
from pgvector.django import HalfVectorField

from accounts.models import ApiKey, Grant, User, made_with
from accounts.principal import Principal
from accounts.registry import assistant_libraries
from accounts.tenant_rows import OwnedQuerySet, SharedQuerySet, TenantQuerySet, TenantRow
from amber.lib.database.lease import Leased, LeasedQuerySet
from amber.lib.database.rows import ExpiringQuerySet, is_before_expiry
from amber.lib.search.stems import WORDS_FORM
from amber.lib.search.tsvector import TokenVectorField
from providers.models import EmbeddingModel


class FileQuerySet(OwnedQuerySet, ExpiringQuerySet):  # type: ignore[override]  # as_manager
    """Files, seen by their owners. One whose time is up is absent even while its row is there.

    A key that is limited to an assistant sees the files it uploaded and those of its turns.
    """

    def _seen_by(self, principal: Principal) -> Q:
        return super()._seen_by(principal) & made_with(principal) & is_before_expiry()


IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The types that uploaded images are re-encoded to; nothing else has an image's type."""


class File(TenantRow):
    """Bytes that somebody gave Amber. `path` is a random name in the storage and is never shown.

    `api_key` is the key it was uploaded with, or which asked the turn that brought it. `text` is what
    models read of it, since `read_at`; `unreadable` says why there is none. With `unreadable` and
    without `read_at` it is tried again (`libraries.files.reading`).
    """

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    guest_id = models.CharField(max_length=200, null=True, blank=True)
    api_key = models.ForeignKey(
        ApiKey, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(max_length=255)
    url = models.TextField(null=True, blank=True)
    url_hash = models.CharField(max_length=64, null=True, blank=True)
    file_hash = models.CharField(max_length=64)
    mime_type = models.CharField(max_length=120)
    path = models.CharField(max_length=200, unique=True)
    size = models.PositiveBigIntegerField()
    text = models.TextField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True, editable=False)
    unreadable = models.TextField(blank=True, default="", db_default="", editable=False)
    expired_at = models.DateTimeField(null=True, blank=True)

    objects = FileQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["organization", "user", "-created_at"], name="file_user_time"),
            models.Index(
                fields=["organization", "guest_id"],
                condition=Q(guest_id__isnull=False),
                name="file_guest",
            ),
            models.Index(fields=["expired_at"], name="file_expiry"),
        ]

    @property
    def is_image(self) -> bool:
        return self.mime_type in IMAGE_TYPES

    @property
    def is_waiting(self) -> bool:
        """Whether its text is still to be read."""
        return self.read_at is None and not self.is_image

    @property
    def is_expired(self) -> bool:
        return self.expired_at is not None and self.expired_at <= timezone.now()

    def __str__(self) -> str:
        return self.name


class LibraryQuerySet(SharedQuerySet):
    """Libraries, as people see them. A deleted one is absent at once; its rows go in batches.

    A key that is limited to an assistant sees that assistant's library, where its user sees it, and
    changes none.
    """

    def _seen_by(self, principal: Principal) -> Q:
        seen = super()._seen_by(principal) & Q(deleted_at__isnull=True)
        if principal.is_bound_key:
            seen &= Q(pk__in=assistant_libraries(principal))
        return seen

    def _written_by(self, principal: Principal) -> Q:
        return Q(pk__in=[]) if principal.is_bound_key else super()._written_by(principal)


class Library(TenantRow):
    """A set of documents searched together. `default` takes uploads that name no library.

    `next_embedding_model` is set while all documents are embedded anew; search goes on with the
    current one until every document has both. `chunk_count` counts the current one's chunks of
    ready documents: search chooses its way by it. `languages` counts the chunks that were written
    in each language; those deleted since are among them. `words_form` is the form of words that all
    chunks hold; while it is an older one, `words_cursor` is the last document that was rewritten.
    """

    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    default = models.BooleanField(default=False)
    shared = models.BooleanField(default=False)
    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.PROTECT, related_name="+")
    next_embedding_model = models.ForeignKey(
        EmbeddingModel, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    chunk_tokens = models.PositiveIntegerField(default=200)
    overlap_tokens = models.PositiveIntegerField(default=40)
    chunk_count = models.PositiveIntegerField(default=0, editable=False)
    languages = models.JSONField(default=dict, db_default=Value({}, JSONField()), editable=False)
    words_form = models.PositiveSmallIntegerField(default=WORDS_FORM, db_default=0, editable=False)
    words_cursor = models.UUIDField(null=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = LibraryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "libraries"
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user"],
                condition=Q(default=True),
                name="one_default_library",
            ),
            models.CheckConstraint(
                condition=Q(overlap_tokens__lt=F("chunk_tokens")), name="overlap_below_size"
            ),
            models.UniqueConstraint(fields=["organization", "id"], name="library_of_organization"),
        ]

    def __str__(self) -> str:
        return self.name


class LibraryGrant(Grant):
    row_name = "library"

    # The constraint's index begins with this column.
    library = models.ForeignKey(
        Library, on_delete=models.CASCADE, related_name="grants", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["library", "group"], name="one_library_grant"),
        ]


class DocumentStage(models.TextChoices):
    """The last stage of ingestion that a document has finished."""

    STORED = "stored"
    PARSED = "parsed"
    CHUNKED = "chunked"
    EMBEDDED = "embedded"
    READY = "ready"


class DocumentStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OfLibraryQuerySet(TenantQuerySet):
    """Rows seen and changed by whoever sees and changes their library."""

    def _seen_by(self, principal: Principal) -> Q:
        return Q(library__in=Library.objects.visible_to(principal))

    def _written_by(self, principal: Principal) -> Q:
        return Q(library__in=Library.objects.writable_by(principal))


class DocumentQuerySet(OfLibraryQuerySet, LeasedQuerySet):  # type: ignore[override]  # as_manager
    def annotate_unwanted(self) -> Self:
        return self.annotate(is_unwanted=Q(cancel_requested_at__isnull=False))

    def lock_in_order(self) -> None:
        """Lock the documents until the transaction ends, in the one order of all who lock several:
        by id, and before their library. An UPDATE alone would lock them in any order."""
        ordered = self.order_by("pk").select_for_update(no_key=True, of=("self",))
        list(ordered.values_list("pk", flat=True))


class RepositoryQuerySet(OfLibraryQuerySet, LeasedQuerySet):  # type: ignore[override]  # as_manager
    """Git imports, as people see them. A deleted one is absent while its documents are deleted."""

    def annotate_unwanted(self) -> Self:
        return self.annotate(is_unwanted=Q(library__deleted_at__isnull=False))

    def _seen_by(self, principal: Principal) -> Q:
        return super()._seen_by(principal) & Q(deleted_at__isnull=True)


class Repository(TenantRow, Leased):
    """A Git repository that is imported into a library. `commit` is the last one imported.

    `include` and `exclude` are globs over paths; an empty `include` means all that can be read.
    While `deleted_at` is set its documents are being deleted, and the row goes after them.
    """

    library = models.ForeignKey(Library, on_delete=models.CASCADE, related_name="repositories")
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    git_url = models.TextField()
    ref = models.CharField(max_length=255, blank=True, default="")
    token_sealed = models.TextField(blank=True, default="", editable=False)
    include: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=500), default=list, blank=True
    )
    exclude: "models.Field[Sequence[str], list[str]]" = ArrayField(
        models.CharField(max_length=500), default=list, blank=True
    )
    commit = models.CharField(max_length=64, blank=True, default="")
    status = models.CharField(
        max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.QUEUED
    )
    error = models.TextField(blank=True, default="")
    progress = models.JSONField(default=dict, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = RepositoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "repositories"
        constraints = [
            models.UniqueConstraint(
                fields=["library", "git_url", "ref"], name="one_repository_per_library"
            ),
        ]
        indexes = [
            models.Index(
                fields=["status", "lease_until"],
                condition=Q(status__in=["queued", "running"]),
                name="repository_live",
            ),
        ]

    def __str__(self) -> str:
        """Return its path at its host, as people call it: plant/manuals."""
        return urlsplit(self.git_url).path.strip("/").removesuffix(".git") or self.git_url


class Document(TenantRow, Leased):
    """One text in a library, and how far its ingestion is. `error` is for people.

    `text[pages[n - 1]:]` begins page n, where the format has pages. `timings` holds the
    milliseconds of each finished stage. `not_before` keeps a document waiting while its provider is
    limiting requests. `source` is the address it came from, or empty.
    """

    # Two other indexes begin with this column: one of its own would only cost writes.
    library = models.ForeignKey(
        Library, on_delete=models.CASCADE, related_name="documents", db_index=False
    )
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    file = models.ForeignKey(File, null=True, on_delete=models.SET_NULL, related_name="+")
    name = models.CharField(max_length=255)
    path = models.CharField(max_length=1000, null=True, blank=True)
    source = models.TextField(blank=True, default="")
    mime_type = models.CharField(max_length=120, blank=True, default="")
    content_hash = models.CharField(max_length=64, blank=True, default="")
    text = models.TextField(null=True, blank=True)
    pages: "models.Field[Sequence[int], list[int]]" = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True
    )
    repository = models.ForeignKey(
        Repository, null=True, blank=True, on_delete=models.CASCADE, related_name="documents"
    )
    stage = models.CharField(
        max_length=10, choices=DocumentStage.choices, default=DocumentStage.STORED
    )
    status = models.CharField(
        max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.QUEUED
    )
    error = models.TextField(blank=True, default="")
    progress = models.JSONField(default=dict, blank=True)
    timings = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["library", "path"],
                condition=Q(path__isnull=False),
                name="one_document_per_path",
            ),
        ]
        indexes = [
            models.Index(fields=["library", "-created_at"], name="document_library_time"),
            models.Index(fields=["library", "content_hash"], name="document_library_hash"),
            models.Index(
                fields=["status", "lease_until"],
                condition=Q(status__in=["queued", "running"]),
                name="document_live",
            ),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(status="queued"),
                name="document_queue",
            ),
            # How many became ready, or failed, lately.
            models.Index(
                fields=["status", "ended_at"],
                condition=Q(ended_at__isnull=False),
                name="document_ended",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def searched_name(self) -> str:
        """The words of its name and path, by which each of its chunks is found too."""
        return f"{self.path or ''} {self.name}"

    @property
    def chunked(self) -> bool:
        return self.stage not in (DocumentStage.STORED, DocumentStage.PARSED)


class DocumentChunk(TenantRow):
    """A piece of a document: `text[start:end]` of the document is `content`.

    `library` and `embedding_model` repeat the document's, so that the vector index needs no join.
    `(embedding_model, dimensions)` refers to the model's own: no vector of another size gets in,
    and a model's dimensions cannot change while it has vectors.
    """

    # Other indexes begin with these columns.
    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="chunks", db_index=False
    )
    library = models.ForeignKey(Library, on_delete=models.CASCADE, related_name="+", db_index=False)
    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.PROTECT, related_name="+")
    content = models.TextField()
    order = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    page = models.PositiveIntegerField(null=True, blank=True)
    heading = models.TextField(null=True, blank=True)
    tokens = models.PositiveIntegerField()
    vectorized = models.BooleanField(default=False)
    vector = HalfVectorField(null=True)
    dimensions = models.GeneratedField(
        expression=Func(F("vector"), function="vector_dims"),
        output_field=models.IntegerField(null=True),
        db_persist=True,
    )
    search = TokenVectorField(null=True)

    objects = OfLibraryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["document", "embedding_model", "order"], name="one_chunk_per_place"
            ),
            models.CheckConstraint(condition=Q(end__gte=F("start")), name="chunk_end_after_start"),
        ]
        indexes = [
            models.Index(fields=["library", "embedding_model"], name="chunk_library_model"),
            GinIndex(fields=["search"], name="chunk_search", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"{self.document}, chunk {self.order}"


class VectorSurvey(TenantRow):
    """What a sample of a library's chunks shows of its vectors (`libraries.retrieval.survey`).

    `lifts`: per script, how far chunks that share rare words lie nearer to each other than others
    do; 0 is chance, 1 as near as any. `sample` are those chunks.
    """

    library = models.OneToOneField(Library, on_delete=models.CASCADE, related_name="survey")
    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="+")
    chunk_count = models.PositiveIntegerField()
    lifts = models.JSONField(default=dict)
    sample: "models.Field[Sequence[UUID], list[UUID]]" = ArrayField(models.UUIDField())

    objects = OfLibraryQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.library)


class Embedding(TenantRow):
    """A cached vector, which was paid for once. Never shared between organizations."""

    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="+")
    text_md5 = models.CharField(max_length=32)
    vector = HalfVectorField()
    file = models.ForeignKey(
        File, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "embedding_model", "text_md5"], name="one_embedding"
            ),
        ]

    def __str__(self) -> str:
        return self.text_md5

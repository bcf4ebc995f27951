"""Create, change, reindex and delete libraries.

Refuses embedding models that operators do not offer, and chunks larger than the model reads. A
deleted library is gone at once for everybody; `libraries.ingestion.leftovers` deletes its rows in
batches. Documents have services of their own (`libraries.ingestion.document_services`).
"""

from collections.abc import Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Case, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from accounts.audit.recording import record_switch
from accounts.audit_actions import AuditAction
from accounts.models import IdempotencyRecord
from accounts.principal import Actor, Principal
from accounts.tenancy.idempotency import settle
from accounts.tenant_rows import Right
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Conflict, FieldText, Forbidden, Invalid
from libraries.ingestion import switching
from libraries.ingestion.endings import QUEUED_ANEW, stop_documents
from libraries.models import Document, DocumentStage, DocumentStatus, Library, LibraryGrant
from libraries.queue import enqueue_erasure, enqueue_ingestion
from libraries.wire import library_wire
from providers.models import EmbeddingModel
from providers.registry import default_embedding_model

DEFAULT_NAME: Final = "My documents"
_SHARING: Final = (AuditAction.LIBRARY_SHARED, AuditAction.LIBRARY_UNSHARED)


def create_library(
    principal: Principal, *, fields: Mapping[str, Any], claim: IdempotencyRecord | None = None
) -> Library:
    """Create a library of the acting user, with the default embedding model if none is named.

    `fields` names the embedding model by its alias.

    Raises Forbidden for guests and for keys bound to an assistant, Invalid, Conflict, Unavailable.
    """
    if principal.user is None or principal.assistant_id is not None:
        raise Forbidden
    said = _resolve_fields(fields)
    model = said.pop("embedding_model", None) or default_embedding_model()
    library = Library(
        organization_id=principal.organization_id,
        user=principal.user,
        embedding_model=model,
        **said,
    )
    _check_sizes(library, library.embedding_model)
    try:
        with transaction.atomic(durable=True):
            _replace_default(library)
            library.save(force_insert=True)
            settle(claim, status=201, answer=library_wire(library, Right.OWN))
            record_switch(principal.actor, library, _SHARING, before=False, after=library.shared)
    except IntegrityError:
        raise Conflict from None  # two became the default at once
    return library


def update_library(library: Library, *, changes: Mapping[str, Any], by: Actor) -> Library:
    """Change a library. To another embedding model it moves in the background.

    Search goes on with the current model until then. New sizes count for what is indexed from now
    on; `reindex_library` applies them to the rest. Raises Invalid, Conflict.
    """
    changes = _resolve_fields(changes)
    model: EmbeddingModel | None = changes.pop("embedding_model", None)
    was_shared = library.shared
    for name, value in changes.items():
        setattr(library, name, value)
    _check_sizes(library, model or library.next_embedding_model or library.embedding_model)
    with for_whole_organization():  # an admin may close it to themselves, too
        _write_changes(library, changes, model, by=by, was_shared=was_shared)
    return library


@transaction.atomic(durable=True)
def delete_library(library: Library, *, by: Actor) -> None:
    """Hide the library from everybody now; its rows go later.

    Documents that are being ingested stop at their next step.
    """
    stop_documents(Document.objects.filter(library=library))
    Library.objects.filter(pk=library.pk).update(
        deleted_at=timezone.now(), default=False, updated_at=Now()
    )
    LibraryGrant.objects.filter(library=library).delete()
    transaction.on_commit(enqueue_erasure)
    record_switch(by, library, _SHARING, before=library.shared, after=False)


@transaction.atomic(durable=True)
def reindex_library(library: Library) -> Library:
    """Queue every document to be chunked anew, by the sizes the library has now.

    Old chunks are found until new ones replace them. Documents that failed or were cancelled stay
    as they are: a retry uses the new sizes too.
    """
    documents = Document.objects.filter(library=library).exclude(
        status__in=[DocumentStatus.FAILED, DocumentStatus.CANCELLED]
    )
    documents.lock_in_order()
    unread = When(stage=DocumentStage.STORED, then=Value(DocumentStage.STORED))
    documents.update(
        **QUEUED_ANEW, stage=Case(unread, default=Value(DocumentStage.PARSED)), updated_at=Now()
    )
    transaction.on_commit(enqueue_ingestion)
    return library


def default_library(principal: Principal) -> Library:
    """Return the library that takes documents which name none; create it if there is none.

    Raises as `create_library`.
    """
    rows = Library.objects.visible_to(principal).filter(user=principal.user, default=True)
    found: Library | None = rows.first()
    if found is not None:
        return found
    return create_library(principal, fields={"name": DEFAULT_NAME, "default": True})


def _write_changes(
    library: Library,
    changes: Mapping[str, Any],
    model: EmbeddingModel | None,
    *,
    by: Actor,
    was_shared: bool,
) -> None:
    try:
        with transaction.atomic(durable=True):
            if model is not None:  # a switch that is called off changes them
                Document.objects.filter(library=library).lock_in_order()
            _replace_default(library)
            library.save(update_fields=[*changes, "updated_at"])
            if model is not None:
                _set_wanted_model(library, model)
            record_switch(by, library, _SHARING, before=was_shared, after=library.shared)
    except IntegrityError:
        raise Conflict from None
    if library.next_embedding_model_id is not None and switching.finish_switch(library.pk):
        library.refresh_from_db()


def _resolve_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the alias of an embedding model by its row. Raises Invalid for an unknown one."""
    resolved = dict(fields)
    alias = resolved.pop("embedding_model", None)
    if alias is None:
        return resolved
    offered = {m.alias: m for m in EmbeddingModel.objects.filter(enabled=True)}
    if alias not in offered:
        text = f"No enabled embedding model has the alias {alias!r}. {_list_names(offered)}"
        raise Invalid(text, code="unknown_model", fields={"embedding_model": [text]})
    return {**resolved, "embedding_model": offered[alias]}


def _list_names(names: Mapping[str, EmbeddingModel]) -> str:
    return f"There are: {', '.join(sorted(names))}." if names else "There are none."


def _check_sizes(library: Library, model: EmbeddingModel) -> None:
    """Raise Invalid unless the model reads such chunks and the overlap is smaller than they are."""
    if library.chunk_tokens > model.max_input_tokens:
        text = f"{model.alias} reads at most {model.max_input_tokens:,} tokens."
        raise Invalid(text, fields={"chunk_tokens": [FieldText(text, "max_value")]})
    if library.overlap_tokens >= library.chunk_tokens:
        text = "The overlap must be smaller than the chunks."
        raise Invalid(text, fields={"overlap_tokens": [FieldText(text, "overlap")]})


def _replace_default(library: Library) -> None:
    """Unset the person's old default library, if this one is to be the default."""
    if library.default:
        others = Library.objects.filter(
            organization_id=library.organization_id, user=library.user, default=True
        )
        others.exclude(pk=library.pk).update(default=False, updated_at=Now())


def _set_wanted_model(library: Library, model: EmbeddingModel) -> None:
    """Begin the switch to this model, or cancel the one that is under way."""
    Library.objects.select_for_update(no_key=True).get(pk=library.pk)
    library.refresh_from_db(fields=["embedding_model", "next_embedding_model"])
    if model.pk == library.embedding_model_id:
        if library.next_embedding_model_id is not None:
            switching.call_off_switch(library)
            transaction.on_commit(enqueue_erasure)
    elif model.pk != library.next_embedding_model_id:
        switching.begin_switch(library, model)
        transaction.on_commit(enqueue_erasure)
        transaction.on_commit(enqueue_ingestion)

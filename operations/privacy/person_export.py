"""Export everything a person has in an organization, as one JSON document (docs/privacy.md).

It holds what they may see, and made or own; of secrets it says only that there are some. Each entry
of `chats` is what `chats/import/` takes. Rows are read while the document is written: lists are
iterators (`amber.lib.json_text.stream`), those of a chat's messages too.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone

from accounts.api.serializers import ApiKeySerializer
from accounts.audit.chain import canonical_form
from accounts.models import ApiKey, AuditEvent, GroupMember, Membership, User
from accounts.principal import ActorKind, Principal
from accounts.tenant_rows import Right, SharedQuerySet
from amber.lib.database.tenant import for_whole_organization
from amber.lib.json_text.stream import in_batches
from amber.lib.wire_fields import write_time
from assistants.api.serializers import AssistantSerializer, BindingSerializer, ScenePromptSerializer
from assistants.models import Assistant, AssistantTool, ScenePrompt
from chats.messages.export import export_messages
from chats.messages.wire import chat_wire
from chats.models import Chat, ChatMessage
from libraries.files.links import CONTENT_ADDRESS
from libraries.models import Document, File, Library
from libraries.wire import document_wire, file_wire, library_wire
from memory.models import Memory
from memory.wire import memory_wire
from providers.models import UsageRecord
from tools.models import Tool
from tools.wire import tool_wire

MESSAGES_AT_ONCE: Final = 50
"""Messages read at once: at 200,000 characters each they still fit into memory."""

DOCUMENTS_AT_ONCE: Final = 50


def person_document(principal: Principal, user: User, *, address: str) -> dict[str, Any]:
    """Return the document. `address` is this installation's, for links to files, which need the
    person's session."""
    return {
        "exported_at": write_time(timezone.now()),
        "organization_id": str(principal.organization_id),
        "profile": _profile(user),
        "memberships": [_membership(each) for each in _memberships(user)],
        "chats": in_batches(
            Chat.objects.visible_to(principal)
            .select_related("assistant")
            .annotate_grants()
            .annotate_live_turns(),
            _chat,
        ),
        "memories": in_batches(
            Memory.objects.visible_to(principal).defer("vector", "search"), memory_wire
        ),
        "files": in_batches(
            File.objects.visible_to(principal).defer("text"),
            lambda file: _file(file, address),
        ),
        "assistants": in_batches(
            _made_by(Assistant, principal).annotate_access(principal),
            partial(_assistant, principal),
        ),
        "libraries": in_batches(
            _made_by(Library, principal).select_related("embedding_model", "next_embedding_model"),
            _library,
        ),
        "tools": in_batches(_made_by(Tool, principal), _tool),
        "api_keys": in_batches(ApiKey.objects.visible_to(principal).filter(user=user), _api_key),
        "usage": _usage(principal, user),
        "audit_events": in_batches(_acts_of(principal, user), canonical_form),
    }


def _made_by(model: Any, principal: Principal) -> SharedQuerySet:
    """Return the rows that the person sees and made."""
    rows: SharedQuerySet = model.objects.visible_to(principal)
    return rows.filter(user_id=principal.user_id)


def _acts_of(principal: Principal, user: User) -> QuerySet[AuditEvent]:
    """Return what the audit log tells of the person's own acts; of others' only admins read it."""
    told = AuditEvent.objects.filter(organization_id=principal.organization_id)
    return told.filter(actor_user_id=user.pk).exclude(actor_kind=ActorKind.OPERATOR)


def _profile(user: User) -> dict[str, Any]:
    return {
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "language": user.language,
        "mail_notices": user.mail_notices,
        "date_joined": write_time(user.date_joined),
        "last_login": write_time(user.last_login),
    }


def _memberships(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("organization")


def _membership(membership: Membership) -> dict[str, Any]:
    organization = membership.organization
    groups = GroupMember.objects.filter(organization=organization, user=membership.user_id)
    return {
        "organization": {"id": str(organization.pk), "name": organization.name},
        "role": membership.role,
        "groups": [
            {
                "id": str(each.group_id),
                "name": each.group.name,
                "joined_at": write_time(each.created_at),
            }
            for each in groups.select_related("group")
        ],
        "created_at": write_time(membership.created_at),
    }


def _chat(chat: Chat) -> dict[str, Any]:
    return {"chat": chat_wire(chat), "messages": _messages(chat)}


def _messages(chat: Chat) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of all branches, parents before children, without the texts of files."""
    rows = ChatMessage.objects.filter(chat=chat).order_by("position", "pk")
    rows = rows.select_related("assistant", "file").defer("search", "file__text")
    after = Q()
    while some := list(rows.filter(after)[:MESSAGES_AT_ONCE]):
        yield from export_messages(some)
        last = some[-1]
        after = Q(position__gt=last.position) | Q(position=last.position, pk__gt=last.pk)
        after &= Q(position__gte=last.position)  # redundant, but the index serves it


def _file(file: File, address: str) -> dict[str, Any]:
    return file_wire(file) | {"content_url": address + CONTENT_ADDRESS.format(file.pk)}


def _assistant(principal: Principal, assistant: Assistant) -> dict[str, Any]:
    rows = AssistantTool.objects.filter(assistant=assistant).select_related("tool")
    with for_whole_organization():  # a tool may have been closed to the person
        bindings = list(rows)
    scenes = ScenePrompt.objects.filter(assistant=assistant)
    return {
        **AssistantSerializer(assistant, context={"principal": principal}).data,
        "grants": _grants(assistant),
        "tools": BindingSerializer(bindings, many=True).data,
        "scene_prompts": ScenePromptSerializer(scenes, many=True).data,
    }


def _library(library: Library) -> dict[str, Any]:
    documents = Document.objects.filter(library=library).defer("text", "pages")
    return library_wire(library, Right.OWN) | {
        "grants": _grants(library),
        "documents": in_batches(documents, document_wire, size=DOCUMENTS_AT_ONCE),
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return tool_wire(tool, Right.OWN) | {"grants": _grants(tool)}


def _grants(row: Any) -> list[dict[str, Any]]:
    """Return the groups that the person shared it with."""
    return list(
        row.grants.order_by("created_at").values("group_id", "right", group_name=F("group__name"))
    )


def _api_key(key: ApiKey) -> dict[str, Any]:
    return dict(ApiKeySerializer(key).data)


def _usage(principal: Principal, user: User) -> Iterator[dict[str, Any]]:
    """Yield the person's totals by model, of all time."""
    mine = UsageRecord.objects.filter(organization_id=principal.organization_id, user=user)
    yield from (
        {**row, "cost": str(row["cost"])}
        for row in mine.values("kind", "model")
        .annotate(
            calls=Count("pk"),
            prompt_tokens=Sum("prompt_tokens"),
            completion_tokens=Sum("completion_tokens"),
            cost=Sum("cost"),
        )
        .order_by("kind", "model")
    )

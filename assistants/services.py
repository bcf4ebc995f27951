"""Create, change and delete assistants, their bindings to tools and their scene prompts.

Refuses models that are not enabled, built-in tools that do not exist, and slugs that are taken.
The caller has authorised every row it passes (library, tool).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from accounts.audit.recording import record_switch
from accounts.audit_actions import AuditAction
from accounts.principal import Actor, Principal
from amber.lib.database.rows import delete_row, save_changes
from amber.lib.database.tenant import for_whole_organization
from amber.lib.errors import Conflict, FieldText, Forbidden, Invalid
from amber.lib.ids import new_id
from assistants.models import Assistant, AssistantTool, ScenePrompt
from assistants.scenes.presets import SCENE_PRESETS
from assistants.slugs import find_free_slug, slug_base
from providers.registry import is_known_alias
from tools.calling.registry import builtin_names
from tools.connections.connected import function_names
from tools.models import Tool

MAX_REFUSAL_CHARS: Final = 2_000
_NOT_SEEN: Final = (
    "This tool is private. Only its owner may let the assistant use more of its functions."
)
_SHARING: Final = (AuditAction.ASSISTANT_SHARED, AuditAction.ASSISTANT_UNSHARED)
_PUBLISHING: Final = (AuditAction.ASSISTANT_PUBLISHED, AuditAction.ASSISTANT_UNPUBLISHED)


def create_assistant(principal: Principal, *, fields: Mapping[str, Any]) -> Assistant:
    """Create an assistant of the acting user. Without a slug it gets one made from its name.

    Raises Forbidden for guests and for keys bound to an assistant, Invalid, Conflict.
    """
    if principal.user is None or principal.assistant_id is not None:
        raise Forbidden
    _check(fields)
    assistant = Assistant(
        pk=new_id(), organization_id=principal.organization_id, user=principal.user, **fields
    )
    try:
        with transaction.atomic(durable=True):
            if not assistant.slug:
                assistant.slug = _free_slug(assistant)
            assistant.save(force_insert=True)
            record_visibility(principal.actor, assistant)
    except IntegrityError as error:
        raise _conflict(error) from error
    return assistant


def update_assistant(assistant: Assistant, *, changes: Mapping[str, Any], by: Actor) -> Assistant:
    """Write the changed columns only. Raises Invalid, Conflict."""
    _check(changes, assistant)
    was_shared, was_public = assistant.shared, assistant.public
    try:
        with transaction.atomic(durable=True):
            with for_whole_organization():  # an admin may close it to themselves, too
                save_changes(assistant, changes)
            record_visibility(by, assistant, was_shared=was_shared, was_public=was_public)
    except IntegrityError as error:
        raise _conflict(error) from error
    return assistant


def delete_assistant(assistant: Assistant, *, by: Actor) -> None:
    """Delete the assistant; everybody's chats with it stay and continue without it."""
    was_shared, was_public = assistant.shared, assistant.public
    with _deleting_for_all():
        delete_row(assistant)
        assistant.shared = assistant.public = False
        record_visibility(by, assistant, was_shared=was_shared, was_public=was_public)


def record_visibility(
    by: Actor, assistant: Assistant, *, was_shared: bool = False, was_public: bool = False
) -> None:
    """Record whom the assistant was opened to, or closed to. The transaction's last step."""
    for actions, before, after in (
        (_SHARING, was_shared, assistant.shared),
        (_PUBLISHING, was_public, assistant.public),
    ):
        record_switch(by, assistant, actions, before=before, after=after)


@transaction.atomic(durable=True)
def dismiss_guests(assistant: Assistant) -> None:
    """Make every guest token issued so far invalid; new guests are welcome."""
    Assistant.objects.filter(pk=assistant.pk).update(
        guest_epoch=F("guest_epoch") + 1, updated_at=timezone.now()
    )


def bind_tool(assistant: Assistant, *, tool: Tool, functions: Sequence[str] = ()) -> AssistantTool:
    """Let the assistant use the tool; empty `functions` means all of the tool's.

    Raises Conflict for a tool that is bound already. Raises Invalid for functions that it does not
    have, and for a private tool of somebody other than the assistant's creator, as no turn would
    use it.
    """
    is_own = tool.user_id == assistant.user_id
    if not (tool.shared or is_own or tool.grants.exists()):
        text = (
            "This tool is private and does not belong to the assistant's creator. Share it first."
        )
        raise Invalid(text, fields={"tool_id": [text]})
    _check_functions(tool, functions)
    try:
        with transaction.atomic(durable=True):
            return AssistantTool.objects.create(
                organization_id=assistant.organization_id,
                assistant=assistant,
                tool=tool,
                functions=list(functions),
            )
    except IntegrityError as error:
        raise _conflict(error) from error


@transaction.atomic(durable=True)
def choose_functions(
    binding: AssistantTool, *, functions: Sequence[str], sees_tool: bool
) -> AssistantTool:
    """Change which functions the assistant uses; none means all.

    Raises Invalid for functions that the tool does not have, and Forbidden for more functions than
    now unless whoever asks sees the tool: its owner lets the assistant use those and no others.
    """
    is_more = binding.functions and not (functions and set(functions) <= set(binding.functions))
    if is_more and not sees_tool:
        raise Forbidden(_NOT_SEEN)
    _check_functions(binding.tool, functions)
    binding.functions = list(functions)
    binding.save(update_fields=["functions", "updated_at"])
    return binding


@transaction.atomic(durable=True)
def unbind_tool(binding: AssistantTool) -> None:
    """Remove the tool from the assistant; the tool itself stays."""
    binding.delete()


def add_scene_prompt(assistant: Assistant, *, fields: Mapping[str, Any]) -> ScenePrompt:
    """Add a scene. Raises Conflict if the assistant has one of the same label."""
    try:
        with transaction.atomic(durable=True):
            return ScenePrompt.objects.create(
                organization_id=assistant.organization_id, assistant=assistant, **fields
            )
    except IntegrityError as error:
        raise _conflict(error) from error


@transaction.atomic(durable=True)
def add_usual_scenes(assistant: Assistant) -> list[ScenePrompt]:
    """Add the usual scenes whose labels the assistant does not have, and return them."""
    known = set(assistant.scene_prompts.values_list("label", flat=True))
    return ScenePrompt.objects.bulk_create(
        ScenePrompt(
            organization_id=assistant.organization_id,
            assistant=assistant,
            label=preset.label,
            prompt=preset.prompt,
            examples=list(preset.examples),
            temperature=preset.temperature,
            top_p=preset.top_p,
        )
        for preset in SCENE_PRESETS
        if preset.label not in known
    )


def update_scene_prompt(scene: ScenePrompt, *, changes: Mapping[str, Any]) -> ScenePrompt:
    """Write the changed columns only. Raises Conflict if another scene has the label."""
    try:
        with transaction.atomic(durable=True):
            save_changes(scene, changes)
    except IntegrityError as error:
        raise _conflict(error) from error
    return scene


def delete_scene_prompt(scene: ScenePrompt) -> None:
    """Delete the scene; everybody's chats that were pinned to it choose their scene again."""
    with _deleting_for_all():
        delete_row(scene)


@contextmanager
def _deleting_for_all() -> Iterator[None]:
    """A transaction that deletes a row to which chats of others may refer: they let go of it, which
    whoever deletes it may not do with their own rights."""
    with for_whole_organization(), transaction.atomic(durable=True):
        yield


def _check(fields: Mapping[str, Any], current: Assistant | None = None) -> None:
    """Raise Invalid for a model or built-in tool that does not exist.

    A model that has been disabled since it was chosen may stay; it runs as `auto`.
    """
    model = fields.get("model", "")
    if (current is None or model != current.model) and not is_known_alias(model):
        text = f"No enabled model has the alias {model!r}."
        raise Invalid(text, code="unknown_model", fields={"model": [text]})
    kept = current.disabled_builtin_tools if current is not None else ()
    check_builtin_tools(fields.get("disabled_builtin_tools", ()), kept=kept)


def check_builtin_tools(names: Sequence[str], *, kept: Sequence[str] = ()) -> None:
    """Raise Invalid for names of no built-in tool, except those in `kept`.

    A tool may have been removed since its name was stored; the row must still be editable.
    """
    unknown = set(names) - set(builtin_names()) - set(kept)
    if unknown:
        wrong, known = ", ".join(sorted(unknown)), ", ".join(builtin_names())
        text = f"There is no built-in tool named {wrong}. The built-in tools are: {known}."
        raise Invalid(text, fields={"disabled_builtin_tools": [text]})


def _check_functions(tool: Tool, chosen: Sequence[str]) -> None:
    known = function_names(tool)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        text = (
            f"The tool has no function named {', '.join(unknown)}."
            f" Its functions are: {', '.join(known)}."
        )
        raise Invalid(text[:MAX_REFUSAL_CHARS], fields={"functions": [text[:MAX_REFUSAL_CHARS]]})


def _free_slug(assistant: Assistant) -> str:
    """Return a slug that no other assistant of the organization has. One query.

    Two requests can find the same one; then the constraint makes the second a Conflict.
    """
    base = slug_base(assistant.name, assistant.pk)
    near = Assistant.objects.filter(
        organization_id=assistant.organization_id, slug__startswith=base
    )
    with for_whole_organization():  # also those that the person does not see
        taken = set(near.values_list("slug", flat=True))
    return find_free_slug(base, taken)


_CONFLICTS: Final[Mapping[str, tuple[str, str]]] = {
    "one_assistant_slug": ("slug", "Another assistant of the organization has this slug."),
    "one_binding": ("tool_id", "The assistant already uses this tool."),
    "one_scene_label": ("label", "The assistant already has a scene prompt with this label."),
}


def _conflict(error: IntegrityError) -> Conflict:
    """Return what the broken constraint means; a row deleted meanwhile is a conflict too."""
    diagnosis = getattr(error.__cause__, "diag", None)
    known = _CONFLICTS.get(getattr(diagnosis, "constraint_name", None) or "")
    if known is None:
        return Conflict()
    field, text = known
    return Conflict(text, fields={field: [FieldText(text, "unique")]})

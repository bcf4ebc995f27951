"""Name the acts that the audit log tells of, and say each in words for people."""

from django.db import models


class AuditAction(models.TextChoices):
    """What the audit log tells of (docs/audit.md). A name that was once written stays."""

    SIGN_IN_SUCCEEDED = "sign_in.succeeded", "a member signed in"
    SIGN_IN_FAILED = "sign_in.failed", "somebody tried to sign in as a member, and was refused"
    KEY_MADE = "key.made", "an API key was made"
    KEY_CHANGED = "key.changed", "an API key was given another name, scope, origin or end"
    KEY_ROTATED = "key.rotated", "an API key got a successor"
    KEY_REVOKED = "key.revoked", "an API key was revoked"
    ORGANIZATION_CHANGED = "organization.changed", "the organization's own settings were changed"
    MEMBER_INVITED = "member.invited", "an email address was invited"
    MEMBER_JOINED = "member.joined", "a person became a member"
    MEMBER_ROLE_CHANGED = "member.role_changed", "a member got another role"
    MEMBER_REMOVED = "member.removed", "a member was removed, or left"
    GROUP_MADE = "group.made", "a group was made"
    GROUP_CHANGED = "group.changed", "a group got another name or description"
    GROUP_REMOVED = "group.removed", "a group was deleted, and its grants ended"
    GROUP_JOINED = "group.joined", "a member was let into a group"
    GROUP_LEFT = "group.left", "a member left a group, or was taken out of it"
    GRANT_MADE = (
        "grant.made",
        "an assistant, library or tool was shared with a group, or the group got another right",
    )
    GRANT_ENDED = "grant.ended", "a group's right to an assistant, library or tool was ended"
    ASSISTANT_SHARED = "assistant.shared", "an assistant was shared with the organization"
    ASSISTANT_UNSHARED = "assistant.unshared", "a shared assistant became private or was deleted"
    ASSISTANT_PUBLISHED = "assistant.published", "an assistant was opened to guests"
    ASSISTANT_UNPUBLISHED = "assistant.unpublished", "a public assistant was closed or deleted"
    LIBRARY_SHARED = "library.shared", "a library was shared with the organization"
    LIBRARY_UNSHARED = "library.unshared", "a shared library became private or was deleted"
    TOOL_SHARED = "tool.shared", "a tool was shared with the organization"
    TOOL_UNSHARED = "tool.unshared", "a shared tool became private or was deleted"
    BUDGET_MADE = "budget.made", "a budget was made"
    BUDGET_CHANGED = "budget.changed", "a budget got another limit"
    BUDGET_REMOVED = "budget.removed", "a budget was removed"
    PERSON_EXPORTED = "person.exported", "a person exported their data"
    PERSON_ERASED = "person.erased", "a person asked to have their data deleted"
    AUDIT_EXPORTED = "audit.exported", "this log was exported"
    OPERATOR_READ = "operator.read", "an operator opened a row of the organization in the admin"
    OPERATOR_ADDED = "operator.added", "an operator added a row in the admin"
    OPERATOR_CHANGED = "operator.changed", "an operator changed a row in the admin"
    OPERATOR_DELETED = "operator.deleted", "an operator deleted a row in the admin"

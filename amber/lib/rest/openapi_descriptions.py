"""Describe operations and groups in the OpenAPI document.

An operation's docstring is its text: the first sentence is the summary, the rest the description.
Docstrings of classes are for readers of the code, and are left out.
"""

import inspect
import re
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema

_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+")

GROUPS: Final = {
    "me": "Your profile and active organization; exporting your data and erasing it.",
    "api-keys": "Credentials for programs.",
    "models": "The models that you may use.",
    "assistants": "Assistants with their prompt, model, tools, library and scenes.",
    "chats": "Conversations, their messages and branches.",
    "messages": "Single messages: read, edit, delete, ask again.",
    "turns": "Questions and their answers: state, events, approval, manifest.",
    "events": "What changes among your chats, as it happens.",
    "files": "Files that are attached to chats.",
    "libraries": "Documents that assistants answer from: search, ask, import.",
    "documents": "A library's documents, and the state of their ingestion.",
    "imports": "Imports of Git repositories into libraries.",
    "tools": "Services that assistants may call.",
    "memories": "Facts that Amber remembers about you.",
    "feedback": "What people think of answers; for the organization's admins.",
    "OpenAI": "Assistants and models for OpenAI's clients.",
    "public API": "Assistants for programs, in Amber's own form.",
    "public": "Public assistants, for guests without an account.",
    "webhooks": "Addresses that Amber notifies about turns.",
    "organizations": "Tenants, their members and invitations.",
    "invitations": "See, accept or decline an invitation.",
    "groups": "Groups of members, to share assistants, libraries and tools with.",
    "usage": "Tokens and costs of model calls.",
    "budgets": "Limits of tokens and costs.",
    "audit": "What was done in the organization, and by whom.",
}
"""In the order of work: first who one is, then what one asks and what answers, at last the administration."""


class DescribedSchema(AutoSchema):
    def get_summary(self) -> str:
        return self._read_docstring()[0].rstrip(".")

    def get_description(self) -> str:  # type: ignore[override]
        return self._read_docstring()[1]

    def _read_docstring(self) -> tuple[str, str]:
        """Return the first sentence of the operation's docstring, and what follows it."""
        method = getattr(self.view, getattr(self.view, "action", self.method.lower()))
        first, *rest = _END_OF_SENTENCE.split(inspect.getdoc(method) or "", maxsplit=1)
        return " ".join(first.split()), "".join(rest)


def document_groups(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe the groups. A drf-spectacular hook: changes `result` in place and returns it."""
    result["tags"] = [{"name": name, "description": said} for name, said in GROUPS.items()]
    return result

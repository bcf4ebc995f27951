"""What the pages of the OpenAPI document say: a line for each operation, a word for each group.

An operation's docstring is all there is: its first sentence is the summary, the rest the
description. Docstrings of classes speak to who reads the code and are left out.
"""

import inspect
import re
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema

_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+")

GROUPS: Final = {
    "me": "Who is asking: profile, active organization, taking one's data along, erasing it.",
    "assistants": "What answers: prompt, model, tools, library, scenes.",
    "chats": "Conversations, their messages and branches.",
    "messages": "One message: read, edit, delete, ask again.",
    "turns": "A question and all that answers it: state, events, approval, manifest.",
    "files": "Files given to chats.",
    "libraries": "Texts that assistants look things up in: search, ask, import.",
    "documents": "A library's documents, and how far their ingestion is.",
    "imports": "Git repositories that were imported into libraries.",
    "memories": "What is known of you.",
    "tools": "Services that assistants may call.",
    "models": "The models that may be named.",
    "usage": "What model calls used and cost.",
    "budgets": "Limits of what may be used.",
    "organizations": "Tenants, their members and invitations.",
    "invitations": "Answering an invitation.",
    "api-keys": "Credentials for programs.",
    "webhooks": "Addresses that are told of turns.",
    "public": "Public assistants, for guests without an account.",
    "public API": "Assistants for programs, in Amber's own form.",
    "OpenAI": "The same, as OpenAI's clients speak.",
}


class DescribedSchema(AutoSchema):
    def get_summary(self) -> str:
        return self._read_docstring()[0].rstrip(".")

    def get_description(self) -> str:  # type: ignore[override]
        return self._read_docstring()[1]

    def _read_docstring(self) -> tuple[str, str]:
        """The first sentence of the operation's own docstring, and what follows it."""
        method = getattr(self.view, getattr(self.view, "action", self.method.lower()))
        first, *rest = _END_OF_SENTENCE.split(inspect.getdoc(method) or "", maxsplit=1)
        return " ".join(first.split()), "".join(rest)


def document_groups(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A drf-spectacular hook. Changes `result` in place and returns it."""
    result["tags"] = [{"name": name, "description": said} for name, said in GROUPS.items()]
    return result

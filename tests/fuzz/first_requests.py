"""Requests that succeed, where the document cannot say all that one must know: each is sent first, so
that every operation does what it is for at least once, whatever is generated afterwards.

Rows and addresses are put in their place by name, as in every request (tests/fuzz/hooks.py). What need
not be said is left out.
"""

from typing import Any

_TEXT = {"name": "tea.txt", "text": "Tea wants four minutes."}
_ASK = [{"role": "user", "content": "Tell me."}]

_FIRST: dict[str, dict[str, Any]] = {
    "DELETE /api/v1/memories/": {"query": {"confirm": "true"}},
    "GET /api/v1/chats/search/": {"query": {"q": "river"}},
    "PATCH /api/v1/assistants/{assistant_id}/tools/{tool_id}/": {
        "body": {"functions": ["forecast"]}
    },
    "PATCH /api/v1/budgets/{budget_id}/": {"body": {"limit": 1_000}},
    "PATCH /api/v1/memories/{memory_id}/": {"body": {"content": "Likes tea."}},
    "PATCH /api/v1/messages/{message_id}/": {"body": {"content": "Tell me more."}},
    "PATCH /api/v1/organizations/{organization_id}/members/{member_id}/": {
        "body": {"role": "admin"}
    },
    "POST /api/v1/documents/": {"body": _TEXT},
    "POST /api/v1/libraries/{library_id}/documents/": {"body": _TEXT},
    "POST /api/v1/libraries/{library_id}/import/": {
        "body": {"git_url": "https://127.0.0.1:1/nothing.git"}
    },
    "POST /api/v1/organizations/{organization_id}/invitations/": {
        "body": {"email": "somebody.else@example.com", "role": "member"}
    },
    "POST /api/v1/public/assistants/{assistant_id}/chats/{chat_id}/messages/": {
        "body": {"content": "Tell me."}
    },
    "POST /api/v1/me/erase/": {"body": {"confirm": "main@example.com", "account": False}},
    "POST /api/v1/tools/": {"body": {"kind": "discovery", "discovery_url": "http://127.0.0.1/"}},
    "POST /chat": {"body": {"messages": _ASK}},
    "POST /v1/chat/completions": {"body": {"model": "auto", "messages": _ASK}},
    "POST /v1/embeddings": {"body": {"model": "fake-embedding", "input": "Tea."}},
    "POST /v1/responses": {"body": {"model": "auto", "input": "Tell me."}},
}

FIRST = {
    operation: told | ({"media_type": "application/json"} if "body" in told else {})
    for operation, told in _FIRST.items()
}

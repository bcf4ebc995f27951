"""Give the OpenAPI document its introduction, and operations example bodies, by the operation's id.

The introduction is on the first screen of /api/docs/: what holds for every operation. A test checks the
examples against the documented schemas. Explanations of a field belong to the field.
"""

from typing import Any, Final

INTRODUCTION: Final = """
The REST API of Amber: what a person can do on its web page, a program can do here. Guides, settings and
the events of streams are in the [documentation](/docs/).

- **Credentials.** Send an API key as `Authorization: Bearer amb_live_…`. Make one with `POST /api/v1/api-keys/`,
  on the web page under *Settings*, or with `manage.py create_account --api-key`. A key acts for its user, within
  its scope. Here, press *Authorize*: this browser keeps the key until you log out there. Pages of your own use
  the session of a signed-in person. [More on keys](/docs/accounts/)
- **Errors** have one form: `{"error": {"code", "message", "fields", "retryable", "request_id"}}`. Decide by `code`, not by
  `message`. An id that does not exist and an id that is not yours both answer 404. Every answer carries
  `X-Request-Id`. After 429 and 503, wait for `Retry-After`. [All codes](/docs/errors/)
- **Paging.** Lists answer `{"results", "next", "previous"}`, newest first. Follow `next` until it is null; do
  not build cursors yourself. `?limit=` sets the size of a page.
- **Streams.** A question is answered by a *turn*. With `Accept: text/event-stream` the answer to your POST is the
  turn's stream; without it you get 201 and may watch `GET /api/v1/turns/{id}/events/` later. Events are numbered:
  reconnect with `Last-Event-ID` and you miss nothing. The turn runs whether or not anybody watches.
  [All events](/docs/stream-protocol/)
- **Idempotency.** A POST that starts work accepts `Idempotency-Key`. Repeat it with the same key after a broken
  connection: you get the first answer again, and nothing happens twice.
- **OpenAI's clients** work with the base address `/v1` and the same key; the model is `assistant:` and its slug.
  [More](/docs/public-api/)
"""

_ID: Final = "01931e6a-7c1e-7d6b-9d54-9d9b8a1c5f00"
_QUESTION: Final = "How is the pump bled?"

EXAMPLES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "assistants_create": {
        "With a library": {
            "name": "Guide",
            "prompt": "You answer from the manuals, briefly.",
            "model": "auto",
            "temperature": 0.3,
            "library_id": _ID,
            "shared": True,
        }
    },
    "assistants_scene_prompts_create": {
        "A scene of its own": {
            "label": "Cooking",
            "prompt": "You are a chef. Amounts are metric.",
            "examples": ["How do I make a risotto?"],
            "temperature": 0.4,
        }
    },
    "assistants_grants_update": {"To use it": {"right": "use"}},
    "libraries_grants_update": {"To add documents, too": {"right": "edit"}},
    "tools_grants_update": {"To let their assistants call it": {"right": "use"}},
    "groups_create": {
        "Customer support": {"name": "Support", "description": "Answers customers' questions."}
    },
    "assistants_tools_create": {"All its functions": {"tool_id": _ID}},
    "chats_import_create": {
        "Two messages": {
            "chat": {"name": "Rain"},
            "messages": [
                {"role": "human", "content": "Will it rain?"},
                {"role": "assistant", "content": "In the afternoon."},
            ],
        }
    },
    "chats_branch_update": {"Another branch": {"leaf_id": _ID}},
    "messages_partial_update": {"Another question": {"content": "Will it rain tomorrow?"}},
    "turns_approve_create": {"One of two": {"decisions": {"call_1": True, "call_2": False}}},
    "libraries_create": {"Manuals": {"name": "Manuals", "chunk_tokens": 400}},
    "libraries_documents_create": {
        "A text": {
            "name": "pump.md",
            "path": "manuals/pump.md",
            "text": "# Pump\n\nThe pump is bled by opening the valve on its left side.",
            "metadata": {"year": 2031},
        },
        "An address": {"url": "https://www.example.com/manuals/pump.pdf"},
    },
    "libraries_import_create": {
        "The manuals of a branch": {
            "git_url": "https://git.example.com/team/manuals",
            "ref": "main",
            "include": ["*.md"],
            "exclude": ["drafts"],
        }
    },
    "libraries_search_create": {
        "A part of the library": {
            "query": _QUESTION,
            "k": 5,
            "filters": {"path_prefix": "manuals/", "metadata": {"year": 2031}},
        }
    },
    "libraries_search_together": {"Two at once": {"query": _QUESTION, "library_ids": [_ID, _ID]}},
    "libraries_ask_create": {
        "A second question": {
            "question": "And how often?",
            "history": [{"user": _QUESTION, "assistant": "By the valve on its left side. [1]"}],
        }
    },
    "memories_create": {"A fact": {"content": "I am allergic to peanuts"}},
    "memories_search_create": {"A question": {"query": "What may I eat?", "k": 3}},
    "tools_create": {
        "A service with a manifest": {
            "kind": "discovery",
            "discovery_url": "https://tools.example.com/",
            "api_key": "the service's own key",
        }
    },
    "webhooks_create": {
        "All turns": {"url": "https://www.example.com/amber", "events": ["turn.completed"]}
    },
    "me_erase_create": {"Everything here": {"confirm": "alice@example.com"}},
    "createChatCompletion": {
        "An assistant": {
            "model": "assistant:guide",
            "messages": [{"role": "user", "content": _QUESTION}],
            "stream": True,
        }
    },
    "createResponse": {"An assistant": {"model": "assistant:guide", "input": _QUESTION}},
    "createEmbedding": {"Two texts": {"model": "offline-embedding", "input": ["one", "two"]}},
}


def document_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the examples. A drf-spectacular hook: changes `result` in place and returns it."""
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            shown = EXAMPLES.get(operation["operationId"])
            if shown:
                content = operation["requestBody"]["content"]["application/json"]
                content["examples"] = {name: {"value": body} for name, body in shown.items()}
    return result

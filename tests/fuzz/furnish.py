"""Gives the people over REST what they could not have without processes that work: answers, an index,
turns that wait, stored responses. Each takes the place of the row of its kind that `cast` made."""

from typing import Any

from amber.lib.tests.local_server import say
from tests.e2e.kit.client import Asked, Client
from tests.e2e.kit.platform import Platform
from tools.tests.tool_service import ToolService

WAITING = "Do it. [[fake call=send args=e30 tokens=3]]"
TEXT = {"name": "pumps.txt", "text": "The valve of the pump opens to the left. " * 40}
FORM = {"Content-Type": "multipart/form-data; boundary=edge"}
FILE = (
    b'--edge\r\nContent-Disposition: form-data; name="file"; filename="note.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\nA note.\r\n--edge--\r\n"
)

SAME_BY_ANOTHER_NAME = {
    "POST /api/v1/invitations/find/": ("token", "invitation_token"),
    "POST /api/v1/invitations/accept/": ("token", "invitation_token"),
    "POST /api/v1/invitations/decline/": ("token", "invitation_token"),
    "POST /api/v1/me/claim/": ("token", "guest_token"),
    "POST /api/v1/me/erase/": ("confirm", "own_email"),
}


def furnish(
    platform: Platform, cast: dict[str, Any], tool: ToolService, protected_url: str
) -> None:
    """`main`, `guest`, and whoever is there for one operation that needs something of its own.

    At `protected_url` an MCP server wants OAuth.
    """
    main, guest, apart = cast["main"], cast["guest"], cast["apart"]
    who = Client(platform.port, main["credentials"]["apiKey"])
    main["values"] |= rows_with_work(platform, who, tool.url)
    own = rows_for_one(platform, who, tool, main["values"])
    own["POST /api/v1/tools/{tool_id}/connect/"] = rows_of_oauth(who, protected_url)
    for operation, rows in own.items():
        apart[operation] = main | {"values": main["values"] | rows}
    for operation, (name, kind) in SAME_BY_ANOTHER_NAME.items():
        apart[operation]["values"][name] = apart[operation]["values"][kind]
    leaving = apart["DELETE /v1/responses/{response_id}"]
    leaving["values"] |= response_of(Client(platform.port, leaving["credentials"]["apiKey"]))
    visitor = Client(platform.port, guest["credentials"]["guestToken"])
    guest["values"] |= rows_of_visit(visitor, guest["values"]["assistant_id"])
    answer = visitors_answer(platform, visitor, guest["values"])
    path = "/api/v1/public/assistants/{assistant_id}/messages/{message_id}/feedback/"
    apart[f"PUT {path}"] = guest | {"values": guest["values"] | {"message_id": answer}}


def rows_for_one(
    platform: Platform, who: Client, tool: ToolService, values: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """By operation: what it needs, and no other does."""
    spare = made(who.post("tools/", {"kind": "discovery", "discovery_url": tool.url}))
    tool.route("/page", say(b"The valve opens to the left."))
    page = {"name": "page.txt", "url": tool.address("/page")}
    fetched = made(who.post(f"libraries/{values['library_id']}/documents/", page))
    waiting = rows_of_waiting_turn(platform, who, values["assistant_id"])
    answer = who.messages(values["chat_id"])[-1]
    return {
        "PUT /api/v1/messages/{message_id}/feedback/": {"message_id": answer["id"]},
        "POST /api/v1/assistants/{assistant_id}/tools/": {"tool_id": spare["id"]},
        "POST /api/v1/documents/{document_id}/refresh/": {"document_id": fetched["id"]},
        "POST /api/v1/turns/{turn_id}/approve/": waiting,
        "POST /v1/embeddings": {"model": "fake-embedding"},
    }


def made(answer: Any) -> Any:
    assert answer.status < 300, answer
    return answer.body


def rows_with_work(platform: Platform, who: Client, tool_url: str) -> dict[str, Any]:
    """Of a member."""
    tool = made(who.post("tools/", {"kind": "discovery", "discovery_url": tool_url}))
    assistant = made(who.post("assistants/", {"name": "With tools", "model": "fake-model"}))
    made(who.post(f"assistants/{assistant['id']}/tools/", {"tool_id": tool["id"]}))
    scene = made(who.post(f"assistants/{assistant['id']}/scene-prompts/", {"label": "Short"}))
    chat = made(who.post("chats/", {"assistant_id": assistant["id"]}))
    asked = who.ask(chat_id=chat["id"])
    who.ended(asked.turn_id)
    rows = {
        "tool_id": tool["id"],
        "discovery_url": tool_url,
        "function": "forecast",
        "assistant_id": assistant["id"],
        "scene_id": scene["id"],
        "pinned_scene_id": scene["id"],
        "model": "fake-model",
        "model_name": "fake-model",
    }
    return rows | rows_of_talk(asked) | rows_of_library(platform, who) | response_of(who)


def rows_of_talk(asked: Asked) -> dict[str, Any]:
    return {
        "chat_id": asked.chat_id,
        "message_id": asked.message_id,
        "parent_id": asked.message_id,
        "leaf_id": asked.message_id,
        "turn_id": asked.turn_id,
    }


def rows_of_library(platform: Platform, who: Client) -> dict[str, Any]:
    body = {"name": "Manuals", "embedding_model": "fake-embedding"}
    library = made(who.post("libraries/", body))
    document = made(who.post(f"libraries/{library['id']}/documents/", TEXT))
    path = f"documents/{document['id']}/"
    platform.wait_for(lambda: who.get(path).body["status"] == "ready", "ready document")
    file = made(who.request("POST", "files/", FILE, headers=FORM))
    return {
        "library_id": library["id"],
        "library_ids": [library["id"]],
        "document_id": document["id"],
        "document_ids": [document["id"]],
        "embedding_model": "fake-embedding",
        "file_id": file["id"],
    }


def response_of(who: Client) -> dict[str, Any]:
    body = {"model": "fake-model", "input": "Tell me.", "store": True}
    response = made(who.post("/v1/responses", body))
    return {"response_id": response["id"], "previous_response_id": response["id"]}


def rows_of_oauth(who: Client, url: str) -> dict[str, Any]:
    body = {"kind": "mcp", "discovery_url": url, "options": {"auth": {"type": "oauth"}}}
    return {"tool_id": made(who.post("tools/", body))["id"]}


def rows_of_waiting_turn(platform: Platform, who: Client, assistant_id: str) -> dict[str, Any]:
    """A turn that waits for a person's decision, and the decision."""
    chat = made(who.post("chats/", {"assistant_id": assistant_id}))
    asked = who.ask(WAITING, chat_id=chat["id"])
    platform.wait_for(lambda: who.turn(asked.turn_id)["status"] == "waiting", "waiting turn")
    calls = who.turn(asked.turn_id)["waiting_calls"]
    return {"turn_id": asked.turn_id, "decisions": {call["call_id"]: True for call in calls}}


def rows_of_visit(who: Client, assistant_id: str) -> dict[str, Any]:
    """Of a guest."""
    path = f"public/assistants/{assistant_id}/"
    chat = made(who.post(f"{path}chats/", {}))
    asked = made(who.post(f"{path}chats/{chat['id']}/messages/", {"content": "Tell me."}))
    file = made(who.request("POST", f"{path}files/", FILE, headers=FORM))
    return {
        "chat_id": chat["id"],
        "message_id": asked["message"]["id"],
        "turn_id": asked["turn"]["id"],
        "file_id": file["id"],
    }


def visitors_answer(platform: Platform, who: Client, values: dict[str, Any]) -> str:
    """The id of the answer to what a guest asked, once it is there."""
    path = f"public/assistants/{values['assistant_id']}/chats/{values['chat_id']}/messages/"
    found: list[dict[str, Any]] = []

    def is_answered() -> bool:
        found[:] = [m for m in who.get(path).body["results"] if m["role"] == "assistant"]
        return bool(found)

    platform.wait_for(is_answered, "answer to a guest")
    return str(found[0]["id"])

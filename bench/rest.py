"""Ask a running Amber over REST, as a client with a key."""

from typing import Any

import aiohttp

from bench.stand import RunningAmber


def signed_in(amber: RunningAmber, key: str = "", **options: Any) -> aiohttp.ClientSession:
    """Return a session below /api/v1/ with the key, or else with the first person's."""
    headers = {"Authorization": f"Bearer {key or amber.api_key}"}
    return aiohttp.ClientSession(
        f"{amber.url}/api/v1/", headers=headers, raise_for_status=True, **options
    )


async def call(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Any:
    """Return the JSON of the answer; None if it has none. Raises aiohttp.ClientResponseError."""
    async with session.request(method, path, json=body) as answer:
        return await answer.json() if answer.content_type == "application/json" else None


async def first_assistant(session: aiohttp.ClientSession) -> str:
    """Return the id of the newest assistant."""
    return str((await call(session, "GET", "assistants/"))["results"][0]["id"])


async def new_chat(session: aiohttp.ClientSession, assistant_id: str) -> str:
    """Return the id of a chat that it makes."""
    return str((await call(session, "POST", "chats/", {"assistant_id": assistant_id}))["id"])

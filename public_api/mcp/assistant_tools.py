"""Let MCP clients list the assistants that the caller sees, and ask one.

A question is a turn as any other, under the caller's budgets, and calls that a person would have to
approve are refused. Nothing is stored unless the caller names a chat. Whoever cuts the connection
stops a turn that nothing keeps.
"""

import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from accounts.principal import Principal
from amber.lib.database.connections import in_thread
from assistants.models import Assistant
from chats.context.call_options import CallOptions
from chats.models import Turn
from chats.streaming.turn_follower import follow_turn
from engine.events import Event, TextDelta, ToolStarted, Transcript, apply_event
from public_api.mcp.tool import Json, McpTool, Report, ToolAnswer, object_of, one_line
from public_api.openai.answerers import NEW_CHAT, assistant_named
from public_api.openai.growing_answer import Row, citations, show_answer
from public_api.openai.messages import RequestMessage
from public_api.services import start_turn

MAX_LISTED: Final = 200
MAX_QUESTION_CHARS: Final = 100_000
MAX_NAME_CHARS: Final = 200
REPORT_SECONDS: Final = 1.0
"""The pause between two reports on a growing answer: a client only shows them."""


async def list_assistants(principal: Principal, arguments: Json, report: Report) -> ToolAnswer:
    """List what the caller sees, newest first."""
    return await in_thread(_list, principal)


def _list(principal: Principal) -> ToolAnswer:
    rows = Assistant.objects.visible_to(principal).order_by("-created_at", "-id")
    assistants = [
        {"slug": row.slug, "name": row.name, "description": row.description}
        for row in rows.only("slug", "name", "description")[:MAX_LISTED]
    ]
    lines = [f"- {each['slug']}: {one_line(each['name'])}" for each in assistants]
    text = "\n".join(lines) or "There are no assistants that you may ask."
    return ToolAnswer(text, {"assistants": assistants})


async def ask_assistant(principal: Principal, arguments: Json, report: Report) -> ToolAnswer:
    """Ask, and return the whole answer. Raises what `start_turn` and `follow_turn` raise."""
    turn = await in_thread(_ask, principal, arguments)
    seen, progress = Transcript(), _Progress(report)
    async with aclosing(follow_turn(turn, is_kept=turn.chat_id is not None)) as events:
        async for event in events:
            if event is not None:
                apply_event(seen, event)
            await progress.tell(event)
    return _answer(turn, seen.messages)


def _ask(principal: Principal, arguments: Json) -> Turn:
    assistant = assistant_named(principal, arguments["assistant"])
    return start_turn(
        principal,
        messages=[RequestMessage("user", (arguments["question"],))],
        options=CallOptions(is_unattended=True),
        assistant=assistant,
        chat_id=arguments.get("chat_id", ""),
    )


@dataclass(slots=True)
class _Progress:
    """Tells what an answer is at: which tool is called, how much is written; at each heartbeat, too,
    so that clients go on waiting."""

    report: Report
    chars: int = 0
    told_at: float = 0.0

    async def tell(self, event: Event | None) -> None:
        match event:
            case ToolStarted(name=name):
                await self._say(f"Calling {name}")
            case TextDelta(text=text):
                self.chars += len(text)
                if time.monotonic() - self.told_at >= REPORT_SECONDS:
                    await self._say(f"Writing, {self.chars:,} characters so far")
            case None:
                await self._say("Waiting for the answer")

    async def _say(self, words: str) -> None:
        self.told_at = time.monotonic()
        await self.report(words)


def _answer(turn: Turn, messages: Sequence[Row]) -> ToolAnswer:
    answer = show_answer(messages, {}, client_tools=frozenset())
    sources = {
        each.passage["number"]: {
            "number": each.passage["number"],
            "document_id": each.passage["document"]["id"],
            "document": each.passage["document"]["name"],
            "path": each.passage["document"]["path"],
            **{name: each.passage[name] for name in ("page", "start", "end")},
        }
        for each in citations(messages)
    }
    listed = [_write_source(each) for _, each in sorted(sources.items())]
    text = "\n".join([answer.text, *(["", "Sources:", *listed] if listed else [])])
    values: Json = {"answer": answer.text, "sources": [each for _, each in sorted(sources.items())]}
    if turn.chat_id is not None:
        values["chat_id"] = str(turn.chat_id)
        text += f"\n\n(chat_id {turn.chat_id})"
    return ToolAnswer(text, values)


def _write_source(source: Json) -> str:
    page = "" if source["page"] is None else f", page {source['page']}"
    place = f"document_id {source['document_id']}, {source['start']} to {source['end']}"
    return f"[{source['number']}] {one_line(source['path'] or source['document'])}{page} ({place})"


ASSISTANT_TOOLS: Final = (
    McpTool(
        name="list_assistants",
        title="List assistants",
        description="Lists the assistants that can be asked.",
        parameters=object_of(),
        returns=object_of(
            ("assistants",),
            assistants={
                "type": "array",
                "items": object_of(
                    ("slug", "name", "description"),
                    slug={"type": "string"},
                    name={"type": "string"},
                    description={"type": "string"},
                ),
            },
        ),
        run=list_assistants,
    ),
    McpTool(
        name="ask_assistant",
        title="Ask an assistant",
        description=(
            "Asks an assistant a question, which it answers with its own documents and tools. It "
            "knows nothing of this conversation: say all that it needs to know."
        ),
        parameters=object_of(
            ("assistant", "question"),
            assistant={
                "type": "string",
                "description": "The assistant's slug, as list_assistants tells it, or its id.",
                "minLength": 1,
                "maxLength": MAX_NAME_CHARS,
            },
            question={"type": "string", "minLength": 1, "maxLength": MAX_QUESTION_CHARS},
            chat_id={
                "type": "string",
                "description": (
                    f"`{NEW_CHAT}` keeps the answer in a chat, whose id it tells; that id goes on with "
                    "the chat. Without it nothing is stored."
                ),
                "minLength": 1,
                "maxLength": MAX_NAME_CHARS,
            },
        ),
        returns=object_of(
            ("answer", "sources"),
            answer={"type": "string"},
            sources={
                "type": "array",
                "items": object_of(
                    ("number", "document_id", "document", "path", "page", "start", "end"),
                    number={"type": "integer"},
                    document_id={"type": "string"},
                    document={"type": "string"},
                    path={"type": ["string", "null"]},
                    page={"type": ["integer", "null"]},
                    start={"type": "integer"},
                    end={"type": "integer"},
                ),
            },
            chat_id={"type": "string"},
        ),
        run=ask_assistant,
        reads_only=False,
    ),
)

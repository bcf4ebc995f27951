"""Rows of a history by short names, and what a model is told of them."""

from datetime import UTC, datetime

from engine.history.normaliser import HistoryProfile
from engine.messages import Attachment, Author, Message
from engine.tests.history.cases import normalise
from engine.tool_calls import ToolCall

AT = datetime(2024, 3, 21, 3, 14, 1, tzinfo=UTC)
SENT = "[Sent at 2024-03-21 03:14:01]\n"
ADA, BO = Author("a1", "Ada", "writes code"), Author("b2", "Bo", "knows the law")
WARNING = (
    "[Warning]The previous message has been replied to by another assistant, whose name is 'Bo' "
    "and the description is 'knows the law'"
)
CAT = Attachment("cat.png", "image/png", "https://files.example/cat.png")
NOTES = Attachment("notes.md", "text/markdown", "https://files.example/n", "# Notes")
CAT_PART = {"type": "image_url", "image_url": {"url": CAT.url, "detail": "auto"}}


def human(content, at=None):
    return Message("human", content, at)


def answer(content, author=ADA, at=None):
    return Message("assistant", content, at, author)


def system(content):
    return Message("system", content)


def called(call_id, reply_id=None, text="", name="f", arguments="{}"):
    return Message("tool_call", text, tool_call=ToolCall(call_id, name, arguments, reply_id))


def result(call_id, content="ok"):
    return Message("tool", content, tool_call=ToolCall(call_id, "f", ""))


def knowledge(content):
    return Message("knowledge", content)


def attached(file, content=""):
    return Message("file", content, file=file)


def said(role, content):
    return {"role": role, "content": content}


def calling(*ids, text=""):
    function = {"name": "f", "arguments": "{}"}
    entries = [{"id": i, "type": "function", "function": dict(function)} for i in ids]
    return said("assistant", text) | {"tool_calls": entries}


def told(call_id, content="ok"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def text(content):
    return {"type": "text", "text": content}


def run(*messages, prompts=(), volatile=(), cut=False, responding="a1", **profile):
    return normalise(
        messages,
        system_prompts=prompts,
        volatile=volatile,
        profile=HistoryProfile(**profile),
        responding_assistant_id=responding,
        history_is_cut=cut,
    )

"""Turn the messages of a chat into the messages that a model provider understands.

A few ordered passes, each from list to list; none reads a clock, a database or a setting, and
none changes what it is given. What was said is rendered first (`render_history`), and prompts are placed
once they are known (`place_prompts`). Cases: engine/tests/cases/history.json.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, TypedDict

from engine.history.call_pairs import pair_calls
from engine.history.neighbours import content_of, merge_neighbours, text_part
from engine.history.prompt import (
    is_empty,
    join_texts,
    knowledge_prompt,
    mark_untrusted,
    one_line,
)
from engine.history.sent_at import sent_at, stamp, time_zone
from engine.messages import (
    ASKING_ROLES,
    SYSTEM_ROLES,
    AssistantMessage,
    Attachment,
    Message,
    MessageRole,
    Part,
    ProviderMessage,
    RoleFacts,
    SystemMessage,
    UserMessage,
    facts_of,
    is_asked,
    mark_produced,
)
from engine.provider.model import SystemPosition
from engine.provider_fields import with_fields, without_idle_fields
from engine.tool_calls import chat_form

GONE: Final = "[a file that was deleted]"
"""Stands for a file that was sent: without it, a model would answer a question about it from nothing."""


class NoHumanMessage(Exception):
    """There is no human message to answer."""


@dataclass(frozen=True, slots=True)
class HistoryProfile:
    """What the normaliser must know of the answering model and of the user.

    Between marks made of `mark` stands what strangers wrote; if it is empty there are none.
    """

    system_position: SystemPosition = "first"
    vision: bool = True
    time_zone: str = "UTC"
    mark: str = ""


@dataclass(frozen=True, slots=True)
class RenderedHistory:
    """What was said, as the provider reads it.

    `opening` are the texts of the system messages that open the chat, `knowledge` the last that was given:
    both become prompts.
    """

    opening: Sequence[str]
    knowledge: Sequence[str]
    messages: Sequence[ProviderMessage]


def render_history(
    messages: Sequence[Message],
    *,
    profile: HistoryProfile,
    responding_assistant_id: str | None,
    history_is_cut: bool = False,
) -> RenderedHistory:
    """Return what was said in the chat `messages`, oldest first.

    `history_is_cut` says that messages are missing at the front: then the system messages that open the chat
    are not among `messages`, and the caller has them in its prompts. Takes time linear in the messages.
    Raises NoHumanMessage. The passes, in this order:

    1. Take from the rows what becomes prompt: opening system messages, the last knowledge.
       First, because it depends on where the rows stand among each other, empty ones included.
    2. Pair tool calls with results, while each row still knows its reply.
    3. Render each row on its own, and drop the empty ones.
    4. Merge neighbours: only now is it known who stands next to whom. Before placing, so that
       "the last user message" is the whole of what was asked last.
    5. Leave out what providers sent with answers where no tool was called: it belongs to exchanges,
       which are known by now.
    """
    if not any(message.role in ASKING_ROLES for message in messages):
        raise NoHumanMessage
    opening = 0 if history_is_cut else _count_opening(messages)
    paired = pair_calls(messages[opening:])
    merged = merge_neighbours(_render(paired, profile, responding_assistant_id))
    if not any(is_asked(message) for message in merged):
        raise NoHumanMessage
    return RenderedHistory(
        opening=[m.content for m in messages[:opening]],
        knowledge=_last_knowledge(messages, profile.mark),
        messages=without_idle_fields(merged),
    )


def place_prompts(
    history: RenderedHistory,
    *,
    system_prompts: Sequence[str],
    volatile: Sequence[str],
    position: SystemPosition,
) -> list[ProviderMessage]:
    """Return the request's messages: the history with its prompts where this model wants them.

    `system_prompts` are stable, `volatile` ones vary with time; both stay in order, without empty ones.
    Neighbours are merged again, since placing makes new ones.
    """
    stable = join_texts([*system_prompts, *history.opening])
    varying = join_texts([*volatile, *history.knowledge])
    return merge_neighbours(_place(history.messages, stable, varying, position))


def _count_opening(messages: Sequence[Message]) -> int:
    """Count the system messages in front of everything else."""
    for position, message in enumerate(messages):
        if message.role not in SYSTEM_ROLES:
            return position
    return len(messages)


def _last_knowledge(messages: Sequence[Message], mark: str) -> list[str]:
    """Return what was found for the last question: one text, or none if nothing was searched."""
    for message in reversed(messages):
        if message.role == MessageRole.KNOWLEDGE:
            return [knowledge_prompt(message.content, mark)]
        if message.role in ASKING_ROLES:
            break
    return []


def _render(
    messages: Sequence[Message], profile: HistoryProfile, responding_assistant_id: str | None
) -> list[ProviderMessage]:
    zone = time_zone(profile.time_zone)
    rendered: list[ProviderMessage] = []
    for message in messages:
        facts = facts_of(message.role)
        if facts.speaker and message.role != MessageRole.TOOL_CALL:
            if not is_empty(message.content):
                rendered += _render_words(message, facts, zone, responding_assistant_id)
            continue
        match message.role:
            case MessageRole.FILE:
                rendered += _render_file(message, profile)
            case MessageRole.TOOL_CALL:
                _add_call(rendered, message)
            case MessageRole.TOOL:
                rendered.append(_render_result(message, profile.mark))
            case _:
                pass  # of knowledge the last one is volatile, older ones are not repeated
    return rendered


def _render_words(
    message: Message, facts: RoleFacts, zone: tzinfo, responding_assistant_id: str | None
) -> Sequence[ProviderMessage]:
    """Render what somebody says, as the table of roles tells who does."""
    prefix = sent_at(message.created_at, zone) if facts.is_stamped else ""
    if facts.speaker == "assistant":
        content = prefix + message.content
        return _render_answer(message, content, zone, responding_assistant_id)
    if facts.speaker == "system":
        return (_system(prefix + message.content),)
    question: UserMessage = {
        "role": "user",
        "content": prefix + collapse_newlines(message.content),
    }
    if message.name:
        question["name"] = message.name
    return (question,)


def _render_answer(
    message: Message, content: str, zone: tzinfo, responding_assistant_id: str | None
) -> list[ProviderMessage]:
    answer: AssistantMessage = {"role": "assistant", "content": content}
    if message.name:
        answer["name"] = message.name
    answer = with_fields(answer, message.provider_fields)
    author = message.assistant
    if author is None or author.id == responding_assistant_id:
        return [answer]
    warning = (
        "[Warning]The previous message has been replied to by another assistant, whose name is "
        f"'{author.name}' and the description is '{author.description}'"
    )
    if message.created_at is not None:
        warning += f", replied at {stamp(message.created_at, zone)}"
    return [_system(warning), answer]


def _render_file(message: Message, profile: HistoryProfile) -> list[ProviderMessage]:
    """Render the file, and the words sent along with it if there are any."""
    if message.file is not None and message.tool_call is not None:
        return [produced_message(message.file, vision=profile.vision, mark=profile.mark)]
    parts: list[Part] = []
    if message.file is not None:
        parts.append(_file_part(message.file, vision=profile.vision, mark=profile.mark))
    elif message.tool_call is None:
        parts.append(text_part(GONE))
    if not is_empty(message.content):
        parts.append(text_part(message.content))
    return [{"role": "user", "content": content_of(parts), **_name_field(message)}] if parts else []


class _NameField(TypedDict, total=False):
    name: str


def _name_field(message: Message) -> _NameField:
    return {"name": message.name} if message.name else {}


def produced_message(file: Attachment, *, vision: bool, mark: str = "") -> UserMessage:
    """Return what a tool made. A document is only named: its text would have no limit."""
    shown = file if file.is_image else Attachment(file.name, file.mime_type)
    return mark_produced(content_of([_file_part(shown, vision=vision, mark=mark)]))


def _file_part(file: Attachment, *, vision: bool, mark: str) -> Part:
    if file.is_image and vision and file.url:
        return {"type": "image_url", "image_url": {"url": file.url, "detail": "auto"}}
    name = one_line(file.name)
    shown = f"[image: {name}]" if file.is_image else f"[file: {name}]"
    return text_part(mark_untrusted(join_texts([shown, file.text or ""]), mark))


def _add_call(rendered: list[ProviderMessage], message: Message) -> None:
    """Append a call, or add it to the calls right before it: those are of the same reply."""
    if message.tool_call is None:
        return
    text = "" if is_empty(message.content) else message.content
    calling: AssistantMessage = {"role": "assistant", "content": text, "tool_calls": []}
    last = rendered[-1] if rendered else None
    if last and last["role"] == "assistant" and "tool_calls" in last:
        calling = last
        rendered.pop()
    calling["tool_calls"].append(chat_form(message.tool_call))
    calling["content"] = calling["content"] or text
    rendered.append(with_fields(calling, message.provider_fields))


def _render_result(message: Message, mark: str) -> ProviderMessage:
    call_id = message.tool_call.id if message.tool_call else ""
    content = mark_untrusted(message.content, mark)
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _place(
    messages: Sequence[ProviderMessage], stable: str, varying: str, position: SystemPosition
) -> list[ProviderMessage]:
    """Put the prompts where this model wants them. Empty prompts make no message.

    Except for models that allow one system message only, what varies never stands in front of
    what does not, so that the provider's prefix cache serves all but the last exchange.
    """
    both = join_texts([stable, varying])
    match position:
        case "first":
            last = max(n for n, message in enumerate(messages) if is_asked(message))
            asked = [*_prompt(varying), *messages[last:]]
            return [*_prompt(stable), *messages[:last], *asked]
        case "last":
            return [*messages, *_prompt(both)]
        case "only_first":
            return [*_prompt(both), *_fold_system_messages(messages)]


def _fold_system_messages(messages: Iterable[ProviderMessage]) -> list[ProviderMessage]:
    """Make system messages words of the next user message, or of one at the end."""
    folded: list[ProviderMessage] = []
    waiting: list[ProviderMessage] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append({"role": "user", "content": f"[System] {message['content']}"})
            continue
        if message["role"] == "user":
            folded += waiting
            waiting = []
        folded.append(message)
    return folded + waiting


def _prompt(text: str) -> list[SystemMessage]:
    return [_system(text)] if text else []


def _system(text: str) -> SystemMessage:
    return {"role": "system", "content": text}


# CommonMark's fences: https://spec.commonmark.org/0.31.2/#fenced-code-blocks. Those inside block
# quotes and list items are not recognised: they do not start a line within three spaces.
_OPENING_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_NEWLINES = re.compile(r"\n{2,}")


def collapse_newlines(text: str) -> str:
    r"""Return `text` with `\n` for `\r\n` and one newline for each run of them outside fenced code.

    An unclosed fence runs to the end.
    """
    text = text.replace("\r\n", "\n")
    if "\n\n" not in text:
        return text
    if "```" not in text and "~~~" not in text:
        return _NEWLINES.sub("\n", text)
    return _collapse_outside_fences(text)


def _collapse_outside_fences(text: str) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    fence = ""
    for number, line in enumerate(lines):
        if fence:
            if _closes(line, fence):
                fence = ""
        elif match := _OPENING_FENCE.match(line):
            fence = match[1]
        elif not line and 0 < number < len(lines) - 1:
            continue  # an empty line between two others is a newline too many
        kept.append(line)
    return "\n".join(kept)


def _closes(line: str, fence: str) -> bool:
    match = _CLOSING_FENCE.match(line)
    return match is not None and match[1].startswith(fence)

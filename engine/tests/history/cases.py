"""Runs cases of the history normaliser: `python -m engine.tests.history.cases FILE`.

The head of cases/history.json explains the form. Ends with `N passed, N failed`; the exit code
is 1 when any failed.
"""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.history.normaliser import HistoryProfile, place_prompts, render_history
from engine.messages import Attachment, Author, Message, ProviderMessage
from engine.tool_calls import ToolCall

CASES = Path(__file__).parents[1] / "cases" / "history.json"


def normalise(
    messages: Sequence[Message],
    *,
    system_prompts: Sequence[str],
    volatile: Sequence[str],
    profile: HistoryProfile,
    responding_assistant_id: str | None,
    history_is_cut: bool = False,
) -> list[ProviderMessage]:
    """Return the request's messages: the history, then its prompts."""
    history = render_history(
        messages,
        profile=profile,
        responding_assistant_id=responding_assistant_id,
        history_is_cut=history_is_cut,
    )
    return place_prompts(
        history, system_prompts=system_prompts, volatile=volatile, position=profile.system_position
    )


def load_cases(path: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


def run_case(given: dict[str, Any]) -> list[ProviderMessage] | dict[str, str]:
    """What the normaliser makes of a case's input: messages, or the name of its error."""
    try:
        return normalise(
            [_message(row) for row in given["messages"]],
            system_prompts=given.get("system_prompts") or [],
            volatile=given.get("volatile") or [],
            profile=HistoryProfile(**(given.get("profile") or {})),
            responding_assistant_id=given.get("responding_assistant_id"),
            history_is_cut=given.get("history_is_cut", False),
        )
    except Exception as error:  # noqa: BLE001  (a case names the error it expects)
        return {"error": type(error).__name__}


def _message(row: dict[str, Any]) -> Message:
    assistant, call, file = row.get("assistant"), row.get("tool_call"), row.get("file")
    return Message(
        role=row["role"],
        content=row.get("content") or "",
        created_at=_time(row.get("created_at")),
        assistant=Author(**assistant) if assistant else None,
        tool_call=ToolCall(**({"arguments": ""} | call)) if call else None,
        file=Attachment(**file) if file else None,
    )


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m engine.tests.history.cases FILE\n")
        return 2
    cases = load_cases(Path(arguments[0]))
    failed = 0
    for case in cases:
        made = run_case(case["input"])
        if made != case["expected"]:
            failed += 1
            sys.stdout.write(f"FAILED {case['name']}\n  expected {_shown(case['expected'])}\n")
            sys.stdout.write(f"  made     {_shown(made)}\n")
    sys.stdout.write(f"{len(cases) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

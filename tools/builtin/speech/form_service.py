"""Ask an operator's speech service, which takes a form and answers with an address of the audio.

The form is ChatTTS-ui's (https://github.com/jianchang512/ChatTTS-ui): the text and the fields of
AMBER_TTS_FORM. The answer is JSON with `url`, or with `audio_files: [{"url"}]`; ChatTTS-ui reports
failures with a `code` that is not 0. The audio is fetched from the service's own host and port, or
from any address that the installation's policy allows.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urljoin

from amber.lib.egress import FetchError, FetchLimits, UnsafeAddress, fetch
from amber.lib.egress.operator_hosts import policy_trusting
from tools.outgoing.operator_service import ask, json_object, unavailable
from tools.outgoing.requests import ServiceRequest
from tools.protocol import ToolContext

WHAT: Final = "The speech service"
ANSWER_LIMITS: Final = FetchLimits(total_seconds=120, max_bytes=1_000_000)
"""Longer than any tool call, so that the toolbox's deadline is the one that counts."""


async def speak(
    url: str, text: str, *, form: Mapping[str, str], max_bytes: int, context: ToolContext
) -> bytes:
    """Return the audio in whatever format the service makes. Two requests. Raises ToolError."""
    answer = await ask(
        ServiceRequest(
            "POST",
            url,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode({"text": text, **form}).encode(),
        ),
        what=WHAT,
        trusting=url,
        context=context,
        limits=ANSWER_LIMITS,
    )
    audio_url = _audio_url(url, json_object(answer, what=WHAT))
    return await _fetch_audio(audio_url, trusting=url, max_bytes=max_bytes)


def _audio_url(base_url: str, answer: Mapping[str, Any]) -> str:
    if answer.get("code") not in (None, 0, "0"):
        raise unavailable(WHAT, reason=f"it said {str(answer.get('msg'))[:200]!r}")
    files = answer.get("audio_files")
    first = files[0] if isinstance(files, list) and files else None
    found = answer.get("url") or (first.get("url") if isinstance(first, Mapping) else None)
    if not isinstance(found, str):
        raise unavailable(WHAT, reason="the answer names no url")
    try:
        return urljoin(base_url, found)
    except ValueError:
        raise unavailable(WHAT, reason="the answer's url is none") from None


async def _fetch_audio(audio_url: str, *, trusting: str, max_bytes: int) -> bytes:
    try:
        answer = await fetch(
            "GET",
            audio_url,
            policy=policy_trusting(trusting),
            limits=FetchLimits(max_bytes=max_bytes),
        )
    except (UnsafeAddress, FetchError) as error:
        raise unavailable(WHAT, reason=f"the audio: {error.message}") from None
    if not answer.is_success:
        raise unavailable(WHAT, reason=f"the audio: status {answer.status}")
    return answer.body

"""Turn what an HTTP service answered into a call's result: text for the model, or a file.

A status other than 2xx is a ServiceError with the status and the beginning of what the service
said; the model often knows what to do with that. The tool's key is masked in every text.
"""

import http
import mimetypes
import re
from collections.abc import Sequence
from typing import Final

from amber.lib.egress import Response
from amber.lib.shortening import shorten
from tools.outgoing.answers import mask_secrets
from tools.outgoing.requests import ServiceError
from tools.protocol import ProducedFile, ToolOutput

MAX_ERROR_CHARS: Final = 1_000

_TEXT_TYPE = re.compile(
    r"text/.*|application/(json|xml|yaml|x-yaml|javascript|graphql|x-ndjson|x-www-form-urlencoded)"
    r"|.*\+(json|xml|yaml)|image/svg\+xml|multipart/.*"
)
_FILE_NAME = re.compile(r'filename="?([^";\r\n]{1,200})"?', re.IGNORECASE)


def output_of(answer: Response, *, function: str, secrets: Sequence[str] = ()) -> ToolOutput:
    """Return the answer as a result. Raises ServiceError for a status other than 2xx."""
    if not answer.is_success:
        raise ServiceError(_failure(answer, secrets), status=answer.status)
    if not answer.body:
        return ToolOutput(f"Done: the service answered {_status(answer)} without content.")
    if _is_text(answer):
        return ToolOutput(mask_secrets(answer.text(), secrets))
    file = ProducedFile(_file_name(answer, function), answer.mime_type, answer.body)
    return ToolOutput("", files=(file,))


def _failure(answer: Response, secrets: Sequence[str]) -> str:
    said = answer.text().strip() if answer.body and _is_text(answer) else ""
    said = shorten(mask_secrets(said, secrets), MAX_ERROR_CHARS)
    return f"The service answered {_status(answer)}{f': {said}' if said else '.'}"


def _status(answer: Response) -> str:
    try:
        return f"{answer.status} {http.HTTPStatus(answer.status).phrase}"
    except ValueError:
        return str(answer.status)


def _is_text(answer: Response) -> bool:
    """Whether the answer is text: by its type, or without one by whether it reads as UTF-8."""
    if answer.mime_type:
        return bool(_TEXT_TYPE.fullmatch(answer.mime_type))
    try:
        return "\0" not in answer.body.decode()
    except UnicodeDecodeError:
        return False


def _file_name(answer: Response, function: str) -> str:
    """Name the file as the service does, else after the function; `result_files` cleans it."""
    named = _FILE_NAME.search(answer.headers.get("content-disposition", ""))
    return named[1] if named else function + (mimetypes.guess_extension(answer.mime_type) or "")

"""Turn an MCP tool's result into text for the model and files for the user.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result: a list of blocks
(text, images, audio, resources, links) and sometimes structured content beside it. Texts are
joined; all else becomes files. Structured content is added only if no text repeats it.

Pure; names and types of files are a stranger's words. What cannot be read is named in the text.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from amber.lib.json_text import numbers
from tools.protocol import ProducedFile, ToolOutput

Part = str | ProducedFile

ENDINGS: Final[Mapping[str, str]] = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
"""Written out, as Python's `mimetypes` depends on what the machine has in /etc."""


def output_of(result: Mapping[str, Any], function: str) -> ToolOutput:
    """Read a CallToolResult, given as JSON; `function` names files that have no name."""
    blocks: Sequence[Mapping[str, Any]] = result.get("content") or []
    parts = [_part(block, f"{function}-{n}") for n, block in enumerate(blocks, start=1)]
    texts = [part for part in parts if isinstance(part, str) and part]
    structured = result.get("structuredContent")
    if structured is not None and not _is_said(structured, blocks):
        texts.append(numbers.write(structured).decode())
    files = tuple(part for part in parts if isinstance(part, ProducedFile))
    return ToolOutput("\n".join(texts), files)


def _is_said(structured: Any, blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a text repeats the structured content, as servers should make it do.

    SDKs wrap a plain value as {"result": …}, whose text is then the value alone.
    """
    texts = [block["text"] for block in blocks if block.get("type") == "text"]
    if isinstance(structured, Mapping) and structured.keys() == {"result"}:
        return bool(texts)
    return any(_json(text) == structured for text in texts)


def _json(text: str) -> Any:
    """Parse the text; None if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _part(block: Mapping[str, Any], name: str) -> Part:
    kind = block.get("type")
    if kind == "text":
        return str(block["text"])
    if kind in ("image", "audio"):
        return _file(name, block["mimeType"], block["data"])
    if kind == "resource":
        return _resource(block["resource"], name)
    if kind == "resource_link":
        said = block.get("description")
        return f"[{block['name']}]({block['uri']}){f': {said}' if said else ''}"
    return f"[A part of the result is of a kind that cannot be shown: {kind}]"


def _resource(resource: Mapping[str, Any], name: str) -> Part:
    uri = str(resource["uri"])
    if "text" in resource:
        return f"{uri}:\n{resource['text']}"
    own_name = urlsplit(uri).path.rpartition("/")[2] if "://" in uri else ""
    mime_type = resource.get("mimeType") or "application/octet-stream"
    return _file(own_name or name, mime_type, resource["blob"])


def _file(name: str, mime_type: str, data: str) -> Part:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{name} ({mime_type}) could not be read: it is not base64]"
    if "." not in name:
        name += ENDINGS.get(mime_type.partition(";")[0].strip().lower(), "")
    return ProducedFile(name=name, mime_type=mime_type, content=content)

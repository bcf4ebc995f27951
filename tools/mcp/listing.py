"""Turn what an MCP server lists into a tool's functions, and warnings for the tool's owner.

Names stay as the server wrote them; the toolbox makes them fit for models. A function that cannot
be used is left out with the reason, and the others stay. Hints are a stranger's words: read-only
and idempotent functions may be called again after a crash, destructive ones are pointed out, and
whether a person must approve stays the owner's choice (`options.ask_first`).

Pure. Passes on no more than a model can be offered.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from tools.calling.schema_check import schema_faults
from tools.mcp.terms import ServerListing
from tools.source import DiscoveryResult

MAX_FUNCTIONS: Final = 128
"""As many as one request to a model may offer (`engine.tools.MAX_OFFERED_TOOLS`)."""
MAX_LOOKED_AT: Final = 512
"""Functions that cannot be used cost 10 ms each to check, too."""

MAX_NAME_CHARS: Final = 200
MAX_DESCRIPTION_CHARS: Final = 4_000
MAX_INSTRUCTIONS_CHARS: Final = 4_000
MAX_WARNINGS: Final = 50


def discover_functions(listing: ServerListing, url: str) -> DiscoveryResult:
    """Make functions of the listing; `data` keeps the protocol's version for later calls."""
    functions: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    is_cut = listing.is_cut or len(listing.tools) > MAX_LOOKED_AT
    for tool in listing.tools[:MAX_LOOKED_AT]:
        if len(functions) == MAX_FUNCTIONS:
            is_cut = True
            break
        _add(tool, functions, warnings)
    if is_cut:
        warnings.append(f"The server lists more tools than the {MAX_FUNCTIONS} that are kept.")
    kept = list(functions.values())
    if not kept:
        warnings.append("The server lists no tool that can be used.")
    more = len(warnings) - MAX_WARNINGS
    if more > 0:
        warnings[MAX_WARNINGS:] = [f"And {more} more of this kind."]
    return DiscoveryResult(
        name=listing.name.strip()[:MAX_NAME_CHARS] or urlsplit(url).hostname or "MCP",
        description=listing.instructions.strip()[:MAX_INSTRUCTIONS_CHARS],
        data={"protocol_version": listing.protocol_version, "functions": kept},
        warnings=warnings,
    )


def _add(
    tool: Mapping[str, Any], functions: dict[str, dict[str, Any]], warnings: list[str]
) -> None:
    name = tool["name"]
    shown = name[:MAX_NAME_CHARS]
    if not name.strip() or len(name) > MAX_NAME_CHARS:
        warnings.append(f"{shown!r} was left out: a name has 1 to {MAX_NAME_CHARS} characters.")
        return
    if name in functions:
        warnings.append(f"{shown} is listed twice; the second one was left out.")
        return
    faults = schema_faults(tool["inputSchema"])
    if faults:
        place, text = faults[0]
        where = f"inputSchema.{place}" if place else "inputSchema"
        warnings.append(f"{shown} was left out: {where[:300]}: {text}")
        return
    if (tool.get("execution") or {}).get("taskSupport") == "required":
        warnings.append(f"{shown} was left out: it runs as a task, and Amber waits for answers.")
        return
    hints = tool.get("annotations") or {}
    if hints.get("destructiveHint") is True and not hints.get("readOnlyHint"):
        warnings.append(
            f"{shown} can destroy or overwrite data, its server says. Add it to `ask_first` in the "
            "options if a person must approve each call."
        )
    functions[name] = _function(tool, hints)


def _function(tool: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    said = (tool.get("description") or tool.get("title") or tool["name"]).strip()
    function = {
        "name": tool["name"],
        "description": said[:MAX_DESCRIPTION_CHARS],
        "parameters": {k: v for k, v in tool["inputSchema"].items() if k != "$schema"},
    }
    if hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True:
        function["idempotent"] = True
    if hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True:
        function["read_only"] = True
    return function

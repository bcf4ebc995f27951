"""Make a stored tool callable: build its connection, with the key, and its functions.

A tool's key is decrypted here only. Nothing is sent.
"""

from collections.abc import Collection, Sequence

from amber.lib.errors import Unavailable
from amber.lib.secrets import DecryptError, SecretKeyError, decrypt_column
from tools.calling.recorded import EVERY_FUNCTION, RecordedTool
from tools.connections.sources import source_of
from tools.connections.tokens import renewal_of, uses_oauth
from tools.models import Tool
from tools.protocol import OfferedTool
from tools.source import Connection


def connection_of(tool: Tool) -> Connection:
    """Return the tool's connection. Raises Unavailable if the key cannot be decrypted."""
    renew = renewal_of(tool) if uses_oauth(tool) else None
    return Connection(
        url=tool.discovery_url,
        api_key="" if renew else decrypt_key(tool),
        options=tool.options,
        tool_id=tool.pk,
        name=tool.name,
        renew=renew,
    )


def decrypt_key(tool: Tool) -> str:
    """Return the tool's key, which is a client's secret where it uses OAuth. Raises Unavailable."""
    try:
        return decrypt_column(tool, "api_key")
    except (DecryptError, SecretKeyError) as error:
        raise Unavailable("The tool's key cannot be read. Enter it again.") from error


def functions_of(tool: Tool, *, chosen: Collection[str] = ()) -> Sequence[OfferedTool]:
    """Return the tool's functions in the order of its data. Raises Unavailable.

    If any are `chosen`, only those.
    """
    asked = frozenset(tool.options.get("ask_first", ()))
    trusted = frozenset(tool.options.get("trusted", ()))
    return [
        RecordedTool.of(
            function,
            tool.pk,
            asks_first=function.asks_first or bool({function.spec.name, EVERY_FUNCTION} & asked),
            is_harmless=bool({function.spec.name, EVERY_FUNCTION} & trusted),
        )
        for function in source_of(tool.kind).functions(connection_of(tool), tool.data)
        if not chosen or function.spec.name in chosen
    ]


def function_names(tool: Tool) -> list[str]:
    """Return the names of the tool's functions, in the order of its data."""
    return [str(each["name"]) for each in tool.data.get("functions", ())]

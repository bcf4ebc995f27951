"""The built-in tool `current_time` tells models, which have no clock, what time it is."""

from typing import Annotated
from zoneinfo import ZoneInfo

from tools.calling.registry import register_tool
from tools.protocol import ToolContext, ToolError


@register_tool(idempotent=True, harmless=True, own_words=True)
def current_time(
    context: ToolContext,
    time_zone: Annotated[
        str, "IANA name such as Europe/Berlin; the user's own zone when left out"
    ] = "",
) -> str:
    """Says the current date, weekday, time and time zone."""
    zone = _zone(time_zone)
    if zone is None and time_zone:
        raise ToolError(
            f"{time_zone!r} is no time zone. Use an IANA name such as Asia/Shanghai or UTC."
        )
    zone = zone or _zone(context.time_zone) or ZoneInfo("UTC")
    now = context.clock().astimezone(zone)
    offset = now.strftime("%z")
    return f"{now:%Y-%m-%d %H:%M:%S} ({now:%A}), {zone.key}, UTC{offset[:3]}:{offset[3:5]}"


def _zone(name: str) -> ZoneInfo | None:
    """Return the zone of this name, or None.

    ZoneInfo looks for a file of that name, so a wrong name can also raise what `open` raises.
    """
    try:
        return ZoneInfo(name.strip())
    except (KeyError, ValueError, OSError):
        return None

"""Registers the tools of `tests.e2e.kit.settings`; halts an ingest worker that was told to."""

import asyncio
from typing import Annotated

from django.apps import AppConfig

from tests.e2e.kit import halting
from tools.calling.registry import register_tool


class EndToEndConfig(AppConfig):
    name = "tests.e2e.kit"

    def ready(self) -> None:
        register_tool(wait_long)
        register_tool(idempotent=True)(wait_safely)
        halting.install()


async def wait_long(seconds: Annotated[float, "how long"]) -> str:
    """Wait, with an effect that must not happen twice."""
    await asyncio.sleep(seconds)
    return "waited"


async def wait_safely(seconds: Annotated[float, "how long"]) -> str:
    """Wait; doing it twice does no harm."""
    await asyncio.sleep(seconds)
    return "waited"

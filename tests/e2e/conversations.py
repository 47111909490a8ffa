"""The official Python client on a server of its own, in both eras and over both transports."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from house import STDIO, House
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ResourceLink, TextContent

ERAS = {"handshake": "legacy", "stateless": "auto"}


@asynccontextmanager
async def conversation(house: House, era: str, transport: str, *, seconds: float = 120) -> AsyncIterator[Client]:
    """Open one client, whose calls may take so long."""
    if transport == "stdio":
        target: Any = StdioServerParameters(
            command=sys.executable, args=list(STDIO), env=house.environment, cwd=str(house.workspace)
        )
        async with Client(target, mode=ERAS[era], read_timeout_seconds=seconds) as client:
            yield client
    else:
        with house.listening() as url:
            async with Client(url, mode=ERAS[era], read_timeout_seconds=seconds) as client:
                yield client


def words(result: Any) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def links(result: Any) -> list[str]:
    return [block.name for block in result.content if isinstance(block, ResourceLink)]

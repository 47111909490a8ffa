"""One running server for each fault: over stdio, and over HTTP with the dashboard's API beside it."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import HttpServer, Place, Server, running

FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\n'


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Start a server; all of them end with the test, and leave no process."""
    async with AsyncExitStack() as stack:
        places: list[Place] = []

        async def starting(transport: str, toml: str = "", **variables: str) -> Server:
            folder = tmp_path / f"place-{len(places)}"
            folder.mkdir()
            places.append(Place(folder, toml, **variables))
            return await stack.enter_async_context(running(transport, places[-1]))

        yield starting


@pytest.fixture
async def server(start: Callable[..., Any], transport: str) -> Server:
    """A server with the faulty adapter, over either transport."""
    made: Server = await start(transport, FAULTY)
    return made


@pytest.fixture
async def web(start: Callable[..., Any]) -> HttpServer:
    """A server with the faulty adapter, over HTTP."""
    made: HttpServer = await start("http", FAULTY)
    return made

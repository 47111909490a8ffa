"""The application inside the command line's own process, as a local caller."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from metaforge import __version__
from metaforge.app import App
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust

T = TypeVar("T")

CALLER = Caller(actor_id="local", trust=Trust.LOCAL, client_name="metaforge-cli", client_version=__version__)


@asynccontextmanager
async def opened() -> AsyncIterator[App]:
    """Make the application from the environment and close it afterwards: no process is left."""
    app = App(Settings.from_environment(), over_stdio=True)
    try:
        yield app
    finally:
        await app.close()


def with_app(work: Callable[[App], Awaitable[T]]) -> T:
    """Run one piece of work on an application of its own."""

    async def run() -> T:
        async with opened() as app:
            return await work(app)

    return asyncio.run(run())

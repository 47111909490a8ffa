"""The application inside the command line's own process, as a local caller."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from metaforge import __version__
from metaforge.app import App
from metaforge.cli.screen import console
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust

T = TypeVar("T")

CALLER = Caller(actor_id="local", trust=Trust.LOCAL, client_name="metaforge-cli", client_version=__version__)


@asynccontextmanager
async def opened() -> AsyncIterator[App]:
    """Make the application from the environment and close it afterwards: no process is left.

    What the log would say as JSON lines is said to the person instead, unless a log level was asked for.
    """
    settings = replace(Settings.from_environment(), profile="")  # a profile is what clients are served
    quiet = "METAFORGE_LOG_LEVEL" not in settings.environment
    app = App(replace(settings, log_level="error") if quiet else settings, over_stdio=True)
    if quiet:
        for note in filter(None, (*settings.problems, app.workspace_note)):
            console(stderr=True).print(f"note: {note}", style="yellow")
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

"""An application whose writes are held, and a person at a desk of their own, as in another process."""

import asyncio
from pathlib import Path
from typing import Any

from metaforge.app import App
from metaforge.approvals.model import Approver, Entry, State
from metaforge.approvals.opening import open_approvals
from metaforge.settings import Settings
from metaforge.store.database import Database

ANNA = Approver("anna", True, "dashboard")
LIMIT_SECONDS = 10


def settings_of(home: Path, **also: str) -> Settings:
    """Return settings of a server that has the design record and no adapter beside."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    given = {"METAFORGE_HOME": str(home / "home"), "METAFORGE_WORKSPACE": str(home / "work"), "PATH": "/nowhere"}
    quiet = {"METAFORGE_ADAPTERS": "none", "METAFORGE_PRESTART": "false", "METAFORGE_LOG_LEVEL": "info"}
    return Settings.load({**given, **quiet, **also})


def request(tool: str, arguments: Any = None, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    """Return a tools/call request."""
    params = {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class Desk:
    """Somebody who reads the ledger and decides, with a database connection, ledger and waker of their own."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._database = Database("", app.home)
        self._approvals = open_approvals(app.settings, self._database, app.home)
        self.ledger = self._approvals.ledger

    async def waiting(self, count: int = 1) -> list[Entry]:
        """Return what waits, once so many do."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                found = await asyncio.to_thread(self.ledger.entries)
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.005)

    async def state(self, approval_id: str, *wanted: State) -> Entry:
        """Return an entry once it is in one of some states."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                entry = await asyncio.to_thread(self.ledger.get, approval_id)
                if entry.state in wanted:
                    return entry
                await asyncio.sleep(0.005)

    async def opened(self, approval_id: str) -> Entry:
        """Return an entry once the dashboard shows it."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:
                entry = await asyncio.to_thread(self.ledger.get, approval_id)
                if entry.on_dashboard:
                    return entry
                await asyncio.sleep(0.005)

    async def decide(self, verdict: str = "approve", entry: Entry | None = None, **more: Any) -> Entry:
        """Decide the only entry that waits, or a given one."""
        entry = entry or (await self.waiting())[0]
        approver = more.pop("approver", ANNA)
        return await asyncio.to_thread(
            lambda: self.ledger.decide(entry.approval_id, verdict, approver, **more)  # type: ignore[arg-type]
        )

    async def projects(self) -> list[str]:
        """Return the names of the projects there are."""

        def read() -> list[str]:
            with self.app.twin_services.store.read() as view:
                return [each.name for each in view.projects()]

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        await self._approvals.close()
        self._database.close()


def events(caplog: Any, name: str) -> list[dict[str, Any]]:
    """Return what was logged under a name."""
    return [record.event_fields for record in caplog.records if record.msg == name]

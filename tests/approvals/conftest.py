"""A ledger on either database, and requests to put into it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metaforge.approvals.digest import call_digest
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Kind, Request, Route, later, new_approval_id
from metaforge.core.clock import utc_now
from metaforge.store.database import Database
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect

MakeRequest = Callable[..., Request]


@pytest.fixture
def database(database_url: str, tmp_path: Path) -> Iterator[Database]:
    database = Database(database_url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    holder = Holder(tmp_path)
    yield holder
    holder.close()


@pytest.fixture
def ledger(database: Database, holder: Holder) -> SqlLedger:
    return SqlLedger(database, holder)


@pytest.fixture
def make_request() -> MakeRequest:
    """Makes a request as the gate does; keywords replace fields."""
    return a_request


def a_request(window_seconds: float = 100.0, **changes: Any) -> Request:
    now = changes.pop("created_at", utc_now())
    made = Request(
        approval_id=new_approval_id(),
        call_id="0123456789abcdef",
        tool_id="project.create",
        kind=Kind.TOOL_CALL,
        effect=Effect.WRITE,
        arguments={"name": "Drone", "mass_kg": 1.5},
        digest="",
        adapter_version="1.0.0",
        project_id="",
        run_id="",
        caller=Caller("bob", Trust.UNTRUSTED, "claude-code", "2.1.332", "session-1"),
        title="Create a project",
        summary="Create the project Drone",
        reason_held="writes of remote callers wait for a person",
        route=Route.DASHBOARD,
        created_at=now,
        expires_at=later(now, window_seconds),
        window_seconds=window_seconds,
    )
    made = replace(made, **changes)
    digest = call_digest(made.tool_id, made.arguments, made.project_id, made.caller.actor_id, made.adapter_version)
    return replace(made, digest=changes.get("digest") or digest)

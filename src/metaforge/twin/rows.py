"""How rows of the twin's tables become its values: the columns, in one order, and the value made of them."""

from typing import Any

from metaforge.core.errors import ResourceUnreadable
from metaforge.store.blobs import Blobs
from metaforge.store.transaction import Row
from metaforge.twin.bodies import load
from metaforge.twin.model import (
    ChangeEntry,
    ChangeKind,
    Draft,
    Item,
    Link,
    Node,
    Project,
    Run,
    Session,
    SessionEvent,
    Status,
)

NODE_COLUMNS = (
    "node_id, kind, name, body, body_sha256, project_id, item_id, item_key, revision, status, change_set, phase, gate, "
    "change_reason, author, run_id, prior_node_id, decided_by, approved_at, status_reason, closed_at, adopted, "
    "created_at"
)
ITEM_COLUMNS = (
    "item_id, key, kind, family, name, project_id, head_revision, head_node_id, last_revision, created_at, updated_at"
)
DRAFT_COLUMNS = "run_id, item_id, node_id, revision, base_revision, base_node_id, phase"
LINK_COLUMNS = (
    "link_id, project_id, type, source_node_id, source_subject, source_revision, target_node_id, target_subject, "
    "target_revision, change_set, reviewed_revision, reviewed_by, reviewed_at, body, author, run_id, created_at"
)
RUN_COLUMNS = "run_id, project_id, state, flow_version, flow_approved, phase, gate"
PROJECT_COLUMNS = "project_id, name, description, status, author, created_at, updated_at"
CHANGE_COLUMNS = "seq, at, project_id, kind, ref, node_id, body, author, run_id"
SESSION_COLUMNS = (
    "session_id, project_id, client_session_id, agent_code, task_type, title, status, summary, implicit, author, "
    "client_name, event_count, started_at, last_event_at, completed_at"
)
EVENT_COLUMNS = "session_id, seq, event_id, type, message, data, call_id, author, at"


def prefixed(columns: str, table: str) -> str:
    """Return a list of columns, each with its table's name before it."""
    return ", ".join(f"{table}.{name.strip()}" for name in columns.split(","))


def node_of(row: Row, blobs: Blobs) -> Node:
    """Make a node of NODE_COLUMNS, its long body read and verified.

    Raises:
        ResourceUnreadable: the content of a long body is damaged or gone; the message names it by digest.
    """
    body = load(_long_body(row[0], row[4], blobs) if row[4] else row[3])
    values: list[Any] = [
        *row[:3],
        body,
        row[5],
        row[6] or "",
        *row[7:9],
        Status(row[9]),
        *row[10:21],
        bool(row[21]),
        row[22],
    ]
    return Node(*values)


def _long_body(node_id: str, sha256: str, blobs: Blobs) -> bytes:
    try:
        return blobs.read(sha256)
    except KeyError:
        raise ResourceUnreadable(
            f"The content of node {node_id} is missing from the blobs below METAFORGE_HOME and METAFORGE_BLOB_URL: "
            f"SHA-256 {sha256}. Restore it from a backup, or set both to what they were when it was written",
            sha256=sha256,
        ) from None


def item_of(row: Row, draft: Draft | None = None) -> Item:
    """Make an item of ITEM_COLUMNS."""
    values: list[Any] = [*row, draft]
    return Item(*values)


def draft_of(row: Row) -> Draft:
    """Make a draft of DRAFT_COLUMNS."""
    return Draft(*row)


def link_of(row: Row) -> Link:
    """Make a link of LINK_COLUMNS."""
    values: list[Any] = [*row[:13], load(row[13]), *row[14:]]
    return Link(*values)


def run_of(row: Row) -> Run:
    """Make a run of RUN_COLUMNS."""
    run_id, project_id, state, flow_version, flow_approved, phase, gate = row
    return Run(run_id, project_id, state, flow_version, bool(flow_approved), phase, gate)


def project_of(row: Row) -> Project:
    """Make a project of PROJECT_COLUMNS."""
    return Project(*row)


def change_of(row: Row) -> ChangeEntry:
    """Make an entry of CHANGE_COLUMNS."""
    seq, at, project_id, kind, ref, node_id, body, author, run_id = row
    return ChangeEntry(seq, at, project_id, ChangeKind(kind), ref, node_id, load(body), author, run_id)


def session_of(row: Row) -> Session:
    """Make a session of SESSION_COLUMNS."""
    values: list[Any] = list(row)
    values[8] = bool(values[8])
    return Session(*values)


def event_of(row: Row) -> SessionEvent:
    """Make an event of EVENT_COLUMNS."""
    session_id, seq, event_id, kind, message, data, call_id, author, at = row
    return SessionEvent(session_id, seq, event_id, kind, message, load(data), call_id, author, at)


def event_of_call(row: Row) -> SessionEvent:
    """Make an event of a call's work session, its number there and its record."""
    session_id, seq, text = row
    record = load(text)
    call_id, tool_id, status = record["call_id"], record["tool_id"], record["status"]
    data = {
        "tool_id": tool_id, "status": status, "duration_ms": record.get("duration_ms"), "captured_by": "server"
    }  # fmt: skip
    caller = record["caller"]
    if service := caller.get("service"):
        data |= {"caller": caller["trust"], "service": {name: service[name] for name in ("run_id", "phase", "model")}}
    message = record.get("summary") or record.get("error_message") or f"{tool_id} {status}"
    kind = "action" if status == "ok" else "error"
    author = caller["actor_id"]
    return SessionEvent(session_id, seq, call_id, kind, message, data, call_id, author, record["started_at"])

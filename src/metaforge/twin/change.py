"""One change to the design record: everything in it is written in one transaction, or nothing is."""

from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.core.errors import ToolError
from metaforge.core.ids import sha256_bytes
from metaforge.store.blobs import Blobs
from metaforge.store.transaction import Transaction
from metaforge.twin import closing, definitions, linking, projects, records, sessions
from metaforge.twin.model import (
    ChangeKind,
    Decision,
    Link,
    Node,
    Project,
    Reader,
    Run,
    Session,
    SessionEvent,
)
from metaforge.twin.view import View


class ContentFirst(Exception):
    """A content has to be where it belongs before the change that names it begins: others would wait for it.

    Args:
        content: to be kept; then the change is made again.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(f"{len(content)} bytes")
        self.content = content


class Change:
    """What may be written. Made by `TwinStore.change`, which commits it when its block ends.

    Attributes:
        author: who writes, as the call context knows it.
        reason: why, for revisions and decisions that name no reason of their own.
        run: the run that calls, or None. Its definitions become drafts.
        project_id: where new things belong; empty for none.
        now: the time of everything in this change.
        view: the record as this change sees it, its own writes included.
    """

    def __init__(
        self,
        transaction: Transaction,
        blobs: Blobs,
        *,
        author: str,
        reason: str,
        run: Run | None,
        project_id: str,
        now: str,
        repeatable: bool = False,
    ) -> None:
        self.transaction = transaction
        self.blobs = blobs
        self.author = author
        self.reason = reason
        self.run = run
        self.project_id = project_id
        self.now = now
        self._repeatable = repeatable
        self.view = View(transaction, blobs, Reader(self.run_id, project_id))

    @property
    def run_id(self) -> str:
        """The calling run's id, or an empty text."""
        return self.run.run_id if self.run else ""

    def keep(self, content: bytes) -> str:
        """Keep a long content and return its SHA-256.

        Raises:
            ContentFirst: keeping it takes an exchange with another machine, and this change can be made again.
            StoreUnavailable: the store of contents did not take it.
        """
        if self._repeatable and not self.blobs.has(digest := sha256_bytes(content)):
            raise ContentFirst(content)
        return digest if self._repeatable else self.blobs.put_bytes(content)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def define(
        self,
        kind: str,
        name: str,
        body: Mapping[str, Any],
        *,
        item_key: str = "",
        supersedes: str = "",
        change_reason: str = "",
    ) -> Node:
        """Write the next revision of an item: a draft inside a run, else the new head.

        The item is the one that `item_key` names, else the one that `supersedes` belongs to, else the one of the same
        name (or derived key) in the project and family, else a new one. Without a project and a key the node is of
        no item.

        Args:
            kind: a definition kind.
            name: what people call it; at most some 10,000 characters, kept whole.
            body: its content, JSON values.
            item_key: KEY; or KEY@n, which also asserts that what this caller reads as current is revision n. A bare
                key that no item has names a new one.
            supersedes: the node id (or KEY@n) of an earlier revision.
            change_reason: why it differs from the revision before.

        Returns:
            The revision; `ref` is KEY@n.

        Raises:
            ToolError: `stale_revision`, `unknown_item`, `unknown_node`, `other_kind`, `bad_item_ref`, `run_closed` ...;
                nothing is written.
        """
        return definitions.define(self, kind, name, body, item_key, supersedes, change_reason)

    def record(self, kind: str, body: Mapping[str, Any], *, name: str = "", supersedes: str = "") -> Node:
        """Write a record: a node that is never revised.

        Args:
            kind: any kind that is no definition kind, such as design_decision.
            body: its content, JSON values.
            name: what people call it.
            supersedes: the node id of a record that this one replaces.

        Raises:
            ToolError: `not_a_record_kind`, `unknown_node`, `not_recordable`.
        """
        return records.record(self, kind, body, name, supersedes)

    def link(self, type: str, source: Node | str, target: Node | str, body: Mapping[str, Any] | None = None) -> Link:
        """Link a node to exactly this revision of another; the same link (type, ends and body) twice is one.

        Args:
            type: such as depends_on, implements, valid_against.
            source: a node, or a reference (KEY is pinned to what this caller reads as current).
            target: likewise.
            body: more about the link, JSON values.

        Raises:
            ToolError: `unknown_item`, `unknown_revision`, `unknown_node`.
        """
        return linking.link(self, type, source, target, body or {})

    def review(self, link_id: str, revision: int | None = None) -> Link:
        """Note that a link was looked at again and still holds, which clears its suspicion.

        Args:
            link_id: the link.
            revision: of the target, that it was judged against; the target's head by default.

        Raises:
            ToolError: `unknown_link`, `unknown_revision`.
        """
        return linking.review(self, link_id, revision)

    # -- runs ----------------------------------------------------------------------------------------------------

    def put_run(self, run: Run) -> None:
        """Register a run, or tell its present state, phase and gate."""
        closing.put_run(self, run)

    def close_run(
        self, run_id: str, decision: Decision | str, *, gate: str = "", reason: str = "", state: str = ""
    ) -> tuple[Node, ...]:
        """Close a run's change set.

        Approval moves every drafted head at once, if each item still has the head that its draft was made from;
        otherwise heads stay and drafts are kept as rejected or abandoned. The author of this change is who decided.

        Args:
            run_id: the run.
            decision: approve, reject or abandon.
            gate: the gate that decided; the run's own by default.
            reason: why.
            state: the run's new state; by default it keeps running.

        Returns:
            The nodes concerned, as they are now.

        Raises:
            ToolError: `unknown_run`; `PATCH_CONFLICT` when a head has moved since, with `data.conflicts`.
        """
        return closing.close_run(self, run_id, Decision(decision), gate, reason, state)

    # -- projects and sessions -------------------------------------------------------------------------------------

    def create_project(self, name: str, description: str = "", status: str = "active") -> Project:
        """Create a project. Names need not be unique; ids are."""
        return projects.create(self, name, description, status)

    def update_project(
        self, project_id: str, *, name: str | None = None, description: str | None = None, status: str | None = None
    ) -> Project:
        """Change what is given of a project; raises ToolError `unknown_project`."""
        return projects.update(self, project_id, name, description, status)

    def delete_project(self, project_id: str) -> None:
        """Hide a project; its design record stays, for those who know its ids. Raises ToolError `unknown_project`."""
        projects.delete(self, project_id)

    def start_session(
        self,
        agent_code: str,
        task_type: str,
        *,
        title: str = "",
        client_session_id: str = "",
        client_name: str = "",
        implicit: bool = False,
    ) -> Session:
        """Start a work session in this change's project."""
        return sessions.start(self, agent_code, task_type, title, client_session_id, client_name, implicit)

    def log_event(
        self, session_id: str, type: str, message: str, data: Mapping[str, Any] | None = None, *, call_id: str = ""
    ) -> SessionEvent:
        """Add an event to an active session.

        Raises:
            ToolError: `unknown_session`, `session_completed`.
        """
        return sessions.log_event(self, session_id, type, message, data or {}, call_id)

    def complete_session(self, session_id: str, status: str, summary: str = "") -> Session:
        """End a session as completed or failed; raises ToolError `unknown_session`, `session_completed`."""
        return sessions.complete(self, session_id, status, summary)

    # -- for whoever writes tables of their own --------------------------------------------------------------------

    def log(
        self,
        kind: ChangeKind,
        *,
        ref: str = "",
        node_id: str = "",
        body: Mapping[str, Any] | None = None,
        project_id: str | None = None,
    ) -> None:
        """Append to the changelog; whoever writes to a table of the record does, in the same change."""
        self.transaction.run(
            "insert into changelog (at, project_id, kind, ref, node_id, body, author, run_id) "
            "values (?, ?, ?, ?, ?, ?, ?, ?)",
            self.now, self.project_id if project_id is None else project_id, kind, ref, node_id,
            orjson.dumps(body or {}).decode(), self.author, self.run_id,
        )  # fmt: skip

    def claim(self, project_id: str) -> None:
        """Wait until no other change to a project is under way; it ends with this change.

        So a project's changelog grows in the order of commits, and no two changes make the same item. SQLite has one
        writer at a time anyway.
        """
        if self.transaction.postgres:
            self.transaction.row("select pg_advisory_xact_lock(hashtextextended(?, 7))", project_id)

    def running_run(self) -> Run | None:
        """Return the calling run if it accepts drafts, or None outside runs.

        Raises:
            ToolError: `run_closed`.
        """
        if self.run is not None and not self.run.running:
            raise ToolError(
                f"Run {self.run.run_id} is {self.run.state} and accepts no more drafts",
                kind="run_closed", fix="Write outside the run, or start another",
            )  # fmt: skip
        return self.run

"""The one home of a design: opened at first use, shared by all processes and threads that work on it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from metaforge.core.clock import utc_now
from metaforge.core.errors import ToolError
from metaforge.store.blobs import Blobs
from metaforge.store.database import Database
from metaforge.store.transaction import Transaction
from metaforge.twin.change import Change, ContentFirst
from metaforge.twin.model import Reader, Run
from metaforge.twin.unknown import unknown_project
from metaforge.twin.view import View

EVERYBODY = Reader()
_MAX_CONTENTS = 8
"""After so many long contents in one change the rest is kept inside it."""
T = TypeVar("T")


class TwinStore:
    """Readers and changes of the design record.

    Both block for the time of their statements: enter and leave them in one thread, away from an event loop, and
    call no tool inside. A change is on disk when its block ends; a block that raises leaves nothing.
    """

    def __init__(self, database: Database, blobs: Blobs) -> None:
        """Remember where the record is; nothing is opened.

        Args:
            database: the store of all processes.
            blobs: where long contents are kept.
        """
        self._database = database
        self._blobs = blobs
        self._here = threading.local()

    @property
    def answers_at_once(self) -> bool:
        """Whether a read of a few rows may run where nothing may wait, such as an event loop."""
        return self._database.answers_at_once and self._blobs.answers_at_once

    def read(self, reader: Reader = EVERYBODY) -> AbstractContextManager[View]:
        """Open one state of the record, as a reader sees it; writers are not held up.

        Raises:
            StoreUnavailable: the database cannot be used; the message says what to do.
        """
        return _Look(self._database.transaction(write=False), self._blobs, reader)

    def perform(
        self,
        work: Callable[[Change], T],
        *,
        author: str,
        reason: str = "",
        run_id: str = "",
        project_id: str = "",
        durable: bool = True,
    ) -> T:
        """Run `work` in a change, its long contents kept before anybody has to wait for it.

        Where contents lie on another machine the change is undone when it comes to one that is not there yet, and made
        again once it is: `work` may run several times, and each run must write the same.

        Args:
            work: what to write; nothing of the change may be used after it returns.
            author, reason, run_id, project_id, durable: see `change`.

        Raises:
            ToolError, StoreUnavailable: as `change`, or what `work` raises.
        """
        who: Any = {
            "author": author, "reason": reason, "run_id": run_id, "project_id": project_id, "durable": durable,
            "now": utc_now(),
        }  # fmt: skip
        for _ in range(_MAX_CONTENTS if not self._blobs.answers_at_once else 0):
            try:
                with self.change(**who, repeatable=True) as change:
                    return work(change)
            except ContentFirst as first:
                self._blobs.put_bytes(first.content)
        with self.change(**who) as change:
            return work(change)

    @contextmanager
    def change(
        self,
        *,
        author: str,
        reason: str = "",
        run_id: str = "",
        project_id: str = "",
        durable: bool = True,
        now: str = "",
        repeatable: bool = False,
    ) -> Iterator[Change]:
        """Open a change: one transaction, the only one that writes while it lasts. Keep it short.

        Args:
            author: who writes, from the call context, never from arguments.
            reason: why, for what names no reason of its own.
            run_id: the calling run, from the call context; its definitions become drafts.
            project_id: where new things belong. Empty: the run's project, else none.
            durable: whether it is synced to disk; False for session events, of which a loss of power may cost some.
            now: the time of everything in it; by default the present one.
            repeatable: whether the caller makes it again after ContentFirst.

        Raises:
            ToolError: `unknown_project`, `unknown_run`, `run_other_project`; or what the block raises.
            StoreUnavailable: the database cannot be used or written.
        """
        if getattr(self._here, "changing", False):
            raise RuntimeError("a change inside a change would wait for itself: use the one there is")
        self._here.changing = True
        try:
            with self._database.transaction(write=True, durable=durable) as transaction:
                run = self._run(transaction, run_id, project_id)
                project_id = project_id or (run.project_id if run else "")
                change = Change(
                    transaction, self._blobs,
                    author=author, reason=reason, run=run, project_id=project_id, now=now or utc_now(),
                    repeatable=repeatable,
                )  # fmt: skip
                change.claim(project_id)
                if project_id and change.view.project(project_id) is None:
                    raise unknown_project(change.view, project_id)
                yield change
        finally:
            self._here.changing = False

    def _run(self, transaction: Transaction, run_id: str, project_id: str) -> Run | None:
        if not run_id:
            return None
        run = View(transaction, self._blobs, EVERYBODY).run(run_id)
        if run is None:
            raise ToolError(
                f"There is no run {run_id[:120]!r}", kind="unknown_run", fix="Start it, or call outside runs"
            )
        if project_id and run.project_id != project_id:
            raise ToolError(
                f"Run {run_id} belongs to project {run.project_id}, not to {project_id}",
                kind="run_other_project", fix=f"Use project {run.project_id}, or call outside the run",
            )  # fmt: skip
        return run


class _Look:
    """A reader's view of one state. A class: a generator costs as much as a query."""

    __slots__ = ("_blobs", "_reader", "_transaction")

    def __init__(self, transaction: AbstractContextManager[Transaction], blobs: Blobs, reader: Reader) -> None:
        self._transaction = transaction
        self._blobs = blobs
        self._reader = reader

    def __enter__(self) -> View:
        return View(self._transaction.__enter__(), self._blobs, self._reader)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.__exit__(kind, fault, trace)

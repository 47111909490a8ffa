"""Look calls up. Blocking, and loads SQLAlchemy at first use: call it from a thread where an event loop runs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from metaforge.record.call_record import CallRecord
from metaforge.record.recorder import Recorder
from metaforge.store.database import Database
from metaforge.tools.context import Artefact

if TYPE_CHECKING:
    from sqlalchemy import Select

MAX_LIMIT = 1000


@dataclass(frozen=True)
class FileUse:
    """A call that read (`input`) or produced (`artefact`) a content, and how the file was called there."""

    direction: str
    file: Artefact
    call: CallRecord


class CallLog:
    """The record of all processes, as readers see it."""

    def __init__(self, database: Database, recorder: Recorder) -> None:
        self._database = database
        self._recorder = recorder

    def list_calls(
        self, limit: int = 50, tool_id: str = "", status: str = "", since: str | datetime = ""
    ) -> list[CallRecord]:
        """Return calls, the latest first.

        Args:
            limit: how many, 1 to 1000.
            tool_id: of this tool only.
            status: that ended so only.
            since: that started at this time or later: a datetime, or ISO 8601 (a date, or with time; UTC when it
                names no zone).

        Raises:
            ValueError: `since` is no time.
            StoreUnavailable: the database cannot be read.
        """
        from sqlalchemy import select

        from metaforge.store.tables import CALLS

        query = select(CALLS.c.record).order_by(CALLS.c.started_at.desc(), CALLS.c.seq.desc())
        if tool_id:
            query = query.where(CALLS.c.tool_id == tool_id)
        if status:
            query = query.where(CALLS.c.status == status)
        if since:
            query = query.where(CALLS.c.started_at >= _utc(since))
        return self._records(query.limit(min(max(limit, 1), MAX_LIMIT)))

    def calls_of_session(self, work_session_id: str, limit: int = 50, offset: int = 0) -> list[CallRecord]:
        """Return calls that are events of a work session, in the session's order.

        Args:
            work_session_id: the session.
            limit: how many, 1 to 1000.
            offset: how many to skip.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        from sqlalchemy import select

        from metaforge.store.tables import CALLS

        # The condition on the empty name lets the database use the index of calls that belong to a session.
        query = (
            select(CALLS.c.record)
            .where(CALLS.c.work_session_id == work_session_id, CALLS.c.work_session_id != "")
            .order_by(CALLS.c.event_seq)
        )
        return self._records(query.limit(min(max(limit, 1), MAX_LIMIT)).offset(offset))

    def get_call(self, call_id: str) -> CallRecord:
        """Return one call.

        Raises:
            KeyError: no call has this id.
            StoreUnavailable: the database cannot be read.
        """
        from sqlalchemy import select

        from metaforge.store.tables import CALLS

        found = self._records(select(CALLS.c.record).where(CALLS.c.call_id == call_id))
        if not found:
            raise KeyError(call_id)
        return found[0]

    def uses_of(self, sha256: str, limit: int = 50) -> list[FileUse]:
        """Return which calls read or produced a content, the latest first.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        from sqlalchemy import select

        from metaforge.store.tables import CALL_FILES, CALLS

        calls = self._records(
            select(CALLS.c.record)
            .where(CALLS.c.call_id.in_(select(CALL_FILES.c.call_id).where(CALL_FILES.c.sha256 == sha256)))
            .order_by(CALLS.c.started_at.desc(), CALLS.c.seq.desc())
            .limit(min(max(limit, 1), MAX_LIMIT))
        )
        return [
            FileUse(direction, file, call)
            for call in calls
            for direction, files in (("artefact", call.artefacts), ("input", call.inputs))
            for file in files
            if file.sha256 == sha256
        ]

    def artefact(self, sha256: str) -> Artefact:
        """Return how the latest call that had a content called it: its path, type and role.

        Raises:
            KeyError: no call read or produced it.
            StoreUnavailable: the database cannot be read.
        """
        uses = self.uses_of(sha256, limit=1)
        if not uses:
            raise KeyError(sha256)
        return uses[0].file

    def _records(self, query: "Select[str]") -> list[CallRecord]:
        self._recorder.flush()
        with self._database.reading() as connection:
            return [CallRecord.parse(text) for text in connection.scalars(query)]


def _utc(since: str | datetime) -> str:
    moment = datetime.fromisoformat(since) if isinstance(since, str) else since
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

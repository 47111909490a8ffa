"""Keep every call: a line in the journal before the answer, a row in the database soon after.

`append` costs some ten microseconds and never fails: what cannot be kept is told in `problems`, which health shows.
A thread, started by the first call, moves lines from the journal to the database, and first of all those that dead
processes left behind.
"""

import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from metaforge.core.errors import MetaForgeError
from metaforge.record.call_record import CallRecord
from metaforge.record.journal import Journal, dead_journals
from metaforge.record.rows import RowWriter, row_writer
from metaforge.store.database import Database
from metaforge.telemetry import metrics
from metaforge.telemetry.logs import event

GATHER_SECONDS = 0.1
BUSY_GATHER_SECONDS = 1.0
BUSY_COUNT = 100
"""After a pass of so many lines the next one gathers for longer: an index page is then written once for many calls."""
CLOSE_SECONDS = 0.5
FLUSH_SECONDS = 5.0
ROTATE_BYTES = 8 << 20
"""Once so much of a journal is stored, a new one begins; the old one goes when the database has all of it on disk."""
MAX_SET_ASIDE_COUNT = 1000
_RETRY_SECONDS = 5.0
_BUSY_PATIENCE_COUNT = 20


class Recorder:
    """This process's part in the record. Thread-safe."""

    def __init__(self, database: Database, folder: Path) -> None:
        """Remember where records go; nothing is opened.

        Args:
            database: the store that all processes share.
            folder: where journals lie, `METAFORGE_HOME/journal`.
        """
        self._database = database
        self._folder = folder
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._journal_problem = ""
        self._journal_retry_at = 0.0
        self._set_aside: list[bytes] = []
        self._lost_count = 0
        self._pending = False
        self._thread: threading.Thread | None = None
        self._closing = False
        self._work = threading.Event()
        self._hurry = threading.Event()
        self._passed = threading.Condition()
        self._wanted_pass = 0
        self._done_pass = 0
        self._pass_succeeded = True
        # The writer thread's own:
        self._drained_bytes = 0
        self._drained_count = 0
        self._database_problem = ""
        self._failure_count = 0
        self._damaged_count = 0

    def append(self, record: CallRecord) -> None:
        """Write a record down before its call is answered. Never raises for a disk's sake."""
        line = record.line()
        with self._lock:
            try:
                if self._journal is None:
                    self._open_journal()
                if self._journal is not None:
                    self._journal.append(line)
                    self._journal_problem = ""
                else:
                    self._keep_aside(line)
            except OSError as fault:
                self._note_journal(fault)
                self._keep_aside(line)
            if self._pending:
                return
            self._pending = True
        self._start()
        self._work.set()

    def flush(self, timeout_seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until everything appended so far, and what dead processes left, is in the database.

        Returns:
            False when it is not: `problems` says why.
        """
        if self._closing or not self._start():
            return False
        with self._passed:
            self._wanted_pass += 1
            ticket = self._wanted_pass
            self._hurry.set()
            self._work.set()
            arrived = self._passed.wait_for(lambda: self._done_pass >= ticket, timeout_seconds)
            return arrived and self._pass_succeeded

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the record, one sentence each; empty when every call is kept."""
        found = [self._journal_problem, self._database_problem]
        if self._lost_count:
            found.append(f"{self._lost_count} calls of this process could not be recorded and are lost to the record")
        if self._damaged_count:
            found.append(f"{self._damaged_count} damaged journal lines were put into {self._damaged_path}")
        return tuple(filter(None, found))

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Store what is left, within the time given; the next process stores the rest."""
        self._closing = True
        thread = self._thread
        if thread is not None:
            self._hurry.set()
            self._work.set()
            thread.join(timeout_seconds)
            if thread.is_alive():
                return  # it still uses the journal, which stays locked until this process ends
        with self._lock:
            journal, self._journal = self._journal, None
            if journal is not None:
                if self._drained_bytes == journal.size_bytes:
                    journal.remove()
                else:
                    journal.close()

    @property
    def _damaged_path(self) -> Path:
        return self._folder / "damaged.txt"

    def _open_journal(self) -> None:
        if time.monotonic() < self._journal_retry_at:
            return
        self._journal = Journal.create(self._folder)
        self._drained_bytes = 0

    def _note_journal(self, fault: OSError) -> None:
        if not self._journal_problem:
            event("call_journal_failed", "error", folder=str(self._folder), reason=str(fault))
        if self._journal is None:
            self._journal_retry_at = time.monotonic() + _RETRY_SECONDS
        self._journal_problem = (
            f"Calls are answered but not written down first, and a crash would lose them: {self._folder} refuses "
            f"({fault.strerror or fault}). Free disk space, or set METAFORGE_HOME to a writable folder"
        )

    def _keep_aside(self, line: bytes) -> None:
        if len(self._set_aside) < MAX_SET_ASIDE_COUNT:
            self._set_aside.append(line)
        else:
            self._lost_count += 1

    def _start(self) -> bool:
        with self._lock:
            if self._thread is not None:
                return True
            if self._closing:
                return False
            thread = threading.Thread(target=self._run, name="record-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError as fault:  # no more threads
                self._database_problem = f"Calls stay in {self._folder} and out of the database: {fault}"
                self._pending = False
                return False
            self._thread = thread
        metrics.gauge("metaforge_call_records_lost_count", "Calls that could not be recorded.", self._read_lost)
        metrics.gauge("metaforge_journal_pending_bytes", "Journal not yet in the database.", self._read_pending)
        return True

    def _read_lost(self) -> float:
        return self._lost_count

    def _read_pending(self) -> float:
        journal = self._journal
        return max(journal.size_bytes - self._drained_bytes, 0) if journal else 0

    def _run(self) -> None:
        writer = row_writer(self._database)
        while True:
            self._work.wait()
            if not self._closing:
                self._hurry.wait(self._pause_seconds())
            self._hurry.clear()
            self._work.clear()
            with self._passed:
                ticket = self._wanted_pass
            closing = self._closing
            self._drained_count = 0
            succeeded = self._pass(writer)
            with self._passed:
                self._done_pass, self._pass_succeeded = ticket, succeeded
                self._passed.notify_all()
            if closing:
                writer.close()
                return
            if not succeeded:
                self._work.set()

    def _pause_seconds(self) -> float:
        """Gather for a moment, for longer where there is much to gather; after failures wait up to 5 s."""
        if self._failure_count:
            return min(GATHER_SECONDS * 2.0 ** min(self._failure_count, 8), _RETRY_SECONDS)
        return BUSY_GATHER_SECONDS if self._drained_count > BUSY_COUNT else GATHER_SECONDS

    def _pass(self, writer: RowWriter) -> bool:
        try:
            self._pending = False  # what is appended from here on asks for another pass
            self._replay_dead(writer)
            self._drain_own(writer)
            self._drain_set_aside(writer)
        except (sqlite3.Error, MetaForgeError, OSError) as fault:
            writer.close()
            self._note_database(fault)
            return False
        if self._database_problem:
            event("call_record_recovered", "warning", database=self._database.name)
        self._database_problem, self._failure_count = "", 0
        return True

    def _note_database(self, fault: Exception) -> None:
        self._failure_count += 1
        busy = isinstance(fault, sqlite3.OperationalError) and "locked" in str(fault)
        if busy and self._failure_count < _BUSY_PATIENCE_COUNT:
            return
        reason = fault.message if isinstance(fault, MetaForgeError) else str(fault)
        if not self._database_problem:
            event("call_record_failed", "error", folder=str(self._folder), reason=reason)
        self._database_problem = f"Calls wait in {self._folder} and are not in the database yet: {reason}"

    def _replay_dead(self, writer: RowWriter) -> None:
        for journal in dead_journals(self._folder):
            try:
                count = 0
                for batch in journal.batches(0, at_end=True):
                    self._put_damaged(writer.write(batch.lines))
                    count += len(batch.lines)
                writer.settle()
            except BaseException:
                journal.close()
                raise
            journal.remove()
            if count:
                event("call_journal_replayed", "info", journal=journal.path.name, record_count=count)

    def _drain_own(self, writer: RowWriter) -> None:
        journal = self._journal
        if journal is None:
            return
        self._store(journal, writer)
        if self._closing:
            writer.settle()
        elif self._drained_bytes >= ROTATE_BYTES and self._begin_another():
            try:
                self._store(journal, writer)
                writer.settle()
            except BaseException:
                # Unlocked it counts as a dead process's, and is stored from its beginning.
                journal.close()
                raise
            finally:
                self._drained_bytes = 0
            journal.remove()

    def _store(self, journal: Journal, writer: RowWriter) -> None:
        for batch in journal.batches(self._drained_bytes):
            self._put_damaged(writer.write(batch.lines))
            self._drained_bytes = batch.end_offset
            self._drained_count += len(batch.lines)

    def _begin_another(self) -> bool:
        """Let calls be written to a new journal; without room for one the old one goes on."""
        try:
            following = Journal.create(self._folder)
        except OSError:
            return False
        with self._lock:
            self._journal = following
        return True

    def _drain_set_aside(self, writer: RowWriter) -> None:
        with self._lock:
            lines = list(self._set_aside)
        if not lines:
            return
        self._put_damaged(writer.write(lines))
        with self._lock:
            del self._set_aside[: len(lines)]

    def _put_damaged(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        with self._damaged_path.open("ab") as stream:
            stream.writelines(line + b"\n" for line in lines)
        self._damaged_count += len(lines)
        event("call_journal_damaged", "warning", line_count=len(lines), kept_in=str(self._damaged_path))

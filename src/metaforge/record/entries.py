"""Journal lines taken apart into rows, for either database.

A call is an event of its client's work session as well: its row names the session and has a number there, and is read
as an event when somebody asks. Calls and what was logged beside them share one row of numbers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

CALL_COLUMNS = "call_id, tool_id, status, started_at, session_id, work_session_id, event_seq, record"
SESSION_COLUMNS = (
    "session_id, project_id, client_session_id, agent_code, task_type, title, status, summary, implicit, author, "
    "client_name, event_count, started_at, last_event_at, completed_at"
)
_CALL_ID, _STARTED_AT, _WORK_SESSION, _EVENT_SEQ = 0, 3, 5, 6
_DIRECTIONS = {"inputs": "input", "artefacts": "artefact"}
_NAMES_FILES = tuple(f'"{name}":['.encode() for name in _DIRECTIONS)
_NO_TEXT, _IN_ITS_PLACE = "\0", "\N{REPLACEMENT CHARACTER}"

Row = list[Any]
"""One of CALL_COLUMNS; a list, because its number comes later."""


@dataclass
class SessionPart:
    """What a batch brings of one session; the fields tell how to make it where there is none."""

    session_id: str
    project_id: str
    client_session_id: str
    author: str
    client_name: str
    started_at: str
    calls: list[Row] = field(default_factory=list)

    @property
    def last_event_at(self) -> str:
        return max(str(row[_STARTED_AT]) for row in self.calls)

    def new_row(self) -> tuple[Any, ...]:
        """Return the session as a row of SESSION_COLUMNS, its calls counted."""
        return (
            self.session_id, self.project_id, self.client_session_id, "", "", "", "active", "", 1, self.author,
            self.client_name, len(self.calls), self.started_at, self.last_event_at, "",
        )  # fmt: skip


class Entries:
    """The rows that some lines make.

    Args:
        lines: call records as JSON.

    Attributes:
        calls: rows of CALL_COLUMNS.
        files: sha256, call_id and direction of every file.
        damaged: the lines that are no records.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.calls: list[Row] = []
        self.files: list[tuple[str, str, str]] = []
        self.damaged: list[bytes] = []
        self._sessions: dict[str, SessionPart] = {}
        for line in lines:
            try:
                self._take(orjson.loads(line), line)
            except (ValueError, KeyError, TypeError, AttributeError):
                self.damaged.append(line)

    def _take(self, record: dict[str, Any], line: bytes) -> None:
        caller = record["caller"]
        row: Row = [
            record["call_id"], record["tool_id"], record["status"], record["started_at"], caller["session_id"],
            record.get("work_session_id", ""),
        ]  # fmt: skip
        # Joining refuses what is no text, and finds what Postgres has no place for.
        if _NO_TEXT in "".join(row):
            row = [_clean(text) for text in row]
        row += (0, line.decode())
        if any(name in line for name in _NAMES_FILES):
            self.files += _files(record, row[_CALL_ID])
        if session_id := row[_WORK_SESSION]:
            part = self._sessions.get(session_id)
            if part is None:
                part = self._sessions[session_id] = SessionPart(
                    session_id, _clean(record.get("project_id", "")), row[4], _clean(caller["actor_id"]),
                    _clean(caller["client_name"]), row[_STARTED_AT],
                )  # fmt: skip
            part.calls.append(row)
        self.calls.append(row)

    @property
    def call_ids(self) -> list[str]:
        return [row[_CALL_ID] for row in self.calls]

    def leave_out(self, known: Iterable[str]) -> None:
        """Drop the calls that the database has, and all but the first of those that came twice."""
        seen = set(known)
        fresh: list[Row] = []
        for row in self.calls:
            if row[_CALL_ID] not in seen:
                seen.add(row[_CALL_ID])
                fresh.append(row)
        self.calls = fresh
        kept = set(map(id, fresh))
        for part in self._sessions.values():
            part.calls = [row for row in part.calls if id(row) in kept]

    def number(self, count_in: Callable[[SessionPart], int]) -> None:
        """Give every call its number in its session.

        Args:
            count_in: makes the session where there is none, counts its new events in, and returns how many it has.
        """
        # Always in one order, so that two writers never wait for each other.
        for _, part in sorted(self._sessions.items()):
            if part.calls:
                first = count_in(part) - len(part.calls) + 1
                for seq, row in enumerate(part.calls, first):
                    row[_EVENT_SEQ] = seq


def _files(record: dict[str, Any], call_id: str) -> list[tuple[str, str, str]]:
    return [
        (_clean(file["sha256"]), call_id, direction)
        for name, direction in _DIRECTIONS.items()
        for file in record.get(name, ())
    ]


def _clean(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value.replace(_NO_TEXT, _IN_ITS_PLACE)

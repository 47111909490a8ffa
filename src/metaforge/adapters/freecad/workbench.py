"""The sessions of this process: each a live document in a FreeCAD process of its own."""

import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from metaforge.adapters.freecad.process import FreecadProcess
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.appearance import Colour
from metaforge.settings import Settings

_REMEMBERED = 32
_MARGIN_SECONDS = 2.0


@dataclass
class Session:
    """One live document, and what FreeCAD without a window does not keep: colours."""

    session_id: str
    name: str
    process: FreecadProcess
    last_used: float
    colours: dict[str, Colour] = field(default_factory=dict)
    """By object id, as imported."""
    ran_code: bool = False
    """Code of the caller ran in its process; the files it leaves are named accordingly."""

    def ask(self, name: str, seconds: float = 120.0, /, **given: Any) -> dict[str, Any]:
        """Ask the document; what ends it is told with the session's id."""
        return self.process.ask(name, given, max(1.0, seconds - _MARGIN_SECONDS))

    def take_back(self) -> None:
        """Undo the last edit."""
        self.ask("take_back")

    def file_name(self, label: str, suffix: str) -> str:
        """Return where a file of an object lies when the caller does not say."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "model"
        return f"out/{'script-' if self.ran_code else ''}{plain}{suffix}"


class Workbench:
    """Opens, finds and ends sessions; keeps one FreeCAD loaded ahead."""

    def __init__(self) -> None:
        self.idle_seconds = Settings.from_environment().tool_session_idle_seconds
        self._sessions: dict[str, Session] = {}
        self._lost: dict[str, str] = {}
        self._spare: FreecadProcess | None = None

    def warm_up(self) -> None:
        """Begin to load FreeCAD; whoever needs it first waits for the rest."""
        if self._spare is None:
            self._spare = FreecadProcess()

    def _take(self) -> FreecadProcess:
        spare, self._spare = self._spare, None
        if spare is None or not spare.alive:
            spare = FreecadProcess()
        spare.wait_until_ready()
        return spare

    def open(self, name: str) -> Session:
        """Open a session."""
        self._end_idle()
        session_id = f"fc-{secrets.token_hex(8)}"
        session = Session(session_id, name, self._take(), time.monotonic())
        session.ask("open", name=name)
        self._sessions[session_id] = session
        return session

    def find(self, session_id: str) -> Session:
        """Return an open session.

        Raises:
            ToolError: `session_lost` with the reason, or `no_such_session`.
        """
        self._end_idle()
        session = self._sessions.get(session_id)
        if session is not None and not session.process.alive:
            self.lose(session_id, "its FreeCAD process ended")
            session = None
        if session is None:
            raise self._absent(session_id)
        session.last_used = time.monotonic()
        return session

    def _absent(self, session_id: str) -> ToolError:
        fix = "open a new one with freecad.open_session; what was exported is still in the workspace"
        if session_id in self._lost:
            return ToolError(
                f"Session {session_id} is lost: {self._lost[session_id]}", kind="session_lost", fix=fix,
                where=session_id, failure_mode=FailureMode.ENVIRONMENT,
            )  # fmt: skip
        there = ", ".join(f"{each.session_id} ({each.name})" for each in self._sessions.values()) or "none"
        return ToolError(
            f"There is no session {session_id}; open here: {there}", kind="no_such_session", fix=fix, where=session_id
        )

    def lose(self, session_id: str, reason: str) -> None:
        """Note that a session is gone."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.process.end()
        self._lost[session_id] = reason
        while len(self._lost) > _REMEMBERED:
            del self._lost[next(iter(self._lost))]

    def close(self, session_id: str) -> Session:
        """End a session."""
        session = self.find(session_id)
        del self._sessions[session_id]
        session.process.end()
        self._lost[session_id] = "it was closed"
        return session

    @property
    def lost(self) -> dict[str, str]:
        return dict(self._lost)

    def _end_idle(self) -> None:
        now = time.monotonic()
        for session in list(self._sessions.values()):
            if now - session.last_used >= self.idle_seconds:
                self.lose(session.session_id, f"it was idle for more than {self.idle_seconds:g} s")

    def apart(self, name: str) -> Session:
        """Return an empty document that is nobody's, for tools that work on files alone."""
        process = self._spare = self._take()
        session = Session("", name, process, time.monotonic())
        session.ask("open", name=name)
        return session

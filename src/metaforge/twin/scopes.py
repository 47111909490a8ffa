"""What each client is working on: the project it opened, the run it was given, its work session.

Kept in this process's memory, for as long as a connection lasts; a client that comes back opens its project again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from metaforge.tools.context import Caller
from metaforge.twin.ids import new_id

MAX_CLIENTS_COUNT = 1024
IDLE_SECONDS = 30 * 60.0


@dataclass(frozen=True)
class WorkSession:
    """The session that a call's event belongs to; an implicit one is made of its first event."""

    session_id: str
    implicit: bool


@dataclass
class _Scope:
    project_id: str = ""
    run_id: str = ""
    session: WorkSession | None = None
    last_at: float = 0.0


class ClientScopes:
    """The scope of every connected client, the longest unused forgotten first. For the event loop's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._scopes: OrderedDict[str, _Scope] = OrderedDict()

    @staticmethod
    def key(caller: Caller) -> str:
        """Return what tells a client apart: its connection, else who it is."""
        return caller.session_id or f"{caller.actor_id} {caller.client_name}"

    def project_of(self, caller: Caller) -> str:
        """Return the project that the client has opened, or an empty text."""
        scope = self._scopes.get(self.key(caller))
        return scope.project_id if scope and caller.session_id else ""

    def run_of(self, caller: Caller) -> str:
        """Return the run that the client was bound to, or an empty text."""
        scope = self._scopes.get(self.key(caller))
        return scope.run_id if scope and caller.session_id else ""

    def bind_project(self, caller: Caller, project_id: str) -> bool:
        """Make a project the client's, until it opens another.

        Returns:
            False for a caller without a connection of its own, which cannot be recognised at its next call.
        """
        if caller.session_id:
            self._scope(caller).project_id = project_id
        return bool(caller.session_id)

    def bind_run(self, caller: Caller, run_id: str, project_id: str) -> bool:
        """Make a run the client's; an empty run_id releases it. Returns what `bind_project` does."""
        if caller.session_id:
            scope = self._scope(caller)
            scope.run_id, scope.project_id = run_id, project_id or scope.project_id
        return bool(caller.session_id)

    def open_session(self, caller: Caller, session_id: str) -> None:
        """Let a session that the client started take over from the implicit one."""
        scope = self._scope(caller)
        scope.session, scope.last_at = WorkSession(session_id, implicit=False), self._clock()

    def end_session(self, session_id: str) -> None:
        """Let no more calls belong to a session."""
        for scope in self._scopes.values():
            if scope.session is not None and scope.session.session_id == session_id:
                scope.session = None

    def forget_project(self, project_id: str) -> None:
        """Unbind a project that is gone from every client."""
        for scope in self._scopes.values():
            if scope.project_id == project_id:
                scope.project_id = scope.run_id = ""

    def current_session(self, caller: Caller) -> WorkSession | None:
        """Return the client's work session if it has one that is not idle."""
        return self._alive(self._scopes.get(self.key(caller)), self._clock())

    def session_for(self, caller: Caller, before: WorkSession | None) -> WorkSession:
        """Return the session that a call which just ended belongs to, and note that the client is active.

        Args:
            caller: who called.
            before: the client's session when the call began: what `session.complete` ended is still its own.
        """
        scope, now = self._scopes.get(self.key(caller)), self._clock()
        found = self._alive(scope, now) or before
        if found is None:
            found = WorkSession(new_id("s"), implicit=True)
            scope = self._scope(caller)
            scope.session = found
        if scope is not None:
            scope.last_at = now
        return found

    @staticmethod
    def _alive(scope: _Scope | None, now: float) -> WorkSession | None:
        if scope is None or scope.session is None:
            return None
        return None if scope.session.implicit and now - scope.last_at > IDLE_SECONDS else scope.session

    def _scope(self, caller: Caller) -> _Scope:
        key = self.key(caller)
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = _Scope(last_at=self._clock())
            if len(self._scopes) > MAX_CLIENTS_COUNT:
                self._scopes.popitem(last=False)
        else:
            self._scopes.move_to_end(key)
        return scope

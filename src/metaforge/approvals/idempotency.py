"""Writes that carry a key of their caller's: sent again, they are not done again, and the first result comes back.

A client that lost an answer cannot know whether its write was done. A key is the caller's own, and stands for one call:
with other arguments it is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from metaforge.approvals.faults import LedgerUnavailable
from metaforge.approvals.holders import Holder
from metaforge.approvals.model import later
from metaforge.core.clock import utc_now
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.store.transaction import Transaction

MAX_KEY_CHARS = 200
KEPT_SECONDS = 7 * 24 * 3600.0
"""How long a result is kept."""
_LONGEST_WAIT_SECONDS = 2 * 3600.0
"""A write that is neither held nor running for so long belongs to a process that cannot be seen, and is dead."""
_WAITING, _RUNNING, _DONE = "waiting", "running", "done"


class KeyedWrites:
    """The keys of writes, in the store of all processes. Every method blocks for one short, synced transaction.

    A write reserves its key before it is held, starts when it is about to run, and is then finished with its result,
    or released where nothing was done.
    """

    def __init__(self, database: Database, holder: Holder, clock: Callable[[], str] = utc_now) -> None:
        """Remember where keys are kept; nothing is opened."""
        self._database = database
        self._holder = holder
        self._clock = clock

    def reserve(self, actor_id: str, key: str, digest: str, call_id: str) -> dict[str, Any] | None:
        """Take a key for a call, or return the result of the one that had it.

        Args:
            actor_id: whose key it is.
            key: what the caller named the write.
            digest: `digest.call_digest` of the call.
            call_id: the call.

        Returns:
            The stored result, or None where the call is to go on.

        Raises:
            InvalidArguments: the key is too long or stands for another call.
            ToolError: `write_in_progress` while the first one is held or runs; `write_outcome_unknown` where it ran
                and its server ended before it told.
        """
        if not 0 < len(key) <= MAX_KEY_CHARS:
            raise InvalidArguments(f"An idempotency key is 1 to {MAX_KEY_CHARS} characters; this one has {len(key)}")
        with self._writing() as transaction:
            if transaction.postgres:  # there, a row that is not there yet keeps nobody waiting
                transaction.run("select pg_advisory_xact_lock(hashtextextended(?, 7237003))", f"{actor_id}\n{key}")
            now = self._clock()
            transaction.run("delete from idempotent_writes where updated_at < ?", later(now, -KEPT_SECONDS))
            found = transaction.row(
                "select digest, call_id, state, holder, result, updated_at from idempotent_writes "
                "where actor_id = ? and key = ?",
                *(actor_id, key),
            )
            if found is not None:
                before, first_call, state, holder, result, updated_at = found
                if before != digest:
                    raise InvalidArguments(
                        f"The idempotency key {key!r} belongs to another call ({first_call}) with other arguments: "
                        "send that call unchanged, or this one with a new key",
                        code="idempotency_key_reused",
                    )
                if state == _DONE:
                    stored: dict[str, Any] = orjson.loads(result)
                    return stored
                self._judge(key, first_call, state, holder, updated_at, now)
                transaction.run("delete from idempotent_writes where actor_id = ? and key = ?", actor_id, key)
            transaction.run(
                "insert into idempotent_writes (actor_id, key, digest, call_id, state, holder, result, updated_at) "
                "values (?, ?, ?, ?, ?, ?, '', ?)",
                *(actor_id, key, digest, call_id, _WAITING, self._holder.id, now),
            )
        return None

    def start(self, actor_id: str, key: str, call_id: str) -> None:
        """Say that the call is about to run: from here on a lost answer means that nobody knows what was done."""
        self._update(actor_id, key, call_id, _RUNNING, "")

    def finish(self, actor_id: str, key: str, call_id: str, result: dict[str, Any]) -> None:
        """Keep the result for whoever sends the call again."""
        self._update(actor_id, key, call_id, _DONE, orjson.dumps(result).decode())

    def release(self, actor_id: str, key: str, call_id: str) -> None:
        """Give the key back: the call was refused or failed, and changed nothing."""
        with self._writing() as transaction:
            transaction.run(
                "delete from idempotent_writes where actor_id = ? and key = ? and call_id = ? and state <> ?",
                *(actor_id, key, call_id, _DONE),
            )

    # -- inside --------------------------------------------------------------------------------------------------

    def _judge(self, key: str, call_id: str, state: str, holder: str, updated_at: str, now: str) -> None:
        """Return where a key may be taken over, whose call never ran; raise otherwise."""
        alive = self._holder.alive(holder)
        if alive is None:
            alive = now < later(updated_at, _LONGEST_WAIT_SECONDS)
        if alive:
            raise ToolError(
                f"The write with the idempotency key {key!r} is on its way already (call {call_id})",
                kind="write_in_progress", retryable=True, failure_mode=FailureMode.ENVIRONMENT,
                fix="Send it again unchanged when that call has ended: its result comes back",
            )  # fmt: skip
        if state == _RUNNING:
            raise ToolError(
                f"The write with the idempotency key {key!r} ran (call {call_id}), and its server ended before it "
                "could say what was done",
                kind="write_outcome_unknown", failure_mode=FailureMode.ENVIRONMENT,
                fix="Look at the design record first; if it was not done, send it with a new key",
            )  # fmt: skip

    def _update(self, actor_id: str, key: str, call_id: str, state: str, result: str) -> None:
        with self._writing() as transaction:
            transaction.run(
                "update idempotent_writes set state = ?, result = ?, holder = ?, updated_at = ? "
                "where actor_id = ? and key = ? and call_id = ?",
                *(state, result, self._holder.id, self._clock(), actor_id, key, call_id),
            )

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        try:
            with self._database.transaction(write=True) as transaction:
                yield transaction
        except StoreUnavailable as fault:
            raise LedgerUnavailable(
                f"Idempotency keys cannot be kept, so a write that carries one does not run. {fault.message}"
            ) from None

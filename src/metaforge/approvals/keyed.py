"""Run a write that carries a key of its caller's once, and give its result to whoever sends it again."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from metaforge.approvals.digest import call_digest
from metaforge.approvals.held import HeldCall
from metaforge.approvals.idempotency import KeyedWrites
from metaforge.core.errors import FailureMode, InvalidArguments, ToolCrashed, ToolError, ToolTimedOut
from metaforge.tools.context import Artefact, ImageContent, Outcome, ProgramVersion

Start = Callable[[], Awaitable[None]]
_UNKNOWN = {"outcome": "unknown"}


class Keyed:
    """Keeps results of keyed writes.

    Args:
        writes: where keys and results are kept.
    """

    def __init__(self, writes: KeyedWrites) -> None:
        self._writes = writes

    async def run(self, call: HeldCall, key: str, act: Callable[[Start], Awaitable[Outcome]]) -> Outcome:
        """Run a call unless it ran before under its key.

        Args:
            call: validated.
            key: its caller's name for it.
            act: runs it, and awaits what it is given just before anything is done.

        Raises:
            InvalidArguments: the key stands for another call.
            ToolError: `write_in_progress`, `write_outcome_unknown`; or what the call raises.
        """
        actor_id, started = call.caller.actor_id, False
        # Neither the project that is open nor the adapter's version: the first of two calls may have changed them.
        tool_id = call.resolved().id

        def reserve() -> dict[str, Any] | None:
            digest = call_digest(tool_id, call.arguments, "", actor_id, "")
            return self._writes.reserve(actor_id, key, digest, call.id)

        stored = await asyncio.to_thread(reserve)
        if stored is not None:
            _refuse_elsewhere(stored, call, key)
            return _again(stored, key)

        async def start() -> None:
            nonlocal started
            await asyncio.to_thread(self._writes.start, actor_id, key, call.id)
            started = True

        try:
            outcome = await act(start)
        except BaseException as fault:
            # A refusal changed nothing; who was interrupted may have.
            is_unknown = started and isinstance(fault, asyncio.CancelledError | ToolTimedOut | ToolCrashed)
            await asyncio.shield(asyncio.ensure_future(self._give_up(actor_id, key, call.id, is_unknown)))
            raise
        await asyncio.to_thread(self._writes.finish, actor_id, key, call.id, _stored(outcome, call))
        return outcome

    async def _give_up(self, actor_id: str, key: str, call_id: str, is_unknown: bool) -> None:
        if is_unknown:
            await asyncio.to_thread(self._writes.finish, actor_id, key, call_id, {**_UNKNOWN, "call_id": call_id})
        else:
            await asyncio.to_thread(self._writes.release, actor_id, key, call_id)


class UsedOnce:
    """Marks tokens as used, across processes, beside the keys of writes."""

    _ACTOR = "request-state"

    def __init__(self, writes: KeyedWrites) -> None:
        self._writes = writes

    def use(self, token: str) -> bool:
        """Return whether this is the token's first use."""
        try:
            if self._writes.reserve(self._ACTOR, token, token, token) is not None:
                return False
        except ToolError:
            return False
        self._writes.finish(self._ACTOR, token, token, {"used": True})
        return True


def _refuse_elsewhere(stored: dict[str, Any], call: HeldCall, key: str) -> None:
    """Refuse a key that another session used for the project which was open there: it is another write.

    Several clients may share one identity, and keys that models make up are alike. The same session may have opened
    another project since, and one that has none open has lost its answer with its connection.
    """
    there = stored.get("project_id", "")
    if there and call.project_id and there != call.project_id and stored.get("sender") != _sender(call):
        raise InvalidArguments(
            f"The idempotency key {key!r} belongs to another call ({stored['call_id']}), in project {there}, and this "
            f"one is about {call.project_id}: send it with a new key",
            code="idempotency_key_reused",
        )


def _sender(call: HeldCall) -> str:
    """Return what tells clients of one identity apart; without sessions, what they call themselves."""
    return call.caller.session_id or call.caller.client_name


def _stored(outcome: Outcome, call: HeldCall) -> dict[str, Any]:
    return {
        "call_id": call.id,
        "project_id": call.project_id,
        "sender": _sender(call),
        "data": outcome.data,
        "summary": outcome.summary,
        "warnings": list(outcome.warnings),
        "next_step": outcome.next_step,
        "files": [asdict(each) for each in outcome.files],
        "images": [[base64.b64encode(each.png).decode(), each.caption] for each in outcome.images],
        "programs": [[each.name, each.version] for each in outcome.programs],
        "content": list(outcome.content),
        "meta": outcome.meta,
    }


def _again(stored: dict[str, Any], key: str) -> Outcome:
    first = stored["call_id"]
    if stored.get("outcome") == "unknown":
        raise ToolError(
            f"The write with the idempotency key {key!r} was interrupted (call {first}): nobody knows whether it was "
            "done",
            kind="write_outcome_unknown", failure_mode=FailureMode.ENVIRONMENT,
            fix="Look at the design record first; if it was not done, send it with a new key",
        )  # fmt: skip
    told = f"This is the result of call {first}, which carried the same idempotency key: nothing was done again"
    return Outcome(
        data=stored["data"],
        summary=stored["summary"],
        warnings=(told, *stored["warnings"]),
        next_step=stored["next_step"],
        files=tuple(Artefact(**each) for each in stored["files"]),
        images=tuple(ImageContent(base64.b64decode(png), caption) for png, caption in stored["images"]),
        programs=tuple(ProgramVersion(*each) for each in stored["programs"]),
        content=tuple(stored["content"]),
        meta={**stored["meta"], "replayOf": first},
    )

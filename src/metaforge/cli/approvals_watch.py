"""`metaforge approvals watch`: what waits, and every change as it happens."""

import asyncio
import sys
import time
from datetime import datetime

import orjson

from metaforge.app import App
from metaforge.approvals.model import Entry, State
from metaforge.cli.approvals import STATE_STYLES, as_data, state_of
from metaforge.cli.local import with_app
from metaforge.cli.screen import command_name, console
from metaforge.cli.twin_record import plain
from metaforge.core.errors import MetaForgeError

_TURN_SECONDS = 15.0
"""At least so often it looks, for those that end because nobody waits for them any more."""
_LISTED_COUNT = 200

Seen = dict[str, tuple[State, bool]]


def watch(*, as_json: bool) -> int:
    """Follow the ledger until Ctrl-C. Returns the exit status."""

    async def follow(app: App) -> None:
        seen: Seen = {}
        number, is_first = 0, True
        if not as_json:
            console(stderr=True).print("Waiting for calls that need a person; Ctrl-C ends.", style="dim")
        while True:
            found = await asyncio.to_thread(app.approvals.ledger.entries, "all", None, _LISTED_COUNT)
            for entry in reversed(found):
                standing = entry.state, entry.on_dashboard
                if seen.get(entry.approval_id) != standing and (not is_first or entry.state is State.AWAITING):
                    _tell(entry, as_json=as_json)
                seen[entry.approval_id] = standing
            is_first = False
            number = await app.approvals.waker.changed(number, time.monotonic() + _TURN_SECONDS)

    try:
        with_app(follow)
    except MetaForgeError as fault:
        console(stderr=True).print(plain(fault.message, lines=True), style="red")
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def _tell(entry: Entry, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(as_data(entry)) + b"\n")
        sys.stdout.buffer.flush()
        return
    request = entry.request
    at = datetime.fromisoformat(entry.updated_at).astimezone().strftime("%H:%M:%S")
    line = f"{at}  {entry.approval_id}  {state_of(entry)}  {request.tool_id}  {request.caller.actor_id}"
    out = console()
    out.print(plain(f"{line}  {request.summary or request.title}"), style=STATE_STYLES[entry.state])
    if entry.state is State.AWAITING and entry.on_dashboard:
        out.print(f"          {command_name()} approvals show {entry.approval_id}", style="dim")
    sys.stdout.flush()

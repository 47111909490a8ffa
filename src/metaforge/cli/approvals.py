"""`metaforge approvals list`, `show`, `approve` and `reject`."""

import getpass
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson

from metaforge.app import App
from metaforge.approvals.faults import NotDecidable, UnknownApproval
from metaforge.approvals.model import Approver, Entry, Kind, State, Verdict, seconds_between
from metaforge.approvals.showing import shown_arguments
from metaforge.approvals.wire import entry_json
from metaforge.cli.call import BadUsage, parse_arguments, read_arguments
from metaforge.cli.local import with_app
from metaforge.cli.screen import command_name, console, print_json
from metaforge.cli.twin_record import plain, when
from metaforge.core.clock import utc_now
from metaforge.core.errors import MetaForgeError

T = TypeVar("T")

STATE_STYLES = {
    State.AWAITING: "yellow", State.APPROVED: "green", State.RUNNING: "green", State.COMPLETED: "green",
    State.REJECTED: "red", State.FAILED: "red", State.TIMED_OUT: "dim", State.CANCELED: "dim",
}  # fmt: skip
STATUSES = ("pending", "decided", "all")
FULL_ID_CHARS = len("run_") + 16
MAX_LISTED = 1000
AGENT_SHELLS = {
    "CLAUDECODE": "Claude Code", "CODEX_SANDBOX": "Codex", "CODEX_SANDBOX_NETWORK_DISABLED": "Codex",
    "CODEX_THREAD_ID": "Codex", "CURSOR_AGENT": "Cursor", "GEMINI_CLI": "Gemini CLI", "AI_AGENT": "an agent",
}  # fmt: skip
"""Variables that agents set in the shells they run commands in."""


def show_list(status: str, project: str, limit: int, *, as_json: bool) -> int:
    """List approvals, newest first. Returns the exit status."""
    if status not in STATUSES:
        console(stderr=True).print(f"--status takes {', '.join(STATUSES)}, not {status!r}", style="red")
        return 2
    found = on_app(lambda app: app.approvals.ledger.entries(status, project or None, limit))  # type: ignore[arg-type]
    if found is None:
        return 1
    if as_json:
        print_json({"approvals": [as_data(entry) for entry in found]})
        return 0
    out = console()
    if not found:
        out.print("Nothing waits for approval." if status == "pending" else "There are no such approvals.")
        return 0
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("approval", "state", "when", "tool", "caller", "what"):
        table.add_column(title, no_wrap=title != "what")
    for entry in found:
        request = entry.request
        table.add_row(
            entry.approval_id, plain(state_of(entry)), when(request.created_at), plain(request.tool_id),
            plain(request.caller.actor_id), plain(request.summary or request.title),
            style=STATE_STYLES[entry.state],
        )  # fmt: skip
    out.print(table)
    return 0


def show_one(approval_id: str, *, as_json: bool) -> int:
    """Show one approval. Returns the exit status."""
    found = on_app(lambda app: find(app, approval_id))
    if found is None:
        return 1
    if as_json:
        print_json(as_data(found))
    else:
        show(found)
    return 0


def approve(approval_id: str, changes: list[str], args_file: Path | None, reason: str, *, as_json: bool) -> int:
    """Approve one, with other arguments where some are given. Returns the exit status, 2 for bad usage."""

    def edited(entry: Entry) -> Mapping[str, Any] | None:
        if not changes and args_file is None:
            return None
        return parse_arguments(changes, read_arguments(args_file) if args_file else shown_arguments(entry.arguments))

    return _decide(approval_id, "approve", reason, edited, as_json=as_json)


def reject(approval_id: str, reason: str, *, as_json: bool) -> int:
    """Reject one. Returns the exit status."""
    return _decide(approval_id, "reject", reason, lambda _: None, as_json=as_json)


def _decide(
    approval_id: str,
    verdict: Verdict,
    reason: str,
    edited: Callable[[Entry], Mapping[str, Any] | None],
    *,
    as_json: bool,
) -> int:
    def decide(app: App) -> Entry:
        refuse_agents(app.settings.environment)
        entry = find(app, approval_id)
        return app.approvals.ledger.decide(entry.approval_id, verdict, approver(), reason, edited(entry))

    try:
        decided = on_app(decide)
    except BadUsage as fault:
        console(stderr=True).print(str(fault), style="red")
        return 2
    if decided is None:
        return 1
    if as_json:
        print_json(as_data(decided))
        return 0
    done = "Approved" if verdict == "approve" else "Rejected"
    changed = " with changed arguments" if decided.edited else ""
    console().print(f"{done}{changed}: {plain(decided.request.tool_id)} ({decided.approval_id})", style="bold")
    return 0


def approver() -> Approver:
    """Return who decides on the command line: the operating system's user, whom nobody verified."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        name = "unknown"
    return Approver(f"local:{name}", verified=False, surface="cli")


def refuse_agents(environment: Mapping[str, str]) -> None:
    """Refuse a decision out of an agent's own shell. Raises NotDecidable."""
    agent = next((name for variable, name in AGENT_SHELLS.items() if environment.get(variable)), "")
    if agent:
        raise NotDecidable(
            f"This is {agent}'s shell, and a person decides: use a terminal of your own, or the dashboard. Nothing was "
            "recorded",
            status=403, code="human_authority_required",
        )  # fmt: skip


def find(app: App, approval_id: str) -> Entry:
    """Return the entry of an id, as the unified API writes it too, or of the first digits of one.

    Raises:
        UnknownApproval: none has it, or several.
    """
    asked = approval_id.removeprefix("tool:")
    asked = asked if asked.startswith("run_") else f"run_{asked}"
    if len(asked) >= FULL_ID_CHARS:
        return app.approvals.ledger.get(asked)
    found = [
        each for each in app.approvals.ledger.entries("all", limit=MAX_LISTED) if each.approval_id.startswith(asked)
    ]
    if len(found) == 1:
        return found[0]
    several = f"{asked} fits {len(found)} approvals: {', '.join(each.approval_id for each in found[:5])}"
    none = f"There is no approval {asked}; {command_name()} approvals list --status all shows the latest"
    raise UnknownApproval(several if found else none, approval_id=asked)


def on_app(work: Callable[[App], T]) -> T | None:
    """Run `work` on the application; None after an error was told."""

    async def run(app: App) -> T:
        return work(app)

    try:
        return with_app(run)
    except MetaForgeError as fault:
        console(stderr=True).print(plain(fault.message, lines=True), style="red")
        for name, expected in dict(fault.data.get("fields") or {}).items():
            console(stderr=True).print(f"  {plain(str(name))}: {plain(str(expected))}", style="red")
        return None


def as_data(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON data, without secrets."""
    data = {"approval_id": entry.approval_id, **entry_json(entry, shown=True)}
    del data["holder"]
    return data


def state_of(entry: Entry) -> str:
    """Return where an entry is, in a few words: how long it still waits, or how it ended and by whom."""
    if entry.state is State.AWAITING:
        left = seconds_between(utc_now(), entry.request.expires_at)
        return f"waits, {left:.0f} s left" if left > 0 else "waits, its window is over"
    words = entry.state.value.replace("_", " ")
    if entry.decision is not None and entry.state in (State.APPROVED, State.REJECTED):
        return f"{words} by {entry.decision.approver.name}"
    return words


def show(entry: Entry) -> None:
    """Show one entry to a person."""
    out, request = console(), entry.request
    out.print(f"{plain(request.tool_id)}  {plain(state_of(entry))}", style="bold")
    if request.summary or request.title:
        out.print(f"  {plain(request.summary or request.title)}")
    caller = request.caller
    client = " ".join(filter(None, (caller.client_name, caller.client_version)))
    verified = "verified" if caller.verified else "not verified"
    lines = {
        "approval": entry.approval_id,
        "asked by": f"{caller.actor_id} ({caller.trust.value}, {verified})" + (f" through {client}" if client else ""),
        "project": request.project_id or "none",
        "effect": request.effect.value,
        "held": request.reason_held,
        "asked": f"{when(request.created_at)}, for {request.window_seconds:g} s",
        "decided": "a person's own decision" if request.kind is Kind.HUMAN_AUTHORITY else "",
        "digest": entry.digest,
        "call": request.call_id,
    }
    for title, text in lines.items():
        if text:
            out.print(f"  {title:<9} {plain(text)}")
    _show_fields("Arguments", shown_arguments(request.arguments))
    for name, title in (("now", "Now"), ("after", "After it")):
        if request.change.get(name):
            _show_fields(title, request.change[name])
    _show_decision(entry)


def _show_fields(title: str, fields: Any) -> None:
    out = console()
    out.print(f"\n{title}")
    # As JSON: what is decided is every digit and every element, not what reads well.
    for line in orjson.dumps(fields, option=orjson.OPT_INDENT_2).decode().splitlines():
        out.print("  " + plain(line))


def _show_decision(entry: Entry) -> None:
    out, decision = console(), entry.decision
    if decision is not None:
        who = decision.approver
        verified = "verified" if who.verified else "not verified"
        word = "Approved" if decision.decision == "approve" else "Rejected"
        out.print(f"\n{word} by {plain(who.name)} ({verified}, {who.surface}) at {when(decision.decided_at)}")
        if decision.reason:
            out.print(f"  {plain(decision.reason)}")
        if decision.arguments is not None:
            _show_fields("With these arguments instead", shown_arguments(decision.arguments))
    if entry.ended_reason:
        out.print(f"\nEnded: {plain(entry.ended_reason)}")

"""`metaforge calls`: the record of tool calls."""

from datetime import datetime
from typing import Any

import orjson

from metaforge.app import App
from metaforge.cli.local import with_app
from metaforge.cli.screen import console, number, print_json, told
from metaforge.core.errors import MetaForgeError
from metaforge.record.call_record import CallRecord
from metaforge.record.queries import MAX_LIMIT
from metaforge.tools.context import Artefact

STYLES = {"ok": "green", "cancelled": "yellow"}


def show_list(limit: int, tool: str, status: str, *, as_json: bool) -> int:
    """List calls, newest first. Returns the exit status."""

    async def work(app: App) -> list[CallRecord]:
        return app.calls.list_calls(limit, tool, status)

    records = _read(work)
    if records is None:
        return 1
    if as_json:
        print_json({"calls": [as_data(record) for record in records]})
        return 0
    out = console()
    if not records:
        out.print("No calls are recorded yet." if not tool and not status else "No recorded call is like that.")
        return 0
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("call", "when", "tool", "status", "took", "result"):
        table.add_column(title, no_wrap=title != "result", justify="right" if title == "took" else "left")
    for record in records:
        said = record.summary or record.error_message.partition("\n")[0]
        table.add_row(
            record.call_id, _when(record), record.tool_id, record.status, _took(record.duration_ms), said,
            style="" if record.status == "ok" else STYLES.get(record.status, "red"),
        )  # fmt: skip
    out.print(table)
    return 0


def show_one(call_id: str, *, as_json: bool) -> int:
    """Show one call. Returns the exit status."""

    async def work(app: App) -> list[CallRecord]:
        return _matching(app, call_id)

    found = _read(work)
    if found is None:
        return 1
    if len(found) != 1:
        several = f"fits {len(found)} calls: {', '.join(record.call_id for record in found[:5])}"
        none = "is recorded nowhere; metaforge calls list shows the latest"
        console(stderr=True).print(f"Call {call_id} {several if found else none}", style="red")
        return 1
    if as_json:
        print_json(as_data(found[0]))
    else:
        _show(found[0])
    return 0


def _matching(app: App, call_id: str) -> list[CallRecord]:
    try:
        return [app.calls.get_call(call_id)]
    except KeyError:
        return [record for record in app.calls.list_calls(MAX_LIMIT) if record.call_id.startswith(call_id)]


def _read(work: Any) -> list[CallRecord] | None:
    try:
        records: list[CallRecord] = with_app(work)
    except MetaForgeError as fault:
        console(stderr=True).print(fault.message, style="red")
        return None
    return records


def as_data(record: CallRecord) -> dict[str, Any]:
    """Return a record as JSON data, as it is stored."""
    data: dict[str, Any] = orjson.loads(record.line())
    return data


def _show(record: CallRecord) -> None:
    out = console()
    out.print(f"{record.tool_id}  {record.status}", style="bold")
    out.print(f"  call      {record.call_id}")
    out.print(f"  when      {_when(record)}, took {_took(record.duration_ms)}")
    client = " ".join(filter(None, (record.caller.client_name, record.caller.client_version)))
    out.print(f"  caller    {record.caller.actor_id} ({record.caller.trust}) {f'through {client}' if client else ''}")
    versions = [f"{record.adapter_id} adapter {record.adapter_version}"] if record.adapter_id else []
    versions += [f"{name} {version}" for name, version in record.programs.items()]
    out.print(f"  done by   {', '.join(versions) or '-'}")
    out.print("\nArguments")
    arguments = record.arguments if isinstance(record.arguments, dict) else {"arguments": record.arguments}
    for line in told(arguments) if arguments else ["none"]:
        out.print("  " + line)
    _show_files("Read", record.inputs)
    _show_files("Made", record.artefacts)
    if record.summary:
        out.print(f"\nResult\n  {record.summary}")
    if record.error_message:
        out.print(f"\n{record.error_kind or 'Error'}\n  {record.error_message}", style="red")
    for warning in record.warnings:
        out.print(f"\nWarning: {warning}", style="yellow")


def _show_files(title: str, files: tuple[Artefact, ...]) -> None:
    if not files:
        return
    out = console()
    out.print(f"\n{title}")
    for file in files:
        out.print(f"  {file.path}  {file.size_bytes:,} bytes  sha256 {file.sha256}")


def _when(record: CallRecord) -> str:
    return datetime.fromisoformat(record.started_at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _took(milliseconds: float) -> str:
    return f"{number(round(milliseconds / 1000, 2))} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"

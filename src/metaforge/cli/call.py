"""`metaforge call`: one tool call from a shell."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import orjson

from metaforge.app import App
from metaforge.cli.local import CALLER, opened
from metaforge.cli.screen import console, print_json, progress, told
from metaforge.core.errors import InvalidArguments, MetaForgeError, ToolError
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Outcome


class BadUsage(Exception):
    """The command line itself is wrong; the message says how it should be."""


def run(tool_id: str, pairs: list[str], args_file: Path | None, *, as_json: bool) -> int:
    """Call a tool and show its result. Returns 0, 1 for a refused or failed call, 2 for bad usage, 130 on Ctrl-C."""
    try:
        arguments = parse_arguments(pairs, read_arguments(args_file) if args_file else {})
    except BadUsage as fault:
        console(stderr=True).print(str(fault), style="red")
        return 2
    call_id = new_call_id()
    try:
        return asyncio.run(_call(tool_id, arguments, call_id, as_json=as_json))
    except MetaForgeError as fault:
        _show_error(fault, call_id, as_json=as_json)
        return 1
    except KeyboardInterrupt:
        console(stderr=True).print("Cancelled; the tool was stopped and nothing was written.", style="yellow")
        return 130


def parse_arguments(pairs: list[str], start: dict[str, Any]) -> dict[str, Any]:
    """Turn `key=value` pairs into arguments; `a.b=1` sets `b` inside `a`.

    Raises:
        BadUsage: a pair without `=`, or a dotted key that goes through something that is no object.
    """
    arguments = dict(start)
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise BadUsage(f"{pair!r} is no argument: write KEY=VALUE, for example output_path=out/part.step")
        *outer, last = key.split(".")
        inside = arguments
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise BadUsage(f"{key}: {name} already has the value {inside!r}, so nothing can be set inside it")
        inside[last] = parse_value(text)
    return arguments


def parse_value(text: str) -> Any:
    """Return JSON where the text is JSON, else the text itself."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def read_arguments(path: Path) -> dict[str, Any]:
    """Return the arguments in a JSON file; `-` is standard input.

    Raises:
        BadUsage: it cannot be read, or holds something else.
    """
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        data = orjson.loads(raw)
    except (OSError, orjson.JSONDecodeError) as fault:
        raise BadUsage(f"--args-file {path}: {fault}") from None
    if not isinstance(data, dict):
        raise BadUsage(f"--args-file {path}: holds a {type(data).__name__}, it must hold one JSON object")
    return data


async def _call(tool_id: str, arguments: dict[str, Any], call_id: str, *, as_json: bool) -> int:
    async with opened() as app:
        outcome = await _watched(app, tool_id, arguments, call_id)
    if as_json:
        print_json(as_data(outcome, call_id))
    else:
        show_outcome(outcome, call_id)
    return 0


async def _watched(app: App, tool_id: str, arguments: dict[str, Any], call_id: str) -> Outcome:
    with progress() as bars:
        task = bars.add_task(tool_id, total=1.0, doing="")

        def moved(fraction: float, message: str) -> None:
            bars.update(task, completed=fraction, doing=message)

        return await app.call_tool(tool_id, arguments, call_id=call_id, caller=CALLER, progress=moved)


def as_data(outcome: Outcome, call_id: str) -> dict[str, Any]:
    """Return a result as JSON data: the tool's own fields, files, warnings and the call's id."""
    files = [
        {
            "path": file.path,
            "absolute_path": file.absolute_path,
            "size_bytes": file.size_bytes,
            "media_type": file.media_type,
            "sha256": file.sha256,
        }
        for file in outcome.files
    ]
    extra = {"warnings": list(outcome.warnings), "next_step": outcome.next_step, "files": files}
    return {
        "summary": outcome.summary,
        **outcome.data,
        **{key: value for key, value in extra.items() if value},
        "call_id": call_id,
    }


def show_outcome(outcome: Outcome, call_id: str) -> None:
    """Print a result for a person: verdict first, then numbers with units, warnings and files."""
    out = console()
    out.print(outcome.summary, style="bold")
    lines = list(told(outcome.data))
    if lines:
        out.print()
    for line in lines:
        out.print("  " + line)
    for warning in outcome.warnings:
        out.print(f"\nWarning: {warning}", style="yellow")
    if outcome.files:
        out.print("\nFiles")
        for file in outcome.files:
            out.print(f"  {file.absolute_path}  ({file.size_bytes:,} bytes)")
    if outcome.next_step:
        out.print(f"\nNext: {outcome.next_step}")
    out.print(f"\ncall {call_id}", style="dim")


def _show_error(fault: MetaForgeError, call_id: str, *, as_json: bool) -> None:
    if as_json:
        kind = fault.kind if isinstance(fault, ToolError) else type(fault).__name__
        print_json({"error": {"kind": kind, "message": fault.message, **fault.data}, "call_id": call_id})
        return
    out = console(stderr=True)
    out.print(fault.text() if isinstance(fault, ToolError) else fault.message, style="red")
    fields = fault.data.get("fields") if isinstance(fault, InvalidArguments) else None
    if isinstance(fields, dict) and not all(name in fault.message for name in fields):
        for name, expected in fields.items():
            out.print(f"  {name}: {expected}", style="red")
    if install := fault.data.get("install"):
        out.print(f"To add it: {install}")
    out.print(f"call {call_id}", style="dim")

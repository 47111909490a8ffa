"""`metaforge ledger verify` and `export`."""

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from metaforge.app import App
from metaforge.cli.approvals import on_app
from metaforge.cli.screen import command_name, console, print_json
from metaforge.cli.twin_record import plain


def verify(head: str, *, as_json: bool) -> int:
    """Check the whole chain. Returns the exit status."""
    noted = head.strip().lower()
    if noted and not re.fullmatch(r"[0-9a-f]{64}", noted):
        console(stderr=True).print("--head takes the 64 hex digits that an earlier check printed", style="red")
        return 2
    found = on_app(lambda app: app.approvals.ledger.verify(noted))
    if found is None:
        return 1
    if as_json:
        print_json({**asdict(found), "sound": found.sound})
    elif found.sound:
        out = console()
        out.print(f"Sound: {found.entries} events, each follows from the one before.", style="green")
        out.print(f"Head {found.head}")
        out.print(f"Keep it elsewhere, and check later: {command_name()} ledger verify --head {found.head}")
    else:
        out = console(stderr=True)
        out.print(f"Broken: {plain(found.reason)}", style="red")
        where = f" up to event {found.broken_at}" if found.broken_at else ""
        out.print(f"{found.entries} events fit{where}. No held write runs until the store is restored from a backup")
    return 0 if found.sound else 1


def export(output: Path | None) -> int:
    """Write every event as a line of JSON. Returns the exit status."""

    def write(app: App) -> int:
        lines = app.approvals.ledger.export()
        if output is None:
            with suppress(BrokenPipeError):
                _write(lines, sys.stdout.fileno())
            return 0
        # Who called what with which arguments is its owner's to show.
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            count = _write(lines, descriptor)
        finally:
            os.close(descriptor)
        console(stderr=True).print(f"Wrote {count} events to {output.resolve()}")
        return 0

    try:
        status = on_app(write)
    except OSError as fault:
        console(stderr=True).print(f"{output or 'standard output'}: {fault.strerror or fault}", style="red")
        return 1
    return 1 if status is None else status


def _write(lines: Iterable[str], descriptor: int) -> int:
    count = 0
    with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    return count

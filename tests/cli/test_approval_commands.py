"""`metaforge approvals` and `metaforge ledger`, on calls that this process holds."""

import getpass
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metaforge.approvals.digest import call_digest
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, Kind, Request, Route, State, later, new_approval_id
from metaforge.cli.approvals import AGENT_SHELLS
from metaforge.core.clock import utc_now
from metaforge.store.database import Database
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect

ARGUMENTS = {"name": "Drone", "mass_kg": 1.23456789, "api_key": "s3cret", "points_mm": list(range(12))}


class Shell:
    """A ledger with a living holder, and `metaforge` run beside it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "data", folder / "work"
        self.work.mkdir()
        self.database = Database("", self.home)
        self.holder = Holder(self.home)
        self.ledger = SqlLedger(self.database, self.holder)

    def hold(self, **changes: Any) -> Entry:
        now = utc_now()
        request = Request(
            new_approval_id(), "0123456789abcdef", "project.create", Kind.TOOL_CALL, Effect.WRITE, ARGUMENTS, "",
            "1.0.0", "p1", "", Caller("bob", Trust.UNTRUSTED, "claude-code", "2.1.332", "s"), "Create a project",
            "Create the project Drone", "writes of remote callers wait for a person", Route.DASHBOARD, now,
            later(now, 600), 600.0, {"now": {"projects": 1}, "after": {"projects": 2}},
        )  # fmt: skip
        request = replace(request, **changes)
        digest = call_digest(request.tool_id, request.arguments, request.project_id, "bob", "1.0.0")
        return self.ledger.open(replace(request, digest=digest))

    def __call__(self, *arguments: str, stdin: str | None = None, **environ: str) -> "subprocess.CompletedProcess[str]":
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge", *arguments], cwd=self.work, capture_output=True, text=True,
            check=False, input=stdin if stdin is not None else "", env=self.environ(**environ),
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran

    def environ(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("METAFORGE_") and name not in AGENT_SHELLS
        }
        return {**kept, "METAFORGE_HOME": str(self.home), "METAFORGE_ADAPTERS": "health", **more}

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.holder.close()
    shell.database.close()


def test_nothing_waits_at_first(shell: Shell) -> None:
    assert shell("approvals", "list").stdout == "Nothing waits for approval.\n"
    assert shell.json("approvals", "list") == {"approvals": []}


def test_the_list_says_what_waits_for_how_long_and_who_asks(shell: Shell) -> None:
    entry = shell.hold()
    told = shell("approvals", "list").stdout
    for part in (entry.approval_id, "waits, ", " s left", "project.create", "bob", "Create the project Drone"):
        assert part in told
    assert [each["approval_id"] for each in shell.json("approvals", "list")["approvals"]] == [entry.approval_id]
    assert shell.json("approvals", "list", "--project", "other") == {"approvals": []}
    assert shell("approvals", "list", "--status", "maybe").returncode == 2


def test_one_is_shown_with_its_exact_arguments_and_no_secret(shell: Shell) -> None:
    entry = shell.hold()
    told = shell("approvals", "show", entry.approval_id).stdout
    for part in ("bob (untrusted, not verified) through claude-code 2.1.332", "1.23456789", "11", entry.digest,
                 "[redacted]", '"projects": 2'):  # fmt: skip
        assert part in told
    data = shell.json("approvals", "show", f"tool:{entry.approval_id}")
    assert data["request"]["arguments"] == {**ARGUMENTS, "api_key": "[redacted]"}
    assert "holder" not in data
    assert "s3cret" not in told + json.dumps(data)


def test_approving_records_the_systems_user_as_not_verified(shell: Shell) -> None:
    entry = shell.hold()
    ran = shell("approvals", "approve", entry.approval_id, "--reason", "go on")
    assert (ran.returncode, ran.stdout) == (0, f"Approved: project.create ({entry.approval_id})\n")
    decided = shell.ledger.get(entry.approval_id)
    assert decided.decision is not None
    assert decided.decision.approver == Approver(f"local:{getpass.getuser()}", False, "cli")
    assert decided.decision.reason == "go on"
    assert shell.ledger.claim(entry.approval_id, decided.digest).state is State.RUNNING


def test_approving_with_changes_keeps_what_is_hidden(shell: Shell) -> None:
    entry = shell.hold()
    ran = shell("approvals", "approve", entry.approval_id[:12], "mass_kg=1.1", "name=Glider")
    assert ran.stdout.startswith("Approved with changed arguments")
    assert shell.ledger.get(entry.approval_id).arguments == {**ARGUMENTS, "mass_kg": 1.1, "name": "Glider"}


def test_approving_with_arguments_from_a_file(shell: Shell) -> None:
    entry = shell.hold()
    ran = shell("approvals", "approve", entry.approval_id, "--args-file", "-", "--json", stdin='{"name": "Kite"}')
    assert json.loads(ran.stdout)["decision"]["arguments"] == {"name": "Kite"}


@pytest.mark.parametrize("change", ["mass_kg", "count=9007199254740993", "note=[redacted]"])
def test_changes_that_cannot_be_are_told_and_decide_nothing(shell: Shell, change: str) -> None:
    entry = shell.hold()
    ran = shell("approvals", "approve", entry.approval_id, change)
    assert ran.returncode in (1, 2)
    assert ran.stderr
    assert shell.ledger.get(entry.approval_id).state is State.AWAITING


def test_rejecting_takes_a_reason(shell: Shell) -> None:
    entry = shell.hold()
    assert shell.json("approvals", "reject", entry.approval_id, "--reason", "too heavy")["state"] == "rejected"
    assert "too heavy" in shell("approvals", "show", entry.approval_id).stdout


def test_what_was_decided_cannot_be_decided_again(shell: Shell) -> None:
    entry = shell.hold()
    shell("approvals", "reject", entry.approval_id)
    again = shell("approvals", "approve", entry.approval_id)
    assert again.returncode == 1
    assert "already rejected by local:" in again.stderr


def test_what_a_client_asks_is_answered_there(shell: Shell) -> None:
    entry = shell.hold(route=Route.ELICITATION)
    assert "on the screen in claude-code" in shell("approvals", "approve", entry.approval_id).stderr


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "AI_AGENT"])
def test_an_agents_shell_decides_nothing(shell: Shell, variable: str) -> None:
    entry = shell.hold()
    ran = shell("approvals", "approve", entry.approval_id, **{variable: "1"})
    assert ran.returncode == 1
    assert "a person decides: use a terminal of your own" in ran.stderr
    assert shell.ledger.get(entry.approval_id).state is State.AWAITING
    assert entry.approval_id in shell("approvals", "list", **{variable: "1"}).stdout


def test_an_id_that_fits_none_or_several_is_told(shell: Shell) -> None:
    shell.hold(approval_id="run_aaaa000000000001")
    shell.hold(approval_id="run_aaaa000000000002")
    assert "fits 2 approvals" in shell("approvals", "show", "run_aaaa").stderr
    assert "There is no approval run_bbbb" in shell("approvals", "show", "bbbb").stderr
    assert "There is no approval run_bbbb000000000001" in shell("approvals", "approve", "run_bbbb000000000001").stderr


def test_what_others_named_moves_no_cursor(shell: Shell) -> None:
    entry = shell.hold(summary="a\x1b[2Jb\u202ec", tool_id="project.create", arguments={"name": "x\u202ey"})
    for told in (shell("approvals", "list").stdout, shell("approvals", "show", entry.approval_id).stdout):
        assert "\x1b" not in told
        assert "\u202e" not in told


def test_watching_shows_what_waits_and_each_change_as_it_happens(shell: Shell) -> None:
    first = shell.hold()
    process = subprocess.Popen(
        [sys.executable, "-m", "metaforge", "approvals", "watch", "--json"], cwd=shell.work, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.environ(),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        told = [json.loads(process.stdout.readline())]
        second = shell.hold()
        told.append(json.loads(process.stdout.readline()))
        shell.ledger.decide(first.approval_id, "approve", Approver("ann", True, "dashboard"))
        told.append(json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        process.communicate()
    assert [(each["approval_id"], each["state"]) for each in told] == [
        (first.approval_id, "awaiting_approval"),
        (second.approval_id, "awaiting_approval"),
        (first.approval_id, "approved"),
    ]


def test_a_sound_ledger_is_told_with_its_head(shell: Shell) -> None:
    entry = shell.hold()
    found = shell.json("ledger", "verify")
    assert found == {"entries": 1, "head": entry.hash, "broken_at": None, "reason": "", "sound": True}
    assert "Sound: 1 events" in shell("ledger", "verify", "--head", entry.hash).stdout
    assert shell("ledger", "verify", "--head", "0" * 63 + "1").returncode == 1
    assert shell("ledger", "verify", "--head", "12").returncode == 2


def test_a_ledger_that_was_changed_is_told_with_the_event(shell: Shell) -> None:
    for _ in range(3):
        shell.hold()
    with closing(sqlite3.connect(shell.database.path, isolation_level=None)) as connection:
        connection.execute("drop trigger approval_events_no_update")
        connection.execute("update approval_events set at = '2020-01-01T00:00:00.000Z' where seq = 2")
    ran = shell("ledger", "verify")
    assert ran.returncode == 1
    assert "Broken: event 2 was changed" in ran.stderr
    assert shell.json("ledger", "verify")["broken_at"] == 2


def test_an_export_is_private_and_proves_itself(shell: Shell) -> None:
    entry = shell.hold()
    shell.ledger.end(entry.approval_id, State.CANCELED)
    assert "Wrote 2 events" in shell("ledger", "export", "--output", "ledger.jsonl").stderr
    path = shell.work / "ledger.jsonl"
    assert path.stat().st_mode & 0o077 == 0
    assert path.read_text() == shell("ledger", "export").stdout
    before = "0" * 64
    for line in path.read_text().splitlines():
        told = json.loads(line)
        text = "\n".join((before, str(told["seq"]), told["approval_id"], told["event"], told["at"], told["body"]))
        before = hashlib.sha256(text.encode()).hexdigest()
        assert before == told["hash"]
    assert "s3cret" not in path.read_text()


def test_an_export_that_cannot_be_written_is_told(shell: Shell) -> None:
    ran = shell("ledger", "export", "--output", "nowhere/ledger.jsonl")
    assert ran.returncode == 1
    assert "nowhere/ledger.jsonl: No such file or directory" in ran.stderr


def test_a_gateway_that_cannot_be_reached_is_named(shell: Shell) -> None:
    ran = shell("approvals", "list", METAFORGE_GATEWAY_URL="http://127.0.0.1:1")
    assert ran.returncode == 1
    assert "gateway http://127.0.0.1:1 cannot be reached (ConnectError" in ran.stderr
    ran = shell("ledger", "verify", METAFORGE_GATEWAY_URL="http://127.0.0.1:1")
    assert "run `metaforge ledger verify` on its machine" in ran.stderr

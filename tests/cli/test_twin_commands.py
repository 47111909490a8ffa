"""`metaforge twin`: history, trace, impact, baselines and gates as a person sees them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.pinning import pin
from metaforge.twin.promotion import record_review
from metaforge.twin.store import TwinStore
from metaforge.twin.waivers import waived

COMMANDS = ("list", "history", "diff", "impact", "trace", "suspect", "review", "gate", "prd", "baseline create",
            "baseline list", "baseline diff")  # fmt: skip
MASS = {"name": "mass", "metric": "mass_kg", "operator": "<=", "limit": 0.4, "unit": "kg"}
FINISH = {"name": "finish", "acceptance_criteria": "no sharp edge is left", "verification_method": "inspection"}


class Shell:
    """Runs `metaforge twin` on a record of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "work").mkdir()
        self.twin = TwinStore(Database("", folder / "data"), BlobStore(folder / "data" / "blobs"))
        with self.twin.change(author="owner") as change:
            self.project_id = change.create_project("Quadcopter").project_id

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge", "twin", *arguments],
            cwd=self.folder / "work", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**kept, "METAFORGE_HOME": str(self.folder / "data"), "METAFORGE_ADAPTERS": "health"},
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran

    def json(self, *arguments: str) -> dict:
        return json.loads(self(*arguments, "--json").stdout)

    def define(self, kind: str, name: str, body: dict, reason: str = "") -> str:
        with self.twin.change(author="agent", project_id=self.project_id) as change:
            return change.define(kind, name, body, change_reason=reason).ref


@pytest.fixture
def twin(tmp_path: Path) -> Shell:
    (tmp_path / "data").mkdir()
    return Shell(tmp_path)


@pytest.fixture
def revised(twin: Shell) -> Shell:
    """A part revised after its evidence was recorded, and a baseline before."""
    twin.define("constraint_set", "Bracket", {"constraints": [MASS, FINISH]})
    twin.define("cad_model", "Bracket", {"measured": {"mass_kg": 0.35}})
    with twin.twin.change(author="agent", project_id=twin.project_id) as change:
        evidence = change.record("evidence", {"result": {}}, name="Edges inspected")
        change.link("supports", evidence, "CS-BRACKET", {"requirement": "finish"})
        change.link("valid_against", evidence, "CAD-BRACKET")
    assert twin("baseline", "create", "PDR-1", "--note", "preliminary review").returncode == 0
    twin.define("cad_model", "Bracket", {"measured": {"mass_kg": 0.43}}, "ribs added")
    return twin


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(twin, command):
    ran = twin(*command.split(), "--help")
    assert ran.returncode == 0
    assert "usage" in ran.stdout.lower()


def test_history_tells_revisions_reasons_and_what_is_suspect(revised):
    shown = revised("history", "CAD-BRACKET").stdout
    assert re.search(r"@2 head\s+committed .* agent\s+ribs added", shown)
    assert "1 suspect: it rests on an earlier revision" in shown
    assert "valid_against CAD-BRACKET@1  Edges inspected" in shown
    told = revised.json("history", "CAD-BRACKET")
    assert [row["ref"] for row in told["revisions"]] == ["CAD-BRACKET@1", "CAD-BRACKET@2"]


def test_trace_tells_how_requirements_stand(revised):
    shown = revised("trace").stdout
    assert "2 requirements, 1 fail, 1 stale" in shown
    assert "0.43 kg, margin -7.5 %, fail" in shown
    assert "suspect: revised to CAD-BRACKET@2: ribs added" in shown
    assert revised.json("trace")["status_counts"]["stale"] == 1


def test_a_review_clears_what_was_looked_at_again(revised):
    shown = revised("suspect").stdout
    link_id = re.search(r"link (l\w+)", shown)
    assert link_id is not None, shown
    assert revised("review", link_id[1], "--reason", "ribs leave the edges as they were").returncode == 0
    assert "Nothing is suspect" in revised("suspect").stdout
    assert revised.json("trace")["status_counts"]["stale"] == 0
    again = revised("review", link_id[1], "--reason", "once more")
    assert again.returncode == 1
    assert "Nothing is suspect in this project" in again.stderr


def test_diff_compares_revisions_and_baselines(revised):
    assert "measured.mass_kg: 0.35 -> 0.43" in revised("diff", "CAD-BRACKET@1", "CAD-BRACKET@2").stdout
    for shown in (revised("diff", "PDR-1", "now").stdout, revised("baseline", "diff", "PDR-1").stdout):
        assert "revised  CAD-BRACKET@1 -> CAD-BRACKET@2" in shown
        assert "CAD-BRACKET@2 by agent: ribs added" in shown
    assert revised.json("diff", "PDR-1", "now")["counts"]["revised"] == 1


def test_impact_tells_what_rests_on_a_part(revised):
    shown = revised("impact", "CAD-BRACKET").stdout
    assert "1 rests on it" in shown
    assert "Requirements verified through them: CS-BRACKET#finish" in shown
    assert revised.json("impact", "CAD-BRACKET", "--down")["hits"] == []


def test_gates_fail_the_command_until_nothing_is_in_the_way(revised):
    ran = revised("gate")
    assert ran.returncode == 1
    assert "NOT PASSED  suspect" in ran.stdout
    assert revised("gate", "open_drafts").returncode == 0
    told = revised.json("gate")
    assert {gate["gate"]: gate["passed"] for gate in told["gates"]} == {
        "suspect": False, "uncovered": True, "unverified": False, "open_drafts": True,
    }  # fmt: skip


def test_a_waived_obstacle_is_told_apart_with_reason_and_approver(revised):
    with revised.twin.change(author="agent", project_id=revised.project_id) as change:
        covers, _ = waived(change.view, [pin(change.view, "CS-BRACKET#mass")])
        body = {"statement": "It flies once.", "waives": covers}
        waiver = change.record("waiver", body, name="Heavy prototype")
    told = revised("gate", "unverified")
    assert "waits for a person's approval and changes nothing yet" in told.stdout
    with revised.twin.change(author="agent", project_id=revised.project_id) as change:
        record_review(change, waiver, "approved", approver="carol", approver_verified=True, comment="")
    shown = revised("gate", "unverified").stdout
    assert "waived  CS-BRACKET@1#mass: mass_kg <= 0.4 kg fails" in shown
    assert re.search(rf"It flies once\. \(waiver {waiver.node_id}, approved \S+ \S+ by carol\)", shown)
    gate = revised.json("gate", "unverified")["gates"][0]
    assert (gate["waived_count"], [each["ref"] for each in gate["obstacles"]]) == (1, ["CS-BRACKET@1#finish"])


def test_baselines_are_listed(revised):
    assert re.search(r"PDR-1\s+2\s.*preliminary review", revised("baseline", "list").stdout)
    assert revised.json("baseline", "list")["baselines"][0]["item_count"] == 2


def test_pages_need_nothing_else_and_run_nothing(revised):
    revised.define("cad_model", "<script>alert(1)</script>", {"measured": {"mass_kg": 0.1}})
    for command in (("trace",), ("baseline", "diff", "PDR-1")):
        assert revised(*command, "--html", "page.html").returncode == 0
        page = (revised.folder / "work" / "page.html").read_text()
        assert page.startswith("<!doctype html>")
        assert not re.search(r"<script|src=|href=|url\(", page)
    assert "&lt;script&gt;" in page
    assert "ribs added" in page


def test_a_page_that_cannot_be_written_is_told(revised):
    ran = revised("trace", "--html", "no/such/folder/page.html")
    assert ran.returncode == 1
    assert "cannot be written" in ran.stderr


def test_the_prd_is_printed(revised):
    assert "| mass | mass_kg <= 0.4 kg | error |" in revised("prd").stdout


def test_items_and_projects_are_listed(revised):
    assert "CAD-BRACKET" in revised("list").stdout
    with revised.twin.change(author="owner") as change:
        change.create_project("Rover")
    assert "Rover" in revised("list").stdout
    assert "CAD-BRACKET" in revised("list", "-p", "quad").stdout


def test_names_cannot_drive_the_terminal(twin):
    twin.define("cad_model", "\x1b[31mred\x07", {})
    assert "\x1b" not in twin("list").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("history", "CAD-BRAKET"), "CAD-BRACKET"),
        (("diff", "CAD-BRACKET@1", "CAD-BRACKET@7"), "@2 committed"),
        (("baseline", "diff", "PDR-2"), "There is PDR-1"),
        (("baseline", "create", "PDR-1"), "baselines never change"),
        (("gate", "supsect"), "suspect, uncovered, unverified, open_drafts"),
        (("trace", "-p", "Rover"), "Quadcopter"),
    ],
)
def test_errors_name_what_there_is(revised, arguments, told):
    ran = revised(*arguments)
    assert ran.returncode == 1
    assert told in ran.stderr


def test_several_projects_ask_which(twin):
    with twin.twin.change(author="owner") as change:
        change.create_project("Rover")
    ran = twin("trace")
    assert ran.returncode == 1
    assert "--project" in ran.stderr
    assert "Rover" in ran.stderr

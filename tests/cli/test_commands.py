"""The commands as a person runs them: exit status, text, JSON; never a traceback."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("doctor", "demo", "tools", "call", "adapters", "open", "calls list", "calls show", "new adapter", "mcp")
ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Shell:
    """Runs `metaforge` in a workspace and home of its own."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.home = folder / "data"
        self.workspace.mkdir()

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("METAFORGE_", "DISPLAY"))}
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge", *arguments],
            cwd=self.workspace, input=stdin, capture_output=True, text=True, check=False,
            env={**kept, "METAFORGE_HOME": str(self.home), "METAFORGE_ADAPTERS": "health", **environment},
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran


@pytest.fixture
def metaforge(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(metaforge, command):
    ran = metaforge(*command.split(), "--help")
    assert ran.returncode == 0
    assert "usage" in ran.stdout.lower()


def test_help_loads_nothing_that_a_command_needs():
    code = "import sys, metaforge.cli.commands; print([m for m in sys.modules if m.startswith('metaforge')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == str(
        ["metaforge", "metaforge.cli"]
        + [f"metaforge.cli.{name}" for name in ("approval_commands", "knowledge_commands", "twin_commands", "commands")]
    )


def test_the_version_is_told(metaforge):
    assert metaforge("--version").stdout.startswith("metaforge 0.")


def test_the_tools_of_a_profile_are_listed_with_what_they_cost(metaforge):
    told = metaforge("tools", "--profile", "core", METAFORGE_PROFILE="electronics")
    assert "21 tools, " in told.stdout
    assert "tokens to a model" in told.stdout
    assert "project.delete" not in told.stdout
    listed = json.loads(metaforge("tools", "--profile", "core", "--json").stdout)["tools"]
    assert {"project.open", "twin.record_evidence"} <= {tool["tool_id"] for tool in listed}
    assert "there are: core, mechanical" in metaforge("tools", "--profile", "nope").stderr


def test_tools_are_listed_for_people_and_for_programs(metaforge):
    assert "health.check" in metaforge("tools").stdout
    listed = json.loads(metaforge("tools", "--json").stdout)
    assert listed["tools"][0]["tool_id"] == "health.check"
    assert listed["tools"][0]["effect"] == "read"


def test_one_tool_is_explained_under_any_spelling(metaforge):
    assert "Arguments" in metaforge("tools", "health_check").stdout


def test_a_call_is_shown_and_recorded(metaforge):
    shown = metaforge("call", "health.check")
    assert shown.returncode == 0
    assert "adapters: 5" in shown.stdout
    call_id = shown.stdout.split()[-1]
    assert call_id in metaforge("calls", "list").stdout
    record = json.loads(metaforge("calls", "show", call_id[:8], "--json").stdout)
    assert (record["call_id"], record["tool_id"], record["status"]) == (call_id, "health.check", "ok")
    assert record["caller"]["client_name"] == "metaforge-cli"


def test_a_calls_json_holds_the_tools_own_fields(metaforge):
    data = json.loads(metaforge("call", "health.check", "--json").stdout)
    assert {row["adapter_id"] for row in data["adapters"]} == {"health", "project", "session", "twin", "constraint"}
    assert data["call_id"]


def test_a_misspelt_tool_is_refused_with_the_nearest(metaforge):
    ran = metaforge("call", "helth.check")
    assert ran.returncode == 1
    assert "Did you mean: health.check" in ran.stderr


def test_a_wrong_argument_is_refused_by_name(metaforge):
    ran = metaforge("call", "health.check", "speed=11")
    assert ran.returncode == 1
    assert "speed" in ran.stderr


def test_errors_are_json_for_programs(metaforge):
    ran = metaforge("call", "helth.check", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["did_you_mean"] == ["health.check"]


def test_a_pair_without_a_value_is_bad_usage(metaforge):
    ran = metaforge("call", "health.check", "speed")
    assert ran.returncode == 2
    assert "KEY=VALUE" in ran.stderr


def test_arguments_come_from_a_file_or_a_pipe(metaforge):
    (metaforge.workspace / "args.json").write_text('{"speed": 1}')
    assert "speed" in metaforge("call", "health.check", "--args-file", "args.json").stderr
    assert "speed" in metaforge("call", "health.check", "--args-file", "-", stdin='{"speed": 1}').stderr
    assert metaforge("call", "health.check", "--args-file", "none.json").returncode == 2


def test_an_unknown_call_is_told(metaforge):
    ran = metaforge("calls", "show", "feed")
    assert ran.returncode == 1
    assert "recorded nowhere" in ran.stderr


def test_an_empty_record_says_so(metaforge):
    assert metaforge("calls", "list").stdout.strip() == "No calls are recorded yet."


def test_a_dangerous_workspace_is_refused_in_words(metaforge):
    ran = metaforge("tools", METAFORGE_WORKSPACE="/")
    assert ran.returncode == 1
    assert "root of the file system" in ran.stderr


def test_a_bad_setting_is_a_note_for_people_not_a_log_line(metaforge):
    ran = metaforge("tools", METAFORGE_MAX_WORKERS="many")
    assert ran.returncode == 0
    assert "note: METAFORGE_MAX_WORKERS='many' is ignored" in ran.stderr
    assert "{" not in ran.stderr


@pytest.mark.program("gmsh")
@pytest.mark.program("cadquery")
def test_doctor_names_what_is_missing_and_the_command_that_mends_it(metaforge):
    ran = metaforge("doctor", "--json", PATH="/nonexistent")
    assert ran.returncode == 1
    checks = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    assert checks["ccx"]["state"] == "missing"
    assert "ccx" in checks["ccx"]["fix"]
    assert checks["Claude Code"]["state"] == "note"
    assert checks["gmsh"]["state"] == "ok"


@pytest.mark.program("ccx")
@pytest.mark.program("gmsh")
@pytest.mark.program("cadquery")
def test_doctor_is_content_where_everything_is_there(metaforge):
    ran = metaforge("doctor")
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.strip().endswith("Everything needed is there.")


def test_a_picture_becomes_one_page(metaforge):
    (metaforge.workspace / "a&b.png").write_bytes(ONE_PIXEL)
    ran = metaforge("open", "a&b.png")
    page = Path(ran.stdout.splitlines()[0])
    assert ran.returncode == 0
    assert "There is no desktop here" in ran.stdout
    assert f"data:image/png;base64,{base64.b64encode(ONE_PIXEL).decode()}" in page.read_text()
    assert "a&amp;b.png" in page.read_text()


@pytest.mark.parametrize("name", ["missing.step", "notes.docx"])
def test_what_cannot_be_shown_is_told(metaforge, name):
    (metaforge.workspace / "notes.docx").write_text("x")
    ran = metaforge("open", name)
    assert ran.returncode == 1
    assert name in ran.stderr

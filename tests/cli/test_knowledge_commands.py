"""`metaforge knowledge` as a person uses it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


class Shell:
    """Runs `metaforge knowledge` on a library of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge", "knowledge", *arguments],
            cwd=self.work, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**kept, "METAFORGE_HOME": str(self.folder / "data"), "METAFORGE_ADAPTERS": "health"},
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran


@pytest.fixture
def knowledge(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_documents_are_put_in_asked_listed_and_removed(knowledge: Shell) -> None:
    (knowledge.work / "docs").mkdir()
    (knowledge.work / "docs" / "power.md").write_text("# Power\n\nThe LM317T feeds the board.\n")
    (knowledge.work / "docs" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    first = knowledge("ingest", "docs", "--type", "component")
    assert first.returncode == 0, first.stderr
    assert first.stdout == "docs/power.md: 1 passage, revision 1\n"
    assert "unchanged" in knowledge("ingest", "docs", "--type", "component").stdout
    found = knowledge("search", "LM317T")
    assert found.returncode == 0
    assert "docs/power.md, line 3" in found.stdout
    assert "The LM317T feeds the board." in found.stdout
    told = json.loads(knowledge("search", "LM317T", "--json").stdout)
    assert told["hits"][0]["source_path"] == "docs/power.md"
    assert "docs/power.md  component, revision 1, 1 passage" in knowledge("sources").stdout
    assert knowledge("remove", "docs/power.md").returncode == 1, "nobody said yes"
    assert "is removed: 1 passage" in knowledge("remove", "docs/power.md", "--yes").stdout
    assert knowledge("search", "LM317T").returncode == 1


def test_what_cannot_be_read_is_told_and_the_others_are_taken(knowledge: Shell) -> None:
    (knowledge.work / "a.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (knowledge.work / "b.md").write_text("A note on the bracket.\n")
    ran = knowledge("ingest", "a.md", "b.md", "missing.md", "-t", "session")
    assert ran.returncode == 1
    assert ran.stdout == "b.md: 1 passage, revision 1\n"
    assert "a.md is not text: it is a PNG picture" in ran.stderr
    assert "missing.md cannot be read" in ran.stderr
    assert knowledge("ingest", "b.md", "-t", "poem").returncode == 2
    assert "there is no knowledge source 'c.md'" in knowledge("remove", "c.md", "--yes").stderr
    assert "nope" in knowledge("sources", "-p", "nope").stderr

"""Every block of README and the guides does what the page says."""

import itertools
import os
import re
from pathlib import Path

import pytest
from doc_blocks import ROOT, Stage, blocks_of, run_page
from write_docs import PAGES, RUN_PAGES

SHIMS = Path(__file__).parent / "shims"
EXAMPLES = sorted((ROOT / "examples").glob("*/README.md"))
AGENTS = Path(os.environ.get("METAFORGE_NPM_CACHE", "~/.cache/metaforge-npm")).expanduser() / "node_modules" / ".bin"


@pytest.mark.parametrize("name", RUN_PAGES)
@pytest.mark.program("ccx")
@pytest.mark.program("gmsh")
@pytest.mark.program("cadquery")
@pytest.mark.slow
def test_every_block_of_the_page_is_true(name, tmp_path):
    stage = Stage(tmp_path / "project", tmp_path / "home", [SHIMS, AGENTS])
    stage.folder.mkdir()
    stage.home.mkdir()
    wrong = [result for result in run_page((ROOT / name).read_text(), stage) if result.problem]
    assert not wrong, "\n\n".join(f"{name}:{result.block.line}: {result.problem}" for result in wrong)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_generated_pages_are_fresh(path):
    assert path.is_file(), "run `make docs`"
    assert path.read_text() == PAGES[path](), "run `make docs`"


def every_page() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")), *EXAMPLES]


def test_blocks_stand_only_in_pages_that_are_run():
    run = {ROOT / name for name in RUN_PAGES}
    unrun = [path for path in every_page() if path not in run and list(blocks_of(path.read_text()))]
    assert unrun == []


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in every_page()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_page_is_reached_from_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        waiting += [
            (page.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        ]
    assert sorted(str(page.relative_to(ROOT)) for page in {*every_page()} - reached) == []


def test_links_to_a_heading_find_it():
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{heading}"
        for page in every_page()
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
        if heading not in headings_of(page.parent / target if target else page)
    ]
    assert broken == []


def headings_of(page: Path) -> set[str]:
    lines = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_recorded_checks_are_those_that_make_test_runs():
    """README shows a recorded run of `make test`, which cannot run inside itself: its steps are held to the script."""
    blocks = list(blocks_of((ROOT / "README.md").read_text()))
    text = next(after.text for before, after in itertools.pairwise(blocks) if "make test" in before.text)
    shown = [line.split()[0] for line in text.splitlines() if " ok " in line]
    runs = [
        line.split()[1] for line in (ROOT / "scripts" / "check").read_text().splitlines() if line.startswith("run ")
    ]
    assert shown == runs
    assert " passed" in text.splitlines()[-1]

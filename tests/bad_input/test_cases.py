"""The shared cases that attack the server: files it must not read, more memory than there is, links that lead out."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cases
IMPORT = "cadquery.get_properties"


def leaks(text: str) -> bool:
    """Whether a message holds a line of the accounts file."""
    return any(line in text for line in Path("/etc/passwd").read_text().splitlines())


@pytest.mark.program("cadquery")
def test_a_script_that_reads_outside_gets_nothing(server: Any, cases_dir: Path, verdict: Any) -> None:
    script = (cases_dir / "small" / "c16_reads_outside.py").read_text()
    text = server.refusal("cadquery.execute_script", script=script, output_path="out/c16.step")
    verdict.refused("small/c16_reads_outside", text, "No such file|denied|refused|not found")
    verdict.holds("small/c16_reads_outside", "content in the reply", not leaks(text), "none", leaks(text))


@pytest.mark.program("cadquery")
def test_a_script_that_wants_too_much_memory_is_told_the_limit(server: Any, cases_dir: Path, verdict: Any) -> None:
    script = (cases_dir / "small" / "c17_memory_bomb.py").read_text()
    text = server.refusal("cadquery.execute_script", script=script, output_path="out/c17.step")
    verdict.refused("small/c17_memory_bomb", text, "(?i)memory.*MB|MB.*memory")


@pytest.mark.program("cadquery")
def test_a_packed_step_file_is_not_unpacked(server: Any, cases_dir: Path, verdict: Any) -> None:
    case = "hostile-s02-zip-bomb"
    shutil.copy(cases_dir / case / "h02_bomb.stpz", server.workspace / "bomb.stpz")
    text = server.refusal(IMPORT, input_file="bomb.stpz")
    verdict.refused(case, text, "(?i)zip|packed|not a STEP|format|step")
    unpacked = [path for path in server.workspace.rglob("*") if path.is_file() and path.stat().st_size > 50_000_000]
    verdict.equal(case, "files unpacked", len(unpacked), 0)


@pytest.mark.program("cadquery")
@pytest.mark.parametrize("name", ["link.step", "loop.step", "zero.step", "pipe.step"])
def test_a_link_that_leads_out_is_refused_without_its_targets_content(server: Any, name: str, verdict: Any) -> None:
    path = server.workspace / name
    if name == "pipe.step":
        os.mkfifo(path)
    else:
        path.symlink_to({"link.step": "/etc/passwd", "loop.step": "loop.step", "zero.step": "/dev/zero"}[name])
    try:
        text = server.refusal(IMPORT, input_file=name)
    finally:
        path.unlink()
    case = "hostile-s07-symlinks"
    verdict.refused(case, text, "(?i)workspace|link|not a file|no file|regular|does not exist|nothing at|loop")
    verdict.holds(case, f"content in the reply, {name}", not leaks(text), "none", leaks(text))


TAKERS = {
    "cadquery.get_properties": ("input_file", {}),
    "calculix.validate_mesh": ("mesh_file", {}),
    "calculix.extract_results": ("frd_path", {}),
    "spice.run_simulation": ("netlist_path", {"analysis_type": "op"}),
    "kicad.run_erc": ("schematic_file", {}),
    "kicad.run_drc": ("pcb_file", {}),
}
"""Every tool that reads a file that somebody else made, and the argument that names it."""
TAKEN = {"hostile-s01-assembly-bomb/h01_small_2e6_control.step", "hostile-s06-encodings/h10_utf8bom_crlf.step",
         "hostile-s08-names/h04_names.step", "hostile-s06-encodings/h10_latin1.kicad_sch"}  # fmt: skip
"""Files that are no attack on the tool of their own kind: it may take them."""


@pytest.mark.slow
@pytest.mark.program("cadquery")
@pytest.mark.parametrize("tool", TAKERS)
def test_every_hostile_file_is_refused_or_contained_by_every_tool_that_could_be_given_it(
    server: Any, cases_dir: Path, tool: str, verdict: Any
) -> None:
    argument, more = TAKERS[tool]
    if tool not in {each["name"] for each in server.ask("tools/list", {})["tools"]}:
        pytest.skip(f"{tool} cannot run here")
    for path in sorted(cases_dir.glob("hostile-*/*")):
        name = str(path.relative_to(cases_dir))
        place = server.workspace / "hostile" / path.name
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, place)
        result = server.call(tool, **{argument: f"hostile/{path.name}", **more})
        place.unlink()
        clear = result.refused and len(result.text) > 40 and not re.search("Traceback|adapter failed", result.text)
        wanted = "refused or read" if name in TAKEN else "refused"
        verdict.holds(path.parent.name, f"{tool}, {path.name}", clear or name in TAKEN, wanted, result.text[:80])
        assert not leaks(result.text)
    left = [path.name for path in server.workspace.rglob("*") if path.is_file() and "hostile" in str(path)]
    assert left == []
    assert not list(server.workspace.rglob("*PWNED*")) + list(server.home.rglob("*PWNED*"))

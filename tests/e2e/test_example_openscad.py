"""The example adapter, installed like anybody's package and found by its entry point, over the official client."""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from house import STDIO, House
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import ImageContent, ResourceLink, TextContent

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "metaforge-openscad"
TOOL = "openscad.render"
PLATE = """width = 40;
include <lib/drill.scad>
difference() {
    cube([width, 30, 10]);
    translate([20, 15, 0]) drill();
}
"""
DRILL = "hole = 5;\nmodule drill() { translate([0, 0, -1]) cylinder(d = hole, h = 12, $fn = 64); }\n"
SLOW = "function f(n) = n < 2 ? n : f(n - 1) + f(n - 2);\ncube(f(45));"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example installed by pip, without the network: what it needs is here."""
    folder = tmp_path_factory.mktemp("openscad")
    source = shutil.copytree(EXAMPLE, folder / "metaforge-openscad")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-index", "--no-build-isolation", "--no-deps", "--target", str(folder / "site")]
    subprocess.run([*pip, *alone, str(source)], check=True)
    return folder / "site"


@pytest.fixture
def bench(tmp_path: Path) -> House:
    house = House(tmp_path, adapters="openscad")
    (house.workspace / "lib").mkdir()
    (house.workspace / "plate.scad").write_text(PLATE)
    (house.workspace / "lib" / "drill.scad").write_text(DRILL)
    (house.workspace.parent / "secret.scad").write_text("cube(9);\n")
    (house.workspace.parent / "secret.stl").write_text("solid\nendsolid\n")
    return house


@asynccontextmanager
async def client_of(house: House, site: Path, **variables: str) -> AsyncIterator[Client]:
    target: Any = StdioServerParameters(
        command=sys.executable, args=list(STDIO), env={**house.environment, "PYTHONPATH": str(site), **variables},
        cwd=str(house.workspace),
    )  # fmt: skip
    async with Client(target, read_timeout_seconds=120) as client:
        yield client


def words(result: Any) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def test_its_own_tests_pass_against_what_pip_installed(site: Path) -> None:
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(site)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(site.parent / "metaforge-openscad" / "tests")],
        cwd=site.parent, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    if "skipped" in ran.stdout:
        pytest.skip("openscad is not installed")
    assert " passed" in ran.stdout


@pytest.mark.program("openscad")
async def test_an_agent_renders_with_it_and_is_told_what_was_measured(site: Path, bench: House) -> None:
    async with client_of(bench, site) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == TOOL]
        assert "OpenSCAD" in (tool.description or "")
        wanted = {"file_path": "plate.scad", "output_path": "out/plate.stl", "parameters": {"width": 50, "hole": 8}}
        answer = await client.call_tool(TOOL, {**wanted, "picture": True})
        assert not answer.is_error, words(answer)
        # A cylinder of 64 sides is a prism.
        exact_mm3 = 50 * 30 * 10 - 64 / 2 * 4**2 * math.sin(2 * math.pi / 64) * 10
        assert answer.structured_content["volume_mm3"] == pytest.approx(exact_mm3, rel=1e-5)
        assert answer.structured_content["bounding_box"]["size_mm"] == [50, 30, 10]
        assert (bench.workspace / "out" / "plate.stl").stat().st_size > 1000
        names = {str(block.name).rpartition(".")[2] for block in answer.content if isinstance(block, ResourceLink)}
        assert "stl" in names
        pictured = any(isinstance(block, ImageContent) for block in answer.content)
        assert pictured or "pip install vtk" in str(answer.structured_content)
        # Another tool of the server takes the file from there.
        again = await client.call_tool(TOOL, {"source": 'import("out/plate.stl");', "output_path": "out/again.off"})
        assert again.structured_content["volume_mm3"] == pytest.approx(exact_mm3, rel=1e-4)


@pytest.mark.program("openscad")
async def test_its_refusals_reach_the_agent_in_words_and_leave_nothing_behind(site: Path, bench: House) -> None:
    async with client_of(bench, site) as client:

        async def refusal(source: str, **more: Any) -> str:
            answer = await client.call_tool(TOOL, {"source": source, "output_path": "out/part.stl", **more})
            assert answer.is_error, words(answer)
            assert not (bench.workspace / "out").exists()
            return words(answer)

        assert "line 2: sqube(3);" in await refusal("cube(2);\nsqube(3);")
        for reading in (
            "use <../secret.scad>\ncube(1);",
            'import("../secret.stl");',
            'n = "/etc"; surface(str(n, "/a"));',
        ):
            assert "outside the workspace" in await refusal(reading)
        assert "within the 4 s" in await refusal(SLOW, timeout_seconds=4)
        # The process that was stopped is gone, and the next call is answered.
        fine = await client.call_tool(TOOL, {"source": "cube(2);", "output_path": "out/part.stl"})
        assert fine.structured_content["volume_mm3"] == pytest.approx(8)


async def test_without_openscad_it_is_not_offered_and_a_call_says_what_brings_it(site: Path, bench: House) -> None:
    bare = {"PATH": str(Path(sys.executable).parent)}
    async with client_of(bench, site, **bare) as client:
        assert TOOL not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="apt-get install -y openscad"):
            await client.call_tool(TOOL, {"source": "cube(2);", "output_path": "out/part.stl"})

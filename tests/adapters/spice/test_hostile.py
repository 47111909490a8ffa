"""Netlists that ask for more than a simulation: refused before anything starts, harmless if they got through."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import metaforge.adapters.spice.source as source
from metaforge.engine import sandbox
from metaforge.engine.launch import ProcessLauncher
from metaforge.engine.source import ProcessSource
from metaforge.engineering import programs
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

pytestmark = pytest.mark.program("ngspice")
CIRCUIT = "hostile\nV1 a 0 DC 1\nR1 a 0 1k\n.op\n"


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test when any program is started."""

    def refuse(*command: Any, **_: Any) -> Any:
        raise AssertionError(f"a program was started: {command}")

    monkeypatch.setattr(programs.subprocess, "Popen", refuse)


@pytest.mark.parametrize(
    "block",
    [
        ".control\nshell touch PWNED\n.endc\n",
        "   .CONTROL\n  shell touch PWNED\n .ENDC\n",
        "\t.Control\nwrite PWNED.raw\n.endc\n",
        ".control $ comment\nwrdata PWNED a\n.endc\n",
        ".control\n+ shell ls\n.endc\n",
        ".endc\n",
        ".end\n.control\nshell touch PWNED\n.endc\n",
        ".exec touch PWNED\n",
        ".shell touch PWNED\n",
        ".system touch PWNED\n",
        "R2 a 0 `touch PWNED`\n",
        ".param x='`touch PWNED`'\n",
    ],
)
async def test_commands_are_refused_before_anything_starts(spice: Any, no_program: None, block: str) -> None:
    fault = await spice.refused("op", f"{CIRCUIT}{block}.end\n")
    assert fault.data["kind"] == "control_block"
    assert "line" in fault.data["where"]


@pytest.mark.parametrize(
    "line",
    [
        ".write PWNED v(a)",
        ".savebias PWNED",
        ".loadbias secret",
        ".pre_osdi evil.so",
        ".osdi evil.so",
        ".codemodel evil.cm",
        ".hdl evil.va",
        '.model x filesource (file="/etc/passwd")',
        '.model x d_source (input_file="/etc/passwd")',
        '.model x d_state(state_file = "/etc/passwd")',
        '.model x d_process (process_file="/bin/sh")',
        '.model x d_cosim (simulation="./evil.so")',
        '.model x table2D (file="/etc/passwd")',
        "V2 b 0 PWL file=/etc/passwd",
        "V2 b 0 PWL FILE = '/etc/passwd'",
        "V2 b 0 wavefile=x.wav chan=0",
    ],
)
async def test_files_and_programs_are_refused_before_anything_starts(spice: Any, no_program: None, line: str) -> None:
    fault = await spice.refused("op", f"{CIRCUIT}{line}\n.end\n")
    assert fault.data["kind"] == "netlist_touches_files"
    assert "root:" not in str(fault.data) + fault.message


@pytest.mark.parametrize(
    "line",
    [
        ".include /etc/passwd",
        ".INCLUDE '/etc/passwd'",
        '.inc "/etc/passwd"',
        ".include ../../../../etc/passwd",
        ".include /workspace/../../etc/passwd",
        ".include ~/.bashrc",
        ".include $HOME/.bashrc",
        ".lib /etc/passwd tt",
        ".lib '../secret.lib'",
        ".include link.inc",
        ".include pipe.inc",
        ".include zero.inc",
        ".include loop.inc",
        ".include \x7f",
        ".include " + "a/" * 3000,
    ],
)
async def test_a_file_from_outside_is_neither_read_nor_shown(spice: Any, no_program: None, line: str) -> None:
    (spice.workspace / "link.inc").symlink_to("/etc/passwd")
    (spice.workspace / "zero.inc").symlink_to("/dev/zero")
    (spice.workspace / "loop.inc").symlink_to("loop.inc")
    os.mkfifo(spice.workspace / "pipe.inc")
    (spice.workspace.parent / "secret.lib").write_text("R9 secret 0 1\n")
    fault = await spice.refused("op", f"{CIRCUIT}{line}\n.end\n")
    assert fault.data["kind"] in ("path_outside_workspace", "missing_include", "bad_netlist")
    assert "root:" not in str(fault.data) + fault.message
    assert "secret 0" not in str(fault.data) + fault.message


async def test_commands_in_an_included_file_are_refused_with_its_name(spice: Any, no_program: None) -> None:
    spice.write("models/inner.inc", "R5 a 0 1k\n.control\nshell touch PWNED\n.endc\n")
    spice.write("models/outer.inc", ".include inner.inc\n")
    fault = await spice.refused("op", f"{CIRCUIT}.include models/outer.inc\n.end\n")
    assert fault.data["kind"] == "control_block"
    assert "line 2 of models/inner.inc" in fault.data["where"]


@pytest.mark.parametrize("path", ["../secret.cir", "/etc/passwd", "no-such.cir", "link.cir"])
async def test_a_netlist_path_that_leads_out_is_refused_by_the_adapter_itself(
    spice: Any, no_program: None, path: str
) -> None:
    (spice.workspace.parent / "secret.cir").write_text(CIRCUIT)
    (spice.workspace / "link.cir").symlink_to("/etc/passwd")
    fault = await spice.refused("op", netlist_path=path)
    assert fault.data["kind"] in ("path_outside_workspace", "no_such_file")


@pytest.mark.parametrize(
    "netlist",
    [
        "nul\nV1 a 0 1\0\nR1 a 0 1k\n.end\n",
        "escape\nV1 a 0 1\x1b[2J\nR1 a 0 1k\n.end\n",
        "form feed\x0c.control\nV1 a 0 1\nR1 a 0 1k\n.end\n",
    ],
)
async def test_control_characters_are_refused(spice: Any, no_program: None, netlist: str) -> None:
    fault = await spice.refused("op", netlist)
    assert "control characters" in fault.message


async def test_utf16_is_refused_and_a_byte_order_mark_read_over(spice: Any) -> None:
    (spice.workspace / "wide.cir").write_bytes(CIRCUIT.encode("utf-16"))
    fault = await spice.refused("op", netlist_path="wide.cir")
    assert "UTF-16" in fault.message
    (spice.workspace / "marked.cir").write_bytes(b"\xef\xbb\xbf" + CIRCUIT.replace("\n", "\r\n").encode())
    data = await spice.data("op", netlist_path="marked.cir")
    assert data["results"]["i(v1)"]["final"] == pytest.approx(-1e-3)
    assert data["title"] == "hostile"


async def test_a_file_that_includes_itself_is_refused(spice: Any, no_program: None) -> None:
    spice.write("again.inc", "R5 a 0 1k\n.include again.inc\n")
    fault = await spice.refused("op", f"{CIRCUIT}.include again.inc\n.end\n")
    assert fault.data["kind"] == "include_loop"


async def test_a_circuit_that_doubles_with_every_level_is_refused_at_once(spice: Any, no_program: None) -> None:
    levels = "".join(f".subckt s{n} a\nX1 a s{n - 1}\nX2 a s{n - 1}\n.ends\n" for n in range(1, 40))
    fault = await spice.refused("op", f"bomb\nV1 a 0 1\nX1 a s39\n.subckt s0 a\nR1 a 0 1k\n.ends\n{levels}.end\n")
    assert fault.data["kind"] == "circuit_too_large"


async def test_a_subcircuit_that_contains_itself_is_refused(spice: Any, no_program: None) -> None:
    fault = await spice.refused("op", "loop\nV1 a 0 1\nX1 a s\n.subckt s a\nX2 a s\n.ends\n.end\n")
    assert fault.data["kind"] == "subcircuit_loop"


@pytest.mark.parametrize(
    ("analysis", "params"),
    [
        ("dc", {"source": "V1\n.control\nshell touch PWNED\n.endc", "start": 0, "stop": 1, "step": 0.1}),
        ("dc", {"source": "V1 0 1 0.1 V1", "start": 0, "stop": 1, "step": 0.1}),
        ("transient", {"stop": "1m\n.control"}),
        ("ac", {"fstart": "1 ; shell", "fstop": 10}),
        ("transient", {"stop": 1e9, "step": 1e-9}),
        ("ac", {"fstart": 1, "fstop": 1e12, "points": 10_000_000}),
        ("transient", {"stop": "nan"}),
        ("transient", {"stop": "1e999"}),
    ],
)
async def test_parameters_carry_numbers_and_names_only(
    spice: Any, no_program: None, analysis: str, params: dict[str, Any]
) -> None:
    fault = await spice.refused(analysis, "x\nV1 a 0 AC 1\nR1 a 0 1k\n.end\n", params=params)
    assert "params" in fault.message


@pytest.mark.parametrize("probe", ["v(a)\n.control", "a;ls", "`ls`", "v(a) > PWNED", "@r1[i]\nx", "all"])
async def test_probes_carry_names_only(spice: Any, no_program: None, probe: str) -> None:
    fault = await spice.refused("op", CIRCUIT + ".end\n", probes=[probe])
    assert "probes" in fault.message


async def test_the_deck_that_ngspice_gets_holds_nothing_but_the_circuit(spice: Any) -> None:
    netlist = (
        "a title\n* a comment\n*#shell touch PWNED\n# another\n$ and one more\nV1 a 0 DC 1 ; shell\n"
        "R1 a 0\n* between\n+ 1k $ end\n.print op v(a)\n.width out=80\n.op\n.end\n"
    )
    data = await spice.data("op", netlist)
    assert (spice.output / data["deck_path"]).read_text() == (
        "* a title\nV1 a 0 DC 1\nR1 a 0 1k\n.op\n.save v(a)\n.end\n"
    )


@pytest.fixture
async def trusting(tmp_path: Path) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """Run netlists unread, in the box that every simulation runs in; the test is skipped where there is none."""
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    environ = {"PATH": os.environ["PATH"], "METAFORGE_HOME": str(home), "METAFORGE_PRESTART": "false"}
    settings = Settings.load(environ)
    rung = sandbox.find(settings)
    if not rung.boxed:
        pytest.skip(f"no bubblewrap here: {rung.reason}")
    manifest = AdapterManifest.from_json(manifest_of("trusting:TrustingServer"))
    launcher = ProcessLauncher(manifest, settings, workspace, python_paths=(HERE,))
    source = ProcessSource(manifest, settings, workspace, BlobStore(home / "blobs"), launcher=launcher)

    async def run(netlist: str) -> str:
        invocation = Invocation("call-1", Caller(), 30.0)
        told: str = (await source.call(manifest.tools[0], {"netlist": netlist}, invocation)).data["log"]
        return told

    yield run
    await source.close()


@pytest.mark.program("bwrap")
async def test_what_got_through_all_the_same_can_touch_nothing(
    trusting: Callable[[str], Awaitable[str]], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of this test")
    told = await trusting(
        f"{CIRCUIT}.control\nop\nwrite job.raw\n"
        f"shell touch {tmp_path}/PWNED /workspace/PWNED /usr/PWNED /PWNED\n"
        f"shell cat {secret} /etc/passwd /etc/shadow > told.txt\n"
        "shell echo the shell ran >> told.txt\n"
        "shell (exec 3<>/dev/tcp/127.0.0.1/22) 2>> told.txt\n"
        "wrdata /workspace/PWNED a\nwrite /workspace/PWNED.raw\n.endc\n.end\n"
    )
    assert "the shell ran" in told, "the deck did not do what this test is about"
    assert "the secret" not in told
    assert "root:" not in told
    assert _left_behind(tmp_path) == []


def _left_behind(folder: Path) -> list[Path]:
    return [*folder.rglob("PWNED*"), *(path for path in (Path("/PWNED"), Path("/usr/PWNED")) if path.exists())]


def test_every_directive_is_on_one_list_only() -> None:
    lists = [source.KEPT, source.ANALYSES, source.OTHER_ANALYSES, source.OUTPUTS, source._RUNS, source._WRITES,
             source._LOADS]  # fmt: skip
    assert sum(map(len, lists)) == len(frozenset().union(*lists))

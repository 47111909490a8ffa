"""Rule checks of a schematic and a board through the server, against the bare kicad-cli commands."""

import shutil
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figure import Effort, Figure, spread
from benchmarks.pipes import PipeClient, house

ALLOWANCE_MS = 100.0
RESISTORS_COUNT = 120
TRACKS_COUNT = 400
_FONT = "(effects (font (size 1.27 1.27)))"


def _pin(x: float, y: float, angle: int, number: int) -> str:
    return f'(pin passive line (at {x} {y} {angle}) (length 1.27) (name "" {_FONT}) (number "{number}" {_FONT}))'


def _schematic() -> str:
    """Return a chain of resistors."""
    root = "11111111-0000-4000-8000-000000000000"
    symbol = (
        '(symbol "b:R" (in_bom yes) (on_board yes) (property "Reference" "R" (at 0 0 0)) '
        f'(property "Value" "R" (at 0 0 0)) (symbol "R_1_1" {_pin(0, 3.81, 270, 1)} {_pin(0, -3.81, 90, 2)}))'
    )
    items: list[str] = []
    for number in range(RESISTORS_COUNT):
        x, y = 25.4 + 12.7 * (number % 16), 38.1 + 15.24 * (number // 16)
        items.append(
            f'(symbol (lib_id "b:R") (at {x:g} {y:g} 0) (unit 1) (in_bom yes) (on_board yes) (dnp no) '
            f'(uuid "22222222-0000-4000-8000-{number:012d}") (property "Reference" "R{number}" (at {x:g} {y:g} 0)) '
            f'(property "Value" "1k" (at {x:g} {y:g} 0)) (instances (project "" '
            f'(path "/{root}" (reference "R{number}") (unit 1)))))'
        )
        for end, net in ((-3.81, number), (3.81, number + 1)):
            items.append(
                f'(label "N{net}" (at {x:g} {y + end:g} 0) {_FONT} (uuid "3{net:07d}-0000-4000-8000-{end!s:0>12}"))'
            )
    return (
        f'(kicad_sch (version 20250114) (generator "benchmark") (uuid "{root}") (paper "A3") (lib_symbols {symbol}) '
        f'{" ".join(items)} (sheet_instances (path "/" (page "1"))))\n'
    )


def _board() -> str:
    """Return a board of parallel tracks of two nets."""
    tracks = "\n".join(
        f"(segment (start 5 {5 + number * 0.5}) (end 95 {5 + number * 0.5}) (width 0.2) "
        f'(layer "{("F.Cu", "B.Cu")[number % 2]}") (net {1 + number % 2}))'
        for number in range(TRACKS_COUNT)
    )
    return (
        '(kicad_pcb (version 20241229) (generator "benchmark") (general (thickness 1.6)) (paper "A3") '
        '(layers (0 "F.Cu" signal) (2 "B.Cu" signal) (25 "Edge.Cuts" user)) (net 0 "") (net 1 "A") (net 2 "B") '
        '(gr_rect (start 0 0) (end 100 210) (stroke (width 0.1) (type solid)) (fill no) (layer "Edge.Cuts"))\n'
        f"{tracks})\n"
    )


def _set_up(home: Path) -> None:
    """Give a home the tables of KiCad's own libraries, as its first start with a window does."""
    told = subprocess.run(["kicad-cli", "version"], capture_output=True, text=True, check=True).stdout
    settings = home / ".config" / "kicad" / ".".join(told.strip().split(".")[:2])
    settings.mkdir(parents=True)
    for name in ("sym-lib-table", "fp-lib-table"):
        template = Path("/usr/share/kicad/template") / name
        if template.is_file():
            shutil.copy(template, settings / name)


def _ours_ms(client: PipeClient, tool: str, arguments: dict[str, Any]) -> float:
    started = time.perf_counter()
    result = client.call(tool, max_violations=20, **arguments)
    elapsed_ms = (time.perf_counter() - started) * 1000
    assert result["structuredContent"]["warnings"] > 10, "fewer findings than this design has"
    return elapsed_ms


def _bare_ms(words: list[str], file: Path, folder: Path) -> float:
    """Run the command as a person does, with a home of its own that is set up already."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    started = time.perf_counter()
    subprocess.run(
        ["kicad-cli", *words, "--severity-all", "--format", "json", "-o", str(report), str(file)], cwd=folder,
        capture_output=True, check=True, stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )  # fmt: skip
    elapsed_ms = (time.perf_counter() - started) * 1000
    assert report.stat().st_size > 1000, "no report"
    return elapsed_ms


def measure(effort: Effort) -> list[Figure]:
    """Alternate between both, on a schematic of 120 parts and a board of 400 tracks."""
    if shutil.which("kicad-cli") is None:
        raise RuntimeError("kicad-cli is not installed")
    figures: list[Figure] = []
    checks = {
        "ERC": ("kicad.run_erc", "schematic_file", "chain.kicad_sch", _schematic(), ["sch", "erc"]),
        "DRC": ("kicad.run_drc", "pcb_file", "tracks.kicad_pcb", _board(), ["pcb", "drc", "--schematic-parity"]),
    }
    with house() as place:
        bare_folder = place.home / "bare"
        bare_folder.mkdir()
        _set_up(bare_folder)
        with place.stdio() as client:
            for name, (tool, argument, file, text, words) in checks.items():
                (place.workspace / file).write_text(text)
                first_ms = _ours_ms(client, tool, {argument: file})
                _bare_ms(words, place.workspace / file, bare_folder)
                ours_ms, bare_ms = [], []
                for _ in range(2 * effort.rounds_count):
                    ours_ms.append(_ours_ms(client, tool, {argument: file}))
                    bare_ms.append(_bare_ms(words, place.workspace / file, bare_folder))
                detail = {"ours_ms": spread(ours_ms), "bare_ms": spread(bare_ms), "first_ms": round(first_ms, 1)}
                beyond = median((our - ALLOWANCE_MS) / bare for our, bare in zip(ours_ms, bare_ms, strict=True))
                added_ms = median(our - bare for our, bare in zip(ours_ms, bare_ms, strict=True))
                what = f"{name}, less {ALLOWANCE_MS:.0f} ms, against the bare command"
                figures.append(Figure("board", what, max(beyond, 0.0), "x", 1.2, detail))
                figures.append(Figure("board", f"what the server adds to {name}", added_ms, "ms", None))
    return figures

"""The first CAD box after a start, and a warm one with its STEP file."""

import ctypes
import importlib.util
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import orjson

from benchmarks.figure import Effort, Figure, percentile, ratio, spread
from benchmarks.pipes import ROOT, House, PipeClient, house
from benchmarks.processes import end

WARM_BOXES_COUNT = 40


def _box(client: PipeClient, width_mm: float, path: str) -> None:
    parameters = {"width": width_mm, "length": 30, "height": 10}
    result = client.call("cadquery.create_parametric", shape_type="box", parameters=parameters, output_path=path)
    volume_mm3 = result["structuredContent"]["volume_mm3"]
    assert abs(volume_mm3 - width_mm * 300) < 1e-6 * volume_mm3, f"a wrong volume: {volume_mm3}"


def _first_box_seconds(place: House, path: str) -> float:
    """Start a server as a client does and return the time until its first box is a file."""
    client = place.over_stdio(METAFORGE_PRESTART="true")
    try:
        client.shake_hands()
        client.ask("tools/list")
        _box(client, 50, path)
        return time.perf_counter() - client.started_at
    finally:
        end(client.process)


def _library_files() -> list[Path]:
    """Return the shared objects of the CAD kernel and what it draws with."""
    folders: list[Path] = []
    for name in ("OCP", "vtkmodules", "cadquery", "ezdxf"):
        spec = importlib.util.find_spec(name)
        if spec and spec.origin:
            folders.append(Path(spec.origin).parent)
    site = folders[0].parent if folders else Path()
    folders += [each for each in site.glob("*.libs") if each.is_dir()]
    files = {file for folder in folders for file in folder.rglob("*.so*") if file.is_file()}
    files |= {file for file in site.glob("OCP*.so")}
    return sorted(files)


def _evict(files: list[Path]) -> float:
    """Ask the kernel to forget the files and return the fraction of their pages that stays in memory."""
    resident = total = 0
    for file in files:
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            in_memory, pages = _resident_pages(stream.fileno(), file.stat().st_size)
            resident += in_memory
            total += pages
    return resident / max(total, 1)


def _resident_pages(descriptor: int, size_bytes: int) -> tuple[int, int]:
    if not size_bytes:
        return 0, 0
    pages = -(-size_bytes // mmap.PAGESIZE)
    state = (ctypes.c_ubyte * pages)()
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(descriptor, size_bytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as view:
        anchor = ctypes.c_char.from_buffer(view)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size_bytes), state)
        del anchor
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(byte & 1 for byte in state), pages


def _bare_boxes(place: House) -> tuple[float, list[float]]:
    """Return how long a bare script takes to its first box in seconds, and for each warm one in milliseconds."""
    command = [sys.executable, str(ROOT / "benchmarks" / "floors" / "box.py"), str(place.home), str(WARM_BOXES_COUNT)]
    ran = subprocess.run(command, capture_output=True, check=True)
    first_ms, *warm_ms = orjson.loads(ran.stdout)
    return first_ms / 1000, warm_ms[5:]


def _warm_boxes_ms(place: House) -> list[float]:
    milliseconds: list[float] = []
    with place.stdio() as client:
        for number in range(5):
            _box(client, 50, f"out/warming-{number}.step")
        for number in range(WARM_BOXES_COUNT):
            started = time.perf_counter()
            _box(client, 50 + number, f"out/warm-{number}.step")
            milliseconds.append((time.perf_counter() - started) * 1000)
        assert (place.workspace / "out/warm-0.step").stat().st_size > 1000, "the STEP file is missing"
    return milliseconds


def measure(effort: Effort) -> list[Figure]:
    """Measure three first boxes warm, one cold, and a row of warm ones; a bare script runs in between."""
    with house() as place:
        _first_box_seconds(place, "out/before.step")
        firsts, bare_firsts = [], []
        for number in range(3):
            firsts.append(_first_box_seconds(place, f"out/first-{number}.step"))
            bare_first, bare_warm_ms = _bare_boxes(place)
            bare_firsts.append(bare_first)
        warm_ms = _warm_boxes_ms(place)
        still_resident_ratio = _evict(_library_files())
        cold_seconds = _first_box_seconds(place, "out/cold.step")
    first_detail = {"all_seconds": spread(firsts, 2), "bare_script_seconds": spread(bare_firsts, 2)}
    cold_detail = {"still_in_page_cache_ratio": round(still_resident_ratio, 3)}
    warm_detail = {
        "p95_ms": round(percentile(warm_ms, 0.95), 2),
        "bare_script_p50_ms": round(median(bare_warm_ms), 2),
        "boxes_count": len(warm_ms),
    }
    return [
        Figure("cad", "first CAD box after start, page cache warm", median(firsts), "s", 3, first_detail),
        Figure("cad", "the same, against a bare script", ratio(firsts, bare_firsts), "x", None, first_detail),
        Figure("cad", "first CAD box after start, page cache cold", cold_seconds, "s", 5, cold_detail),
        Figure("cad", "warm CAD box with its STEP file, p50", median(warm_ms), "ms", 10, warm_detail),
    ]

"""What becomes of a run that ends badly, by recordings of it: no program is needed here."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import metaforge.adapters.spice.ngspice as ngspice
from metaforge.adapters.spice.ngspice import Context, simulate
from metaforge.core.errors import OverLimit, ToolCrashed, ToolError, ToolTimedOut
from metaforge.engineering.programs import ProgramResult

BANNER = "******\n** ngspice-46 : Circuit level simulation program\n"
HEADER = "Title: t\nDate: today\nPlotname: {plot}\nFlags: real\nNo. Variables: 2\nNo. Points: {points}\nVariables:\n"
ROWS = ((0.0, 1.0), (1e-3, 2.0), (2e-3, 3.0))


def raw(points: int, plot: str = "Transient Analysis") -> bytes:
    head = HEADER.format(points=points, plot=plot) + "\t0\ttime\ttime\n\t1\tv(a)\tvoltage\nBinary:\n"
    return head.encode() + b"".join(struct.pack("<2d", *row) for row in ROWS)


Recording = Callable[..., ProgramResult]


@pytest.fixture(autouse=True)
def a_program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngspice, "find_program", lambda name, install: f"/usr/bin/{name}")


def recording(
    log: str = "", content: bytes = b"", exit_code: int | None = 0, signal: int = 0, beats: int = 0, fault: Any = None
) -> Recording:
    def run(command: Any, *, cwd: Path, heartbeat: Any, **options: Any) -> ProgramResult:
        assert "-n" in command, "a start-up file could be run"
        (cwd / "job.log").write_text(log)
        (cwd / "job.raw").write_bytes(content)
        for number in range(beats):
            heartbeat(5.0 * (number + 1), "")
        if fault is not None:
            raise fault
        return ProgramResult(tuple(command), exit_code, signal, BANNER, 0.5)

    return run


def outcome(folder: Path, run: Recording, told: list[tuple[float, str]] | None = None, **context: Any) -> Any:
    notes = told if told is not None else []
    return simulate(
        "t\n", folder, Context("transient", **context), timeout_seconds=60,
        progress=lambda fraction, words: notes.append((fraction, words)), run=run,
    )  # fmt: skip


def test_a_good_run_is_told_with_version_and_convergence(tmp_path: Path) -> None:
    log = "Note: Starting dynamic gmin stepping\nTrying gmin = 1e-3 Note: One successful gmin step\n"
    done = outcome(tmp_path, recording(log + "Note: Dynamic gmin stepping completed\n", raw(3)))
    assert done.version == "46"
    assert done.convergence == "converged_with_gmin_stepping"
    assert done.warnings == ()
    assert b"Date" not in done.raw


def test_exit_code_zero_without_points_is_no_success(tmp_path: Path) -> None:
    for content in (b"", raw(3)[: raw(3).index(b"Variables:\n")], b"junk"):
        with pytest.raises(ToolError, match="ended without a single result"):
            outcome(tmp_path, recording("", content))


def test_points_beside_an_aborted_run_are_no_success(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such device"):
        outcome(tmp_path, recording("doAnalyses: no such device\nrun simulation(s) aborted\n", raw(3)))


def test_a_file_that_is_cut_short_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        outcome(tmp_path, recording("", raw(3)[:-8]))


def test_a_run_into_the_deadline_says_how_far_it_got(tmp_path: Path) -> None:
    with pytest.raises(ToolTimedOut, match=r"got to 0.002 s of 1 s") as caught:
        outcome(tmp_path, recording("", raw(0), fault=ToolTimedOut("stopped")), stop_seconds=1.0)
    assert "larger step" in caught.value.fix


def test_progress_is_the_share_of_the_time_that_was_reached(tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []
    with pytest.raises(ToolError):
        outcome(tmp_path, recording("", raw(3), beats=1), told, stop_seconds=4e-3)
    assert told == [(pytest.approx(0.1 + 0.8 * 0.5), "ngspice, 5 s, at 0.002 s of 0.004 s")]


def test_waveforms_that_fill_the_disk_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngspice, "MAX_RAW_BYTES", 100)
    with pytest.raises(OverLimit, match="take more than"):
        outcome(tmp_path, recording("", raw(3), beats=1))


@pytest.mark.parametrize(("signal", "kind"), [(9, OverLimit), (11, ToolCrashed)])
def test_a_run_that_a_signal_ended_says_so(tmp_path: Path, signal: int, kind: type[ToolError]) -> None:
    with pytest.raises(kind):
        outcome(tmp_path, recording("", raw(3), exit_code=None, signal=signal))


def test_the_cause_that_was_suspected_before_is_offered(tmp_path: Path) -> None:
    log = "Warning: singular matrix:  check node v1#branch\nDC solution failed -\n"
    with pytest.raises(ToolError, match="singular at node v1#branch") as caught:
        outcome(tmp_path, recording(log, b"", exit_code=1), suspects=("Loop of V1 - L1",))
    assert "mend first: Loop of V1 - L1" in caught.value.fix


def test_a_line_that_ngspice_quotes_is_told_by_its_place(tmp_path: Path) -> None:
    log = "Error on line 3 or its substitute:\n  r.x1.r1 a b 1k foo=3\n  unknown parameter (foo) \n"
    with pytest.raises(ToolError, match="unknown parameter") as caught:
        outcome(tmp_path, recording(log, b"", exit_code=1), places={"x1.r1": "line 7: R1 a b 1k foo=3"})
    assert caught.value.where == "line 7: R1 a b 1k foo=3"


def test_a_transient_that_ends_early_without_a_word_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"ended at 0\.002 s of 0\.004 s") as caught:
        outcome(tmp_path, recording("", raw(3)), stop_seconds=4e-3)
    assert caught.value.kind == "ended_early"
    assert outcome(tmp_path, recording("", raw(3)), stop_seconds=2e-3).plots


def test_a_number_that_is_not_finite_is_no_result(tmp_path: Path) -> None:
    content = raw(3)[:-8] + struct.pack("<d", float("nan"))
    with pytest.raises(ToolError, match=r"v\(a\) is not a finite number at point 3"):
        outcome(tmp_path, recording("", content))


def test_its_own_warnings_are_passed_on_without_its_chatter(tmp_path: Path) -> None:
    log = (
        "Note: No compatibility mode selected!\nCircuit: t\nWarning: r1: resistance to low, set to 1 mOhm\n"
        "Warning: v1: no DC value, transient time 0 value used\nDoing analysis at TEMP = 27\n"
        "unrecognized parameter (bogus) - ignored\n"
    )
    done = outcome(tmp_path, recording(log, raw(3)))
    assert done.warnings == (
        "ngspice: r1: resistance to low, set to 1 mOhm",
        "ngspice: unrecognized parameter (bogus) - ignored",
    )

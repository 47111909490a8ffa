"""External programs: bounded, watched, and gone when they should be."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from metaforge.core.errors import ToolTimedOut
from metaforge.engineering import programs
from metaforge.engineering.programs import ProgramMissing, find_program, run_program


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_output_and_exit_code_are_reported(tmp_path: Path) -> None:
    result = run_program(
        python("import os, sys; print(os.getcwd()); print('err', file=sys.stderr); sys.exit(3)"),
        cwd=tmp_path, timeout_seconds=30,
    )  # fmt: skip
    assert result.exit_code == 3
    assert str(tmp_path) in result.output
    assert "err" in result.output


def test_a_program_ended_by_a_signal_says_which(tmp_path: Path) -> None:
    result = run_program(python("import os; os.kill(os.getpid(), 11)"), cwd=tmp_path, timeout_seconds=30)
    assert (result.exit_code, result.signal) == (None, 11)


def test_the_deadline_ends_the_whole_process_group(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "open('child', 'w').write(str(p.pid)); print('up', flush=True); time.sleep(60)"
    )
    with pytest.raises(ToolTimedOut, match="after 2 s"):
        run_program(python(code), cwd=tmp_path, timeout_seconds=2)
    child = int((tmp_path / "child").read_text())
    _, alive = psutil.wait_procs([p for p in psutil.process_iter() if p.pid == child], timeout=2)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's own")
def test_a_program_dies_with_the_process_that_ran_it(tmp_path: Path) -> None:
    solver = "import os, time; open('solver', 'w').write(str(os.getpid())); print('up', flush=True); time.sleep(60)"
    code = (
        "import sys; from pathlib import Path; from metaforge.engineering.programs import run_program;"
        f"run_program((sys.executable, '-c', {solver!r}), cwd=Path.cwd(), timeout_seconds=60,"
        " watch=lambda line: print(line, flush=True))"
    )
    worker = subprocess.Popen(python(code), cwd=tmp_path, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    with worker, worker.stdout:
        assert worker.stdout.readline() == b"up\n"
        solving = psutil.Process(int((tmp_path / "solver").read_text()))
        worker.kill()
    _, alive = psutil.wait_procs([solving], timeout=5)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_endless_output_is_bounded(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(60000): print(f'{i:060d}')"
    result = run_program(python(code), cwd=tmp_path, timeout_seconds=60)
    assert len(result.output) < 2 * programs.MAX_OUTPUT_BYTES
    assert result.output.startswith("0" * 60)
    assert f"{59999:060d}" in result.output
    assert "bytes left out" in result.output


def test_lines_are_watched_and_a_heartbeat_tells_the_last_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "HEARTBEAT_SECONDS", 0.05)
    beats: list[str] = []
    code = "import sys, time\nprint('step 1', flush=True)\nsys.stdin.read(); time.sleep(0.6)"
    run_program(
        python(code), cwd=tmp_path, timeout_seconds=30, watch=lambda line: line if "step" in line else None,
        heartbeat=lambda seconds, doing: beats.append(doing),
    )  # fmt: skip
    assert "step 1" in beats


def test_variables_are_added_to_the_environment(tmp_path: Path) -> None:
    result = run_program(
        python("import os; print(os.environ['OMP_NUM_THREADS'], 'PATH' in os.environ)"),
        cwd=tmp_path, timeout_seconds=30, environment={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.output.strip() == "1 True"


def test_a_missing_program_is_told_with_its_install_command(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing) as caught:
        find_program("no-such-solver", "apt-get install -y no-such-solver")
    assert "apt-get install" in caught.value.fix
    with pytest.raises(ProgramMissing):
        run_program(("no-such-solver",), cwd=tmp_path, timeout_seconds=1)

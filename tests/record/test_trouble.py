"""A disk that is full or read-only: calls are answered all the same, and health says what is wrong."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaforge.record import recorder as room
from metaforge.record.call_record import CallRecord
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable

Make = Callable[..., CallRecord]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"this machine does not let root mount: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk did not fill up")


def test_a_full_disk_stops_no_call_and_is_told_and_nothing_is_lost_once_there_is_room(
    small_disk: Path, make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    database = Database("", small_disk)
    recorder = Recorder(database, small_disk / "journal")
    recorder.append(make("before"))
    assert recorder.flush(30)

    filler = fill(small_disk)
    for number in range(400):
        recorder.append(make(f"full-{number}", summary="s" * 3000))
    assert not recorder.flush(30)
    told = " ".join(recorder.problems())
    assert "a crash would lose them" in told
    assert "No space left on device" in told or "no room" in told

    filler.unlink()
    recorder.append(make("after"))
    assert recorder.flush(30)
    assert recorder.problems() == ()
    found = {call.call_id for call in CallLog(database, recorder).list_calls(1000)}
    assert found == {"before", "after"} | {f"full-{number}" for number in range(400)}
    assert recorder._set_aside == []  # stored once, not held for ever
    assert capfd.readouterr().err.count("call_journal_failed") <= 1
    recorder.close(30)
    database.close()


def test_a_home_that_cannot_be_written_stops_no_call_and_is_told(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_SET_ASIDE_COUNT", 10)
    (tmp_path / "file").write_text("where a folder should be")
    home = tmp_path / "file" / "home"
    database = Database("", home)
    recorder = Recorder(database, home / "journal")

    for number in range(15):
        recorder.append(make(str(number)))

    assert not recorder.flush(30)
    told = recorder.problems()
    assert f"{home / 'journal'} refuses (Not a directory)" in told[0]
    assert "METAFORGE_HOME" in told[0]
    assert "are not in the database yet" in told[1]
    assert told[2].startswith("5 calls of this process could not be recorded")
    with pytest.raises(StoreUnavailable, match="METAFORGE_HOME"):
        CallLog(database, recorder).list_calls()
    recorder.close(30)


def test_a_read_only_file_system_stops_no_call_and_is_told(small_disk: Path, make: Make) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    database = Database("", small_disk)
    recorder = Recorder(database, small_disk / "journal")

    recorder.append(make("a"))

    assert not recorder.flush(30)
    assert "Read-only file system" in recorder.problems()[0]
    recorder.close(30)


def test_a_problem_is_logged_once(tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    recorder = Recorder(Database("", tmp_path / "file"), tmp_path / "file" / "journal")
    for number in range(5):
        recorder.append(make(str(number)))
        recorder.flush(30)
    recorder.close(30)
    assert sorted(entry.message for entry in caplog.records) == ["call_journal_failed", "call_record_failed"]

import fcntl
import os
from pathlib import Path

import pytest

from metaforge.record import journal as room
from metaforge.record.journal import Journal, dead_journals


def lines_of(journal: Journal, offset: int = 0, *, at_end: bool = False) -> list[bytes]:
    return [line for batch in journal.batches(offset, at_end=at_end) for line in batch.lines]


def test_lines_come_back_in_order_across_any_number_of_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "READ_BYTES", 64)
    journal = Journal.create(tmp_path)
    written = [b"%d " % number + b"x" * (number * 7 % 200) for number in range(100)]
    for line in written:
        journal.append(line)

    batches = list(journal.batches(0))

    assert [line for batch in batches for line in batch.lines] == written
    assert batches[-1].end_offset == journal.size_bytes == journal.path.stat().st_size
    assert lines_of(journal, batches[2].end_offset) == written[sum(len(batch.lines) for batch in batches[:3]) :]
    journal.close()


def test_a_torn_last_line_waits_for_its_end_and_is_given_up_only_when_its_writer_is_dead(tmp_path: Path) -> None:
    (tmp_path / "1-dead.jsonl").write_bytes(b"whole\nto")
    (journal,) = dead_journals(tmp_path)

    assert lines_of(journal) == [b"whole"]
    assert lines_of(journal, at_end=True) == [b"whole", b"to"]
    journal.close()


def test_the_journal_of_a_living_process_is_nobody_elses(tmp_path: Path) -> None:
    mine = Journal.create(tmp_path)
    mine.append(b"x")
    assert list(dead_journals(tmp_path)) == []
    mine.close()
    (dead,) = dead_journals(tmp_path)
    assert dead.path == mine.path
    dead.remove()
    assert os.listdir(tmp_path) == []


def test_a_new_journal_that_someone_takes_for_dead_is_left_to_him(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Journal] = []
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if not taken:
            monkeypatch.setattr(fcntl, "flock", real)
            taken.extend(dead_journals(tmp_path))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    mine = Journal.create(tmp_path)

    (other,) = taken
    assert other.path != mine.path
    other.remove()
    mine.append(b"kept")
    assert lines_of(mine) == [b"kept"]
    mine.close()


def test_a_short_write_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.create(tmp_path)
    journal.append(b"first")
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:3]))
    with pytest.raises(OSError, match="no room"):
        journal.append(b"second")
    monkeypatch.undo()
    journal.append(b"third")

    assert journal.path.read_bytes() == b"first\nthird\n"
    assert journal.size_bytes == 12
    journal.close()


def test_a_missing_folder_holds_no_dead_journals(tmp_path: Path) -> None:
    assert list(dead_journals(tmp_path / "nowhere")) == []


def test_a_journal_is_private(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal")
    assert journal.path.stat().st_mode & 0o777 == 0o600
    journal.close()

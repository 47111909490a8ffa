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
    assert batches[-1].end_offset == journal.size_bytes
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
    monkeypatch.setattr(room, "_promises_room", lambda folder: False)
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


@pytest.fixture
def mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setattr(room, "_promises_room", lambda folder: True)
    monkeypatch.setattr(room, "ROOM_BYTES", 4096)
    return Journal.create(tmp_path)


def test_a_mapped_journal_grows_when_its_room_is_used_up(mapped: Journal) -> None:
    written = [b"%d " % number + b"x" * 100 for number in range(200)]
    for line in written:
        mapped.append(line)
    assert lines_of(mapped) == written
    assert mapped.path.stat().st_size == 24576
    mapped.close()


def test_room_that_was_never_used_is_no_line_of_a_dead_process(mapped: Journal, tmp_path: Path) -> None:
    mapped.append(b"one")
    mapped.append(b"two")
    content = mapped.path.read_bytes()
    assert content == b"one\ntwo\n".ljust(4096, b"\0")
    mapped.close()
    (tmp_path / "9-killed.jsonl").write_bytes(content[:7] + bytes(4089))
    (killed,) = [journal for journal in dead_journals(tmp_path) if journal.path.name == "9-killed.jsonl"]
    assert lines_of(killed) == [b"one"]
    assert lines_of(killed, at_end=True) == [b"one", b"two"]
    killed.close()


def test_a_journal_that_is_closed_keeps_no_room(mapped: Journal) -> None:
    mapped.append(b"x")
    mapped.close()
    assert mapped.path.read_bytes() == b"x\n"

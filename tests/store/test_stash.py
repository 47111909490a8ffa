"""Exports outlive their process, are bounded in bytes, and are never given out damaged."""

import os
from pathlib import Path

from metaforge.store.stash import GeometryStash


def test_another_process_finds_an_export(tmp_path: Path) -> None:
    assert GeometryStash(tmp_path).put("s1", "Body", b"step")
    assert GeometryStash(tmp_path).get("s1", "Body") == b"step"


def test_names_are_not_confused(tmp_path: Path) -> None:
    stash = GeometryStash(tmp_path)
    stash.put("a", "bc", b"one")
    stash.put("ab", "c", b"two")
    assert (stash.get("a", "bc"), stash.get("ab", "c"), stash.get("abc", "")) == (b"one", b"two", None)
    stash.put("../../x", "/etc/passwd", b"three")
    assert stash.get("../../x", "/etc/passwd") == b"three"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_later_export_of_the_same_object_counts(tmp_path: Path) -> None:
    stash = GeometryStash(tmp_path)
    stash.put("s1", "Body", b"old")
    stash.put("s1", "Body", b"new")
    assert stash.get("s1", "Body") == b"new"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_longest_unused_go_when_the_bytes_run_out(tmp_path: Path) -> None:
    stash = GeometryStash(tmp_path, max_bytes=3 * (1000 + 64))
    for number, name in enumerate(["a", "b", "c"]):
        stash.put("s", name, name.encode() * 1000)
        for path in tmp_path.iterdir():
            about = path.stat()
            os.utime(path, ns=(about.st_mtime_ns - 10**9, about.st_mtime_ns - 10**9))
        assert number + 1 == len(list(tmp_path.iterdir()))
    assert stash.get("s", "a") is not None, "used again, so it stays"
    stash.put("s", "d", b"d" * 1000)
    assert stash.size_bytes <= stash.max_bytes
    assert [stash.get("s", name) is not None for name in "abcd"] == [True, False, True, True]


def test_what_is_larger_than_everything_is_not_kept_and_hides_nothing_older(tmp_path: Path) -> None:
    stash = GeometryStash(tmp_path, max_bytes=100)
    stash.put("s", "a", b"small")
    assert not stash.put("s", "a", b"x" * 101)
    assert stash.get("s", "a") is None, "the older export of the object is not what was exported last"


def test_a_damaged_export_is_none(tmp_path: Path) -> None:
    stash = GeometryStash(tmp_path)
    stash.put("s", "a", b"NAMED_UNIT(*)")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"UNIT", b"URIT"))
    assert stash.get("s", "a") is None

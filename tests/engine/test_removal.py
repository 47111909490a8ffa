"""Whatever a tool leaves in its folder can be taken away again."""

import os
from contextlib import contextmanager

import pytest

from metaforge.engine.removal import remove_tree

DEEP = 3000
"""More levels than Python may recurse, than a process may hold descriptors, and than a path name may have."""


@contextmanager
def standing_in(folder):
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def test_folders_nested_deeper_than_a_path_name_can_tell_are_removed(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with standing_in(root):
        for _ in range(DEEP):
            os.mkdir("deeper")
            os.chdir("deeper")
            with open("file", "w"):
                pass
    remove_tree(root)
    assert not root.exists()


def test_folders_that_nobody_may_enter_are_removed_with_what_is_in_them(tmp_path):
    root = tmp_path / "root"
    locked = root / "locked" / "inner"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0)
    locked.parent.chmod(0o500)
    root.chmod(0o100)
    remove_tree(root)
    assert not root.exists()


def test_links_are_removed_and_what_they_lead_to_stays(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("precious")
    kept.chmod(0o755)
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "to-folder").symlink_to(kept)
    (root / "inner" / "to-file").symlink_to(kept / "file")
    os.mkfifo(root / "inner" / "pipe")
    remove_tree(root)
    assert not root.exists()
    assert (kept / "file").read_text() == "precious"
    assert kept.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("kind", ["missing", "file", "link"])
def test_what_is_no_folder_is_removed_as_it_is(tmp_path, kind):
    kept = tmp_path / "kept"
    kept.mkdir()
    target = tmp_path / "target"
    if kind == "file":
        target.write_text("x")
    elif kind == "link":
        target.symlink_to(kept)
    remove_tree(target)
    assert not os.path.lexists(target)
    assert kept.is_dir()

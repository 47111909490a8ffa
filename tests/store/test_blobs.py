import hashlib
import os
from pathlib import Path

import pytest

from metaforge.core.errors import ResourceUnreadable
from metaforge.store.blobs import BlobStore


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_kept_file_is_read_back_by_its_digest(store: BlobStore, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    original = tmp_path / "part.step"
    original.write_bytes(content)

    sha256 = store.put_file(original)

    assert sha256 == hashlib.sha256(content).hexdigest()
    assert store.read(sha256) == content
    assert store.path_of(sha256) == tmp_path / "blobs" / sha256[:2] / sha256


def test_changing_the_original_leaves_the_kept_content_alone(store: BlobStore, tmp_path: Path) -> None:
    original = tmp_path / "part.step"
    original.write_bytes(b"first")
    sha256 = store.put_file(original)

    with original.open("r+b") as stream:
        stream.write(b"other")

    assert store.read(sha256) == b"first"
    assert store.path_of(sha256).stat().st_nlink == 1


def test_the_same_content_is_kept_once_and_nothing_else_is_left(store: BlobStore, tmp_path: Path) -> None:
    original = tmp_path / "a"
    original.write_bytes(b"same")

    sha256 = store.put_file(original)

    assert store.put_bytes(b"same") == sha256
    assert store.put_file(original) == sha256
    assert files_below(tmp_path / "blobs") == [f"{sha256[:2]}/{sha256}"]


def test_only_the_owner_can_look_and_nobody_writes(store: BlobStore, tmp_path: Path) -> None:
    path = store.path_of(store.put_bytes(b"design"))
    assert path.stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "blobs").stat().st_mode & 0o777 == 0o700


def test_an_empty_content_is_a_content(store: BlobStore) -> None:
    assert store.read(store.put_bytes(b"")) == b""


@pytest.mark.parametrize("name", ["0" * 64, "", "../../../etc/passwd", "A" * 64, "0" * 63, "0" * 62 + "/0"])
def test_an_unknown_or_malformed_digest_is_a_key_error(store: BlobStore, name: str) -> None:
    store.put_bytes(b"something")
    with pytest.raises(KeyError):
        store.path_of(name)
    with pytest.raises(KeyError):
        store.read(name)


def test_a_corrupt_content_is_named_and_mended_by_putting_it_again(store: BlobStore) -> None:
    sha256 = store.put_bytes(b"the truth")
    path = store.path_of(sha256)
    path.chmod(0o644)
    path.write_bytes(b"the trutj")

    with pytest.raises(ResourceUnreadable, match=f"{path} is corrupt: 9 bytes"):
        store.read(sha256)

    assert store.put_bytes(b"the truth") == sha256
    assert store.read(sha256) == b"the truth"


def test_symbolic_links_and_special_files_are_refused(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")

    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            store.put_file(tmp_path / name)

    assert not (tmp_path / "blobs").exists()


def test_a_copy_left_by_a_killed_process_is_removed_after_a_day_and_not_before(tmp_path: Path) -> None:
    incoming = tmp_path / "blobs" / "incoming"
    incoming.mkdir(parents=True)
    for name, age_days in (("1-old", 2), ("2-new", 0)):
        (incoming / name).write_bytes(b"half a fi")
        moment = (incoming / name).stat().st_mtime - age_days * 86400
        os.utime(incoming / name, (moment, moment))

    BlobStore(tmp_path / "blobs").put_bytes(b"x")

    assert [path.name for path in incoming.iterdir()] == ["2-new"]

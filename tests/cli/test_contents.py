"""`metaforge blobs` tells what an object store lacks, and sends it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from metaforge.store.blobs import BlobStore


class Shell:
    """Runs `metaforge` on a home of its own, with a folder as the object store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = folder / "shared"
        self.local = BlobStore(folder / "data" / "blobs")
        (folder / "data").mkdir()
        self.shared.mkdir()

    def __call__(self, *arguments: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        store = {"METAFORGE_BLOB_URL": f"file://{self.shared}" if url is None else url}
        ran = subprocess.run(
            [sys.executable, "-m", "metaforge", *arguments],
            cwd=self.folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**kept, **store, "METAFORGE_HOME": str(self.folder / "data")},
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_what_the_store_lacks_is_listed_then_sent(shell: Shell) -> None:
    before = [shell.local.put_bytes(content) for content in (b"first", b"second")]
    listed = shell("blobs")
    assert listed.returncode == 1
    assert "lacks 2 files" in listed.stdout
    assert all(sha256 in listed.stdout for sha256 in before)
    assert "blobs --send" in listed.stdout

    sent = shell("blobs", "--send")
    assert sent.returncode == 0
    assert "2 files sent" in sent.stdout
    assert [BlobStore(shell.shared).read(sha256) for sha256 in before] == [b"first", b"second"]
    told = json.loads(shell("blobs", "--json").stdout)
    assert (told["count"], told["missing"]) == (2, [])


def test_a_damaged_file_is_never_sent_and_named(shell: Shell) -> None:
    sha256 = shell.local.put_bytes(b"the truth")
    path = shell.local.path_of(sha256)
    path.chmod(0o600)
    path.write_bytes(b"the trutj")
    ran = shell("blobs", "--send")
    assert ran.returncode == 1
    assert f"{sha256}" in ran.stdout
    assert "is damaged" in ran.stdout
    assert list(BlobStore(shell.shared).digests()) == []


def test_without_a_store_the_folder_is_all_there_is(shell: Shell) -> None:
    shell.local.put_bytes(b"first")
    ran = shell("blobs", url="")
    assert ran.returncode == 0
    assert "1 file, 0.0 MB" in ran.stdout
    assert "names no object store" in ran.stdout


def test_a_store_that_is_not_there_is_told(shell: Shell) -> None:
    ran = shell("blobs", url=f"file://{shell.folder}/unmounted")
    assert ran.returncode == 1
    assert "mount it, or make it" in ran.stderr

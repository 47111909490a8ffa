import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from metaforge.app import App
from metaforge.cli.doctor import Check, State, object_store_checks
from metaforge.core.errors import ResourceUnreadable
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.store.mirrored import MirroredBlobs
from metaforge.store.objects import ObjectStore
from metaforge.twin.bodies import INLINE_BYTES
from metaforge.twin.store import TwinStore


class DriverFault(Exception):
    """What a client library of its own raises: no OSError."""


class FaultyFiles(MemoryFileSystem):
    """Files in memory that fail and are damaged as told: the faults apply to the next requests that move bytes."""

    protocol = "faulty"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    failures_left: ClassVar[int] = 0
    fault: ClassVar[Exception] = OSError("connection reset")
    damaged_reads_left: ClassVar[int] = 0
    truncated_writes_left: ClassVar[int] = 0
    requests: ClassVar[list[str]] = []
    arrivals: ClassVar[list[str]] = []
    """Writes that have begun."""
    may_go_on: ClassVar[threading.Event] = threading.Event()
    """Cleared, a write waits: a store that takes its time."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("faulty://")))

    @classmethod
    def reset(cls) -> None:
        cls.store.clear()
        cls.pseudo_dirs[:] = [""]
        cls.failures_left = cls.damaged_reads_left = cls.truncated_writes_left = 0
        cls.fault = OSError("connection reset")
        cls.requests.clear()
        cls.arrivals.clear()
        cls.may_go_on.set()

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        FaultyFiles.arrivals.append(rpath)
        FaultyFiles.may_go_on.wait(10)
        self._fail("put")
        with open(lpath, "rb") as stream:
            content = stream.read()
        if FaultyFiles.truncated_writes_left:
            FaultyFiles.truncated_writes_left -= 1
            content = content[:-1]
        self.pipe_file(rpath, content)

    def get_file(self, rpath: str, lpath: str, **options: Any) -> None:
        self._fail("get")
        content = self.cat_file(rpath)
        if FaultyFiles.damaged_reads_left:
            FaultyFiles.damaged_reads_left -= 1
            content = bytes([content[0] ^ 1]) + content[1:]
        with open(lpath, "wb") as stream:
            stream.write(content)

    def _fail(self, request: str) -> None:
        FaultyFiles.requests.append(request)
        if FaultyFiles.failures_left:
            FaultyFiles.failures_left -= 1
            raise FaultyFiles.fault


fsspec.register_implementation("faulty", FaultyFiles, clobber=True)


@pytest.fixture(autouse=True)
def quiet_store() -> Iterator[None]:
    FaultyFiles.reset()
    yield
    FaultyFiles.reset()


def blobs_at(folder: Path, url: str = "faulty://bucket/designs", **options: Any) -> MirroredBlobs:
    return MirroredBlobs(BlobStore(folder / "blobs"), ObjectStore(url, pauses_seconds=(0.0, 0.0)), **options)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "part.step"
    path.write_bytes(content)
    return path


def waiting(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "blobs" / "pending").iterdir())


@pytest.fixture(params=["memory", "file", "faulty"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        (tmp_path / "shared").mkdir()
        return f"file://{tmp_path}/shared"
    return f"{request.param}://bucket/{tmp_path.name}"


# -- stores that work


def test_what_one_machine_keeps_another_reads_through_the_store(url: str, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    one, other = blobs_at(tmp_path / "one", url), blobs_at(tmp_path / "other", url)

    by_bytes = one.put_bytes(b"a long text")
    by_file = one.put_file(written(tmp_path, content))

    assert other.read(by_bytes) == b"a long text"
    assert other.path_of(by_file).read_bytes() == content
    assert other.path_of(by_file).is_relative_to(tmp_path / "other")
    assert by_file == hashlib.sha256(content).hexdigest()


def test_a_content_that_neither_place_has_is_a_key_error(url: str, tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path, url)
    for name in ("0" * 64, "", "../../etc/passwd", "A" * 64):
        with pytest.raises(KeyError):
            blobs.read(name)
        with pytest.raises(KeyError):
            blobs.path_of(name)


def test_the_check_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    blobs_at(tmp_path, url).prepare()

    files, root = fsspec.url_to_fs(url)
    assert not files.exists(root) or files.find(root) == []


def test_a_folder_behind_a_url_is_laid_out_like_the_local_one(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    sha256 = blobs_at(tmp_path, f"file://{tmp_path}/shared").put_bytes(b"design")

    assert BlobStore(tmp_path / "shared").read(sha256) == b"design"


def test_reads_of_what_lies_here_ask_the_store_nothing(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    sha256 = blobs.put_bytes(b"design")
    FaultyFiles.requests.clear()

    assert blobs.read(sha256) == b"design"
    assert blobs.put_bytes(b"design") == sha256
    assert FaultyFiles.requests == []


def test_a_damaged_local_copy_is_replaced_by_the_object(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    sha256 = blobs.put_bytes(b"the truth")
    path = blobs.path_of(sha256)
    path.chmod(0o600)
    path.write_bytes(b"the trutj")

    assert blobs.read(sha256) == b"the truth"
    assert path.read_bytes() == b"the truth"


def test_a_damaged_local_copy_without_an_object_is_named(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    sha256 = blobs.put_bytes(b"the truth")
    path = blobs.path_of(sha256)
    path.chmod(0o600)
    path.write_bytes(b"the trutj")
    FaultyFiles.store.clear()

    with pytest.raises(ResourceUnreadable, match=f"{path} is corrupt"):
        blobs.read(sha256)


# -- stores that fail


def test_a_request_that_fails_once_is_repeated(tmp_path: Path) -> None:
    FaultyFiles.failures_left = 1
    sha256 = blobs_at(tmp_path / "one").put_bytes(b"design")
    assert FaultyFiles.requests == ["put", "put"]

    FaultyFiles.failures_left = 1
    assert blobs_at(tmp_path / "other").read(sha256) == b"design"


def test_a_durable_put_is_refused_when_the_store_fails_for_ever(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    FaultyFiles.failures_left = 10**6

    with pytest.raises(StoreUnavailable, match=r"faulty://bucket/designs .*could not be written: connection reset"):
        blobs.put_bytes(b"design")
    with pytest.raises(StoreUnavailable, match="could not be written"):
        blobs.put_file(written(tmp_path, b"design"))
    assert len(FaultyFiles.requests) == 6

    FaultyFiles.failures_left = 0
    assert blobs_at(tmp_path / "other").read(blobs.put_bytes(b"design")) == b"design"


def test_an_error_of_a_kind_only_the_driver_knows_is_explained_too(tmp_path: Path) -> None:
    FaultyFiles.fault, FaultyFiles.failures_left = DriverFault("no credentials"), 10**6
    with pytest.raises(StoreUnavailable, match="no credentials"):
        blobs_at(tmp_path).put_bytes(b"design")


def test_a_refusal_is_not_repeated(tmp_path: Path) -> None:
    FaultyFiles.fault, FaultyFiles.failures_left = PermissionError("Access Denied"), 10**6
    with pytest.raises(StoreUnavailable, match="Access Denied"):
        blobs_at(tmp_path).put_bytes(b"design")
    assert FaultyFiles.requests == ["put"]


def test_a_read_of_what_is_elsewhere_says_that_the_store_does_not_answer(tmp_path: Path) -> None:
    sha256 = blobs_at(tmp_path / "one").put_bytes(b"design")
    FaultyFiles.failures_left = 10**6

    with pytest.raises(StoreUnavailable, match=f"{sha256} could not be read: connection reset"):
        blobs_at(tmp_path / "other").read(sha256)


def test_a_write_that_kept_less_than_was_sent_is_repeated(tmp_path: Path) -> None:
    FaultyFiles.truncated_writes_left = 1
    sha256 = blobs_at(tmp_path / "one").put_bytes(b"design")
    assert blobs_at(tmp_path / "other").read(sha256) == b"design"

    FaultyFiles.truncated_writes_left = 10**6
    with pytest.raises(StoreUnavailable, match="6 of 7 bytes were kept"):
        blobs_at(tmp_path).put_bytes(b"another")


def test_bytes_damaged_on_the_way_are_read_again(tmp_path: Path) -> None:
    sha256 = blobs_at(tmp_path / "one").put_bytes(b"design")
    FaultyFiles.damaged_reads_left = 1

    assert blobs_at(tmp_path / "other").read(sha256) == b"design"


@pytest.mark.parametrize("how", ["read", "path_of"])
def test_a_corrupt_object_is_named_never_cached_and_mended_by_the_next_put(tmp_path: Path, how: str) -> None:
    one, other = blobs_at(tmp_path / "one"), blobs_at(tmp_path / "other")
    sha256 = one.put_bytes(b"the truth")
    name = f"/bucket/designs/{sha256[:2]}/{sha256}"
    FaultyFiles().pipe_file(name, b"the trutj")

    with pytest.raises(ResourceUnreadable, match=f"faulty:/{name} is corrupt: 9 bytes with SHA-256 "):
        getattr(other, how)(sha256)
    assert [path for path in (tmp_path / "other").rglob("*") if path.is_file()] == []

    assert other.put_bytes(b"the truth") == sha256
    assert FaultyFiles().cat_file(name) == b"the truth"


# -- puts that need not wait


def test_a_put_that_need_not_be_durable_does_not_wait_for_the_store(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    FaultyFiles.may_go_on.clear()

    sha256 = blobs.put_file(written(tmp_path, b"design"), durable=False)

    assert blobs.read(sha256) == b"design"
    assert waiting(tmp_path) == [sha256]
    FaultyFiles.may_go_on.set()
    blobs.close()
    assert waiting(tmp_path) == []
    assert blobs_at(tmp_path / "other").read(sha256) == b"design"


def test_what_could_not_be_sent_is_told_and_sent_after_the_next_start(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    FaultyFiles.failures_left = 10**6
    sha256 = blobs.put_file(written(tmp_path, b"design"), durable=False)
    blobs.close()

    assert waiting(tmp_path) == [sha256]
    (problem,) = blobs.problems()
    assert problem.startswith("1 file waits to be sent to faulty://bucket/designs: ")
    assert "connection reset" in problem

    FaultyFiles.failures_left = 0
    again = blobs_at(tmp_path)
    again.close()
    assert waiting(tmp_path) == []
    assert again.problems() == []
    assert blobs_at(tmp_path / "other").read(sha256) == b"design"


def test_sending_goes_on_by_itself_when_the_store_is_back(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path, retry_seconds=0.0)
    FaultyFiles.failures_left = 7  # more than one round of attempts
    sha256 = blobs.put_file(written(tmp_path, b"design"), durable=False)
    sender = blobs._sender
    if sender is not None:
        sender.join(10)

    assert waiting(tmp_path) == []
    assert FaultyFiles.requests == ["put"] * 8
    assert blobs_at(tmp_path / "other").read(sha256) == b"design"


def test_a_damaged_copy_is_never_sent(tmp_path: Path) -> None:
    first = blobs_at(tmp_path)
    FaultyFiles.failures_left = 10**6
    sha256 = first.put_file(written(tmp_path, b"the truth"), durable=False)
    first.close()
    path = first.path_of(sha256)
    path.chmod(0o600)
    path.write_bytes(b"the trutj")
    FaultyFiles.failures_left = 0

    blobs_at(tmp_path).close()

    assert waiting(tmp_path) == []
    with pytest.raises(KeyError):
        blobs_at(tmp_path / "other").read(sha256)


# -- URLs


def test_without_a_url_there_is_the_folder_and_fsspec_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from metaforge.app import App; from metaforge.settings import Settings\n"
        f"app = App(Settings(home=Path({str(tmp_path / 'home')!r})), over_stdio=False)\n"
        "app.blobs.put_bytes(b'design'); print(type(app.blobs).__name__, 'fsspec' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["BlobStore", "False"]


def test_an_app_with_a_url_loads_nothing_until_a_content_is_kept(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    settings = Settings.load({"METAFORGE_HOME": f"{tmp_path}/home", "METAFORGE_BLOB_URL": f"file://{tmp_path}/shared"})
    code = (
        "import sys; from pathlib import Path; from metaforge.store.blobs import open_blobs\n"
        f"blobs = open_blobs({settings.blob_url!r}, Path({str(tmp_path / 'blobs')!r}))\n"
        "print('fsspec' in sys.modules); print(blobs.put_bytes(b'design'), 'fsspec' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, sha256, after = ran.stdout.split()
    assert (before, after) == ("False", "True")
    assert BlobStore(tmp_path / "shared").read(sha256) == b"design"


@pytest.mark.parametrize("url", ["bucket/designs", "file://designs", "file:designs", "s3://"])
def test_a_url_that_names_no_store_is_refused_with_one_that_does(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="file:///absolute/folder"):
        blobs_at(tmp_path, url).put_bytes(b"design")


def test_a_scheme_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="Protocol not known: carrierpigeon"):
        blobs_at(tmp_path, "carrierpigeon://loft").prepare()


def test_a_missing_driver_comes_with_the_command_that_installs_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from metaforge.store.objects import ObjectStore; from metaforge.store.location import StoreUnavailable\n"
        "try: ObjectStore('s3://bucket/designs').check()\n"
        "except StoreUnavailable as fault: print(fault.message); print(fault.data['install'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message, install = ran.stdout.splitlines()
    assert install == f"{sys.executable} -m pip install 'metaforge[objects]'"
    assert message.startswith("METAFORGE_BLOB_URL=s3://bucket/designs needs a driver that is not installed (")
    assert message.endswith(install)


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path, f"file://{tmp_path}/mounted")
    for attempt in (blobs.prepare, lambda: blobs.put_bytes(b"design"), lambda: blobs.read("0" * 64)):
        with pytest.raises(StoreUnavailable, match="mount it"):
            attempt()
    assert not (tmp_path / "mounted").exists()


def test_a_password_in_the_url_is_not_shown(tmp_path: Path) -> None:
    FaultyFiles.failures_left = 10**6
    with pytest.raises(StoreUnavailable) as refused:
        blobs_at(tmp_path, "faulty://key:se/cret@bucket/designs").put_bytes(b"design")
    assert "faulty://bucket/designs" in refused.value.message
    assert "cret" not in refused.value.message


# -- what stands on it


def long_note(number: int) -> dict[str, Any]:
    return {"text": "x" * (INLINE_BYTES + 1), "number": number}


def test_a_record_whose_long_text_the_store_did_not_take_is_not_written(tmp_path: Path) -> None:
    with closing(Database("", tmp_path)) as database:
        twin = TwinStore(database, blobs_at(tmp_path))
        with twin.change(author="a") as change:
            kept = change.record("note", long_note(1)).node_id
        FaultyFiles.failures_left = 10**6

        with pytest.raises(StoreUnavailable, match="connection reset"), twin.change(author="a") as change:
            [change.record("note", body) for body in ({"number": 2}, long_note(3))]

        elsewhere = TwinStore(database, blobs_at(tmp_path / "other"))
        FaultyFiles.failures_left = 0
        with elsewhere.read() as view:
            assert view.node(kept).body == long_note(1)
        with closing(sqlite3.connect(database.path)) as connection:
            assert connection.execute("select count(*) from nodes").fetchone() == (1,)


def test_a_twin_behind_an_object_store_never_reads_where_nothing_may_wait(tmp_path: Path) -> None:
    with closing(Database("", tmp_path)) as database:
        database.prepare()
        for blobs, at_once in ((BlobStore(tmp_path / "blobs"), True), (blobs_at(tmp_path), False)):
            twin = TwinStore(database, blobs)
            with twin.read() as view:
                view.projects()
            assert twin.answers_at_once is at_once


async def test_a_resource_that_the_store_does_not_give_is_unreadable_and_says_why(tmp_path: Path) -> None:
    app = App(Settings(home=tmp_path / "home", blob_url="faulty://bucket/designs"), over_stdio=False)
    try:
        FaultyFiles.failures_left = 10**6
        FaultyFiles.fault = PermissionError("Access Denied")
        with pytest.raises(ResourceUnreadable, match="could not be read: Access Denied"):
            await app.read_resource("metaforge://artefacts/" + "0" * 64)
    finally:
        await app.close()


def test_doctor_exchanges_an_object_or_says_what_to_do(tmp_path: Path) -> None:
    def checks(url: str) -> list[Check]:
        return list(object_store_checks(App(Settings(home=tmp_path / "home", blob_url=url), over_stdio=False)))

    assert checks("") == []
    (works,) = checks("faulty://bucket/designs")
    assert works.state is State.OK
    (fails,) = checks(f"file://{tmp_path}/mounted")
    assert fails.state is State.MISSING
    assert "mount it, or make it with mkdir -p" in fails.detail
    assert fails.fix == "correct METAFORGE_BLOB_URL, or unset it"


# -- what is kept from before there was a store, and long bodies


def kept_before(folder: Path, *contents: bytes) -> list[str]:
    """Keep contents as a server without METAFORGE_BLOB_URL does."""
    return [BlobStore(folder / "blobs").put_bytes(content) for content in contents]


def test_what_was_kept_before_the_store_came_is_told_and_sent(url: str, tmp_path: Path) -> None:
    before = kept_before(tmp_path / "one", b"first", b"second")
    blobs = blobs_at(tmp_path / "one", url)
    sent = blobs.put_bytes(b"third")
    assert not blobs.is_complete

    assert blobs.missing() == sorted(before)
    assert blobs.settle([*before, sent], seconds=60.0) == {}

    assert blobs.missing() == []
    other = blobs_at(tmp_path / "other", url)
    assert [other.read(sha256) for sha256 in before] == [b"first", b"second"]


def test_a_folder_that_began_with_its_store_is_complete(tmp_path: Path) -> None:
    blobs = blobs_at(tmp_path)
    assert blobs.is_complete
    blobs.put_bytes(b"design")
    assert blobs_at(tmp_path).is_complete
    assert not blobs_at(tmp_path, "faulty://another/bucket").is_complete


def test_what_cannot_be_settled_is_told_with_its_reason(tmp_path: Path) -> None:
    (damaged,) = kept_before(tmp_path, b"the truth")
    path = BlobStore(tmp_path / "blobs").path_of(damaged)
    path.chmod(0o600)
    path.write_bytes(b"the trutj")
    (whole,) = kept_before(tmp_path, b"whole")
    blobs, nowhere = blobs_at(tmp_path), "0" * 64

    told = blobs.settle([damaged, nowhere, whole], seconds=60.0)
    assert told.keys() == {damaged, nowhere}
    assert "is damaged" in told[damaged]
    assert "neither below" in told[nowhere]

    FaultyFiles.failures_left = 10**6
    (late,) = kept_before(tmp_path, b"late")
    assert "connection reset" in blobs.settle([late], seconds=60.0)[late]


def test_settling_begins_nothing_after_its_time(tmp_path: Path) -> None:
    first, second = kept_before(tmp_path, b"first", b"second")
    told = blobs_at(tmp_path).settle([first, second], seconds=-1.0)
    assert told.keys() == {first, second}
    assert "still on its way" in told[first]
    assert FaultyFiles.requests == []


def test_a_folder_alone_tells_what_is_gone(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    there = blobs.put_file(written(tmp_path, b"design"), durable=False)
    told = blobs.settle([there, "0" * 64], seconds=1.0)
    assert told == {"0" * 64: f"it is not below {tmp_path}/blobs any more"}


def test_a_long_body_goes_to_the_store_while_others_can_write(tmp_path: Path) -> None:
    database, blobs = Database("", tmp_path), blobs_at(tmp_path)
    twin = TwinStore(database, blobs)
    with twin.change(author="owner") as change:
        project_id = change.create_project("P").project_id
    FaultyFiles.may_go_on.clear()
    done: list[str] = []

    def write_long() -> None:
        body = {"text": "x" * (INLINE_BYTES + 1)}
        node = twin.perform(lambda change: change.record("note", body, name="long"), author="a", project_id=project_id)
        done.append(node.node_id)

    long = threading.Thread(target=write_long)
    long.start()
    while not FaultyFiles.arrivals:
        assert long.is_alive()
        long.join(0.01)
    short = twin.perform(lambda change: change.record("note", {"text": "short"}), author="b", project_id=project_id)
    assert done == [], "the store has not taken the long one yet"
    FaultyFiles.may_go_on.set()
    long.join(10)
    with twin.read() as view:
        assert view.node(done[0]).body["text"].startswith("xx")
        assert view.node(short.node_id).body == {"text": "short"}
        notes = view.of_project(project_id).find("note", "author", "a")
    assert [node.node_id for node in notes] == done, "it is written once"
    database.close()


def test_a_long_body_that_the_store_refuses_is_not_recorded_and_holds_nobody_up(tmp_path: Path) -> None:
    database, blobs = Database("", tmp_path), blobs_at(tmp_path)
    twin = TwinStore(database, blobs)
    FaultyFiles.failures_left = 10**6
    with pytest.raises(StoreUnavailable, match="connection reset"):
        twin.perform(lambda change: change.record("note", {"text": "x" * (INLINE_BYTES + 1)}), author="a")
    with twin.read() as view:
        assert view.seq() == 0
    database.close()


def test_a_change_whose_long_body_differs_each_time_is_written_all_the_same(tmp_path: Path) -> None:
    database, blobs = Database("", tmp_path), blobs_at(tmp_path)
    twin = TwinStore(database, blobs)
    attempts: list[int] = []

    def write(change: Any) -> Any:
        attempts.append(1)
        return change.record("note", {"text": str(len(attempts)) * (INLINE_BYTES + 1)})

    node = twin.perform(write, author="a")
    with twin.read() as view:
        assert view.node(node.node_id).body["text"] == str(len(attempts)) * (INLINE_BYTES + 1)
        assert view.seq() == 1
    database.close()

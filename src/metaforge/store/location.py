"""Where the SQL store lies, and whether a database can be kept there."""

import os
import re
import sys
from pathlib import Path

from metaforge.core.errors import MetaForgeError

DEFAULT_NAME = "metaforge.db"
_OCTAL = re.compile(rb"\\([0-7]{3})")
_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3?|smbfs|ncpfs|afs|afpfs|9p|ceph|lustre|beegfs|gpfs|glusterfs|ocfs2|gfs2|vboxsf|prl_fs|davfs"
    r"|fuse\.(sshfs|glusterfs|ceph|cephfs|s3fs|rclone|davfs2?|smbnetfs|gcsfuse)"
)


class StoreUnavailable(MetaForgeError):
    """The database or the object store cannot be used; the message says why and what to do.

    `data`: path of a database, install (the command that brings a missing driver), where there is one.
    """


def database_path(url: str, home: Path) -> Path:
    """Return the SQLite file that a URL names, or the default one below `home`.

    Raises:
        StoreUnavailable: the URL is of another kind.
    """
    if not url:
        return home / DEFAULT_NAME
    kind = url.partition(":")[0]
    text = next((url.removeprefix(start) for start in _SQLITE if url.startswith(start)), "")
    if not text or "?" in text or text == ":memory:":
        raise StoreUnavailable(
            f"METAFORGE_DATABASE_URL of kind {kind!r} cannot be used: name an SQLite file, "
            f"sqlite:////absolute/path/{DEFAULT_NAME} (four slashes), or a Postgres database, "
            f"postgresql://user:password@host/database. Unset it for {home / DEFAULT_NAME}"
        )
    return Path(text).expanduser().resolve()


def refuse_network(path: Path) -> None:
    """Refuse a database on a network file system, where its log and locks do not hold.

    Raises:
        StoreUnavailable: naming the file system.
    """
    if not sys.platform.startswith("linux"):
        return
    kind = file_system_of(path, Path("/proc/self/mountinfo").read_bytes())
    if _NETWORK.fullmatch(kind):
        raise StoreUnavailable(
            f"{path} lies on a network file system ({kind}), where SQLite's write-ahead log can lose or corrupt data. "
            "Set METAFORGE_HOME to a folder on a local disk, or METAFORGE_DATABASE_URL to a Postgres database",
            path=str(path),
        )


def file_system_of(path: Path, mountinfo: bytes) -> str:
    """Return the type of the file system that holds a path.

    Args:
        path: a file or folder that need not exist yet.
        mountinfo: content of `/proc/self/mountinfo`.
    """
    parents = {str(path), *map(str, path.parents)}
    longest, kind = "", ""
    for line in mountinfo.splitlines():
        before, found, after = line.partition(b" - ")
        if not found:
            continue
        mount_point = os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), before.split(b" ")[4]))
        if mount_point in parents and len(mount_point) >= len(longest):
            longest, kind = mount_point, after.split(b" ")[0].decode()
    return kind

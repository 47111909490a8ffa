from pathlib import Path

import pytest

from metaforge.store import location
from metaforge.store.location import StoreUnavailable, database_path, file_system_of, refuse_network

MOUNTS = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw,relatime shared:5 - nfs4 server:/export rw
31 30 0:27 / /home/anna/My\040Disk rw shared:6 - xfs /dev/sdb1 rw
32 22 0:28 / /mnt/c rw - 9p drvfs rw
33 22 0:29 / /data rw - ext4 /dev/sdc rw
34 22 0:30 / /data rw master:7 propagate_from:2 - fuse.sshfs anna@far: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/x.db", "ext4"),
        ("/home/anna/.local/metaforge.db", "nfs4"),
        ("/home/anna/My Disk/metaforge.db", "xfs"),
        ("/homestead/metaforge.db", "ext4"),
        ("/mnt/c/Users/metaforge.db", "9p"),
        ("/data/metaforge.db", "fuse.sshfs"),
    ],
)
def test_the_nearest_mount_tells_the_file_system(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="no /proc/self/mountinfo on this system")
def test_a_network_file_system_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: MOUNTS if "mountinfo" in str(self) else real(self))

    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\).*METAFORGE_HOME"):
        refuse_network(Path("/home/anna/.local/metaforge.db"))
    refuse_network(Path("/var/lib/metaforge.db"))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", "/srv/home/metaforge.db"),
        ("sqlite:////var/lib/m.db", "/var/lib/m.db"),
        ("sqlite+pysqlite:////var/lib/m.db", "/var/lib/m.db"),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert database_path(url, Path("/srv/home")) == Path(path)


@pytest.mark.parametrize("url", ["mysql://u:pw@h/db", "sqlite://", "sqlite:///:memory:", "sqlite:////a?mode=ro", "x"])
def test_other_urls_are_refused_without_telling_their_password(url: str) -> None:
    with pytest.raises(StoreUnavailable, match="METAFORGE_DATABASE_URL") as caught:
        database_path(url, Path("/srv/home"))
    assert "pw" not in caught.value.message


def test_the_refused_kinds_are_whole_names() -> None:
    assert location._NETWORK.fullmatch("nfs")
    assert not location._NETWORK.fullmatch("nfsd")
    assert not location._NETWORK.fullmatch("fuse.ext4")

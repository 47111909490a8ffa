"""The secret that processes of one home share."""

import threading

from metaforge.store.secret import kept_secret


def test_all_who_ask_at_once_get_the_same_secret_that_only_the_owner_may_read(tmp_path) -> None:
    path, got = tmp_path / "keys" / "state", []
    threads = [threading.Thread(target=lambda: got.append(kept_secret(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(got)) == 1
    assert len(got[0]) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["state"]


def test_where_no_file_can_be_kept_nobody_knows_the_secret(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "state"
    assert kept_secret(path) != kept_secret(path)

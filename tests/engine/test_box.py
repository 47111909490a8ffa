"""What a box lets its tools see and touch."""

import os
import socket
from pathlib import Path

import pytest

from metaforge.engine import sandbox, seccomp
from metaforge.settings import Settings

HERE = Path(__file__).parent

pytestmark = pytest.mark.usefixtures("bubblewrap")


async def test_the_hosts_accounts_cannot_be_read(box):
    assert "refused" in (await box.call("read", path="/etc/passwd")).data["text"]
    assert "refused" in (await box.call("read", path="/etc/shadow")).data["text"]


async def test_a_home_folder_is_not_there(box, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    assert "refused" in (await box.call("read", path=str(secret))).data["text"]


async def test_the_servers_own_folder_is_not_there_even_below_a_folder_that_is(make_house, tmp_path):
    prefix, beside = tmp_path, tmp_path / "beside.txt"
    inside = tmp_path / "home" / "adapters" / "there"
    inside.mkdir(parents=True)
    kept, secret = inside / "module.py", tmp_path / "home" / "metaforge.db"
    for file in (beside, kept, secret):
        file.write_text("text of " + file.name)
    linked = tmp_path.parent / f"{tmp_path.name}-link"
    linked.symlink_to(prefix)
    for folder in (prefix, linked):
        paths = (HERE, folder, folder / "home" / "adapters" / "there")
        house = make_house("bubblewrap", python_paths=paths)
        shown = {path: (await house.call("read", path=str(folder / path.relative_to(prefix)))).data["text"]
                 for path in (beside, kept, secret)}  # fmt: skip
        written = (await house.call("write", path=str(folder / "home" / "new.txt"))).data["text"]
        await house.source.close()
        assert shown[beside] == "text of beside.txt"
        assert shown[kept] == "text of module.py"
        assert "refused" in shown[secret]
        assert "refused" in written


async def test_a_private_file_in_a_private_folder_of_the_workspace_can_be_read(box):
    folder = box.workspace / "private"
    folder.mkdir(mode=0o700)
    file = folder / "part.step"
    file.write_text("solid")
    file.chmod(0o600)
    box.workspace.chmod(0o700)
    assert (await box.call("read", path="private/part.step")).data["text"] == "solid"


@pytest.mark.parametrize("path", ["new.txt", "/usr/new.txt", "/etc/new.txt", "/new.txt"])
async def test_nothing_outside_the_output_folder_can_be_written(box, path):
    assert "refused" in (await box.call("write", path=path)).data["text"]
    assert not (box.workspace / "new.txt").exists()


async def test_there_is_no_network(box):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        outcome = await box.call("connect", port=listening.getsockname()[1])
    assert "refused" in outcome.data["text"]


async def test_no_user_namespace_can_be_made(box):
    assert (await box.call("new_user_namespace")).data["text"] != "entered"


@pytest.mark.skipif(seccomp.program() is None, reason="no filter for this machine")
async def test_files_cannot_be_opened_by_handle(box):
    assert (await box.call("open_by_handle")).data["text"] == os.strerror(1)


async def test_a_program_started_by_a_tool_finds_an_empty_stdin(house):
    assert (await house.call("read_stdin")).data["count"] == 0


async def test_what_a_tool_prints_never_reaches_the_protocol(house):
    assert (await house.call("speak")).data["text"] == "spoke"
    assert "stdout_junk" not in (await house.source.health(3.0)).detail


def test_describing_names_the_rung_and_its_memory_limit():
    told = sandbox.describe(Settings.load({"PATH": os.environ["PATH"]}))
    assert told["kind"] == "bubblewrap"
    assert told["network"] is False
    assert told["memory_limit"] in ("cgroup v1", "cgroup v2", "systemd scope", "watchdog")


def test_describing_plain_limits_says_what_is_given_up():
    told = sandbox.describe(Settings.load({"PATH": os.environ["PATH"], "METAFORGE_SANDBOX": "rlimits"}))
    assert told["kind"] == "rlimits"
    assert told["network"] is True
    assert "METAFORGE_SANDBOX=rlimits" in told["detail"]

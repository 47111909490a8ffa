"""What a container is asked to be: the options, the filter and the variables, without starting one."""

import errno
import resource
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from metaforge.engine.container_engine import ContainerEngine
from metaforge.engine.container_options import Plan, environment_lines, run_command
from metaforge.engine.container_seccomp import tighten, tightened

PODMAN = ContainerEngine("podman", "/usr/bin/podman", "4.3.1", rootless=False, runtime="runc", cgroup="v1")
DOCKER = ContainerEngine("docker", "/usr/bin/docker", "28.2.2", rootless=False, runtime="runsc", cgroup="v2")
PLAN = Plan(
    image="localhost/metaforge-spice:1", name="metaforge-spice-1-0", server_id="1", adapter_id="spice",
    workspace=Path("/home/me/work"), output=Path("/var/out"), user=(1000, 1000), memory_mb=2048, file_mb=512,
    environment={"LICENCE": "secret"}, environment_file=Path("/var/environment"),
)  # fmt: skip


@pytest.mark.parametrize("engine", [PODMAN, DOCKER], ids=["podman", "docker"])
def test_every_engine_is_asked_for_the_documented_isolation(engine: ContainerEngine) -> None:
    words = run_command(engine, PLAN)
    assert {
        "--network=none", "--read-only", "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size=256m,mode=1777", "--memory=2048m",
        "--memory-swap=2048m", "--cpu-period=100000", "--cpu-quota=200000", "--pids-limit=100",
        "--security-opt=no-new-privileges", "--cap-drop=all", "--ipc=private", "--shm-size=64m", "--ulimit=core=0:0",
        f"--ulimit=fsize={512 << 20}:{512 << 20}", "--user=1000:1000", "--pull=never", "--rm",
        "--volume=/home/me/work:/workspace:ro", "--volume=/var/out:/output:rw", "--label=metaforge.server=1",
        "--label=metaforge.adapter=spice", "--name=metaforge-spice-1-0",
    } <= set(words)  # fmt: skip
    assert words[-1] == PLAN.image
    assert not any("privileged" in word or "secret" in word for word in words)


def test_podman_takes_its_runtime_before_the_command_and_docker_after_it() -> None:
    assert run_command(PODMAN, PLAN)[1:3] == ["--runtime=runc", "run"]
    words = run_command(DOCKER, PLAN)
    assert words[1] == "run"
    assert "--runtime=runsc" in words


def test_without_root_the_user_stays_the_user_and_processes_are_counted_by_their_own_limit() -> None:
    words = run_command(replace(PODMAN, rootless=True), PLAN)
    assert {"--userns=keep-id", "--user=1000:1000", "--ulimit=nproc=100:100"} <= set(words)
    words = run_command(replace(PODMAN, rootless=True, cgroup="v2"), PLAN)
    assert "--ulimit=nproc=100:100" not in words
    assert "--user=0:0" in run_command(replace(DOCKER, rootless=True), PLAN)


def test_no_limit_is_above_what_this_process_may_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (600, 700))
    words = run_command(PODMAN, PLAN)
    assert {"--ulimit=nofile=700:700", "--ulimit=nproc=700:700", "--ulimit=fsize=700:700"} <= set(words)


def test_writing_the_workspace_has_to_be_asked_for() -> None:
    words = run_command(PODMAN, replace(PLAN, may_write_workspace=True, workspace_inside="/parts"))
    assert "--volume=/home/me/work:/parts:rw" in words


@pytest.mark.parametrize("given", [{"A": "one\nB=two"}, {"A B": "x"}, {"A=B": "x"}, {"": "x"}, {"A": "x\0"}])
def test_a_variable_cannot_bring_another(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be given to a container"):
        environment_lines(replace(PLAN, environment=given))


PROFILE: dict[str, Any] = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": errno.ENOSYS,
    "archMap": [{"architecture": "SCMP_ARCH_X86_64"}],
    "syscalls": [
        {"names": ["read", "ptrace", "clone", "clone3", "unshare", "keyctl"], "action": "SCMP_ACT_ALLOW", "args": []},
        {"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    ],
}


def test_a_stricter_filter_keeps_the_engines_rules_and_refuses_what_boxes_are_refused() -> None:
    rules = tighten(PROFILE)["syscalls"]
    allowed = {
        name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" and not rule["args"] for name in rule["names"]
    }
    assert allowed == {"read"}
    refused = {
        name for rule in rules if rule.get("errnoRet") == errno.EPERM and "args" not in rule for name in rule["names"]
    }
    assert {"ptrace", "keyctl", "bpf", "userfaultfd", "mount"} <= refused
    masked = {rule["action"]: rule["args"][0] for rule in rules if rule["names"] == ["clone", "unshare"]}
    assert masked["SCMP_ACT_ALLOW"]["valueTwo"] == 0
    assert masked["SCMP_ACT_ERRNO"]["valueTwo"] == masked["SCMP_ACT_ERRNO"]["value"] == 0x10000000
    assert tighten(PROFILE)["defaultAction"] == "SCMP_ACT_ERRNO"
    assert "ptrace" in PROFILE["syscalls"][0]["names"]


def test_a_filter_that_cannot_be_read_leaves_the_engines_own(tmp_path: Path) -> None:
    assert tightened(tmp_path / "none.json", tmp_path) is None
    (tmp_path / "broken.json").write_text('{"syscalls": [1]}')
    assert tightened(tmp_path / "broken.json", tmp_path) is None


def test_a_filter_is_written_once_and_others_may_not_change_it(tmp_path: Path) -> None:
    import json

    (tmp_path / "own.json").write_text(json.dumps(PROFILE))
    first = tightened(tmp_path / "own.json", tmp_path / "kept")
    assert first is not None
    assert tightened(tmp_path / "own.json", tmp_path / "kept") == first
    assert json.loads(first.read_text()) == tighten(PROFILE)
    assert not stat.S_IMODE(first.stat().st_mode) & 0o022

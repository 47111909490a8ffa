"""What `metaforge doctor` says of containers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from metaforge.cli.doctor import State, container_check
from metaforge.settings import Settings

DOCTOR = (sys.executable, "-m", "metaforge", "doctor", "--json")


def check(monkeypatch: pytest.MonkeyPatch, **told: Any) -> Any:
    known = {"engine": "podman", "version": "4.3.1", "rootless": False, "cgroup": "v1", "limits": "kernel"}
    monkeypatch.setattr("metaforge.engine.container_engine.describe", lambda settings: known | told)
    return container_check(Settings.load({}))


def test_an_engine_that_holds_every_limit_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check(monkeypatch, runtime="runc")
    assert (found.state, found.detail) == (State.OK, "podman 4.3.1, cgroup v1, runc: the kernel holds every limit")


def test_what_is_only_watched_is_told_with_what_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check(monkeypatch, rootless=True, limits="watched")
    assert found.state is State.NOTE
    assert "podman 4.3.1 without root, cgroup v1: memory is watched" in found.detail
    assert "cgroup v2" in found.fix


def test_a_missing_engine_is_told_where_an_adapter_runs_in_a_container(tmp_path: Path) -> None:
    # No engine on this PATH, and no other program either.
    environment = {
        "PATH": str(tmp_path), "METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_RUNNER": "container",
        "METAFORGE_ADAPTERS": "spice", "HOME": str(tmp_path), "LANG": "C.UTF-8",
    }  # fmt: skip
    environment |= {name: os.environ[name] for name in ("GLIBC_TUNABLES",) if name in os.environ}
    ran = subprocess.run(
        DOCTOR, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120, check=False
    )
    checks = {each["name"]: each for each in json.loads(ran.stdout)["checks"] if each["area"] in ("server", "adapters")}
    assert ran.returncode == 1
    assert checks["containers"]["state"] == "missing"
    assert checks["containers"]["fix"] == "apt-get install -y podman runc"
    assert "podman is not installed; docker is not installed" in checks["spice"]["detail"]

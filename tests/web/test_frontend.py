"""The bundled libraries: locked, built from the registry where npm is there, and never a reason to fail."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from metaforge.web.frontend import build as frontend
from metaforge.web.frontend.__main__ import main
from metaforge.web.pages import policy

ROOT = Path(__file__).resolve().parents[2]
HERE = frontend.HERE


def test_every_library_is_pinned_and_locked_by_its_digest_and_to_no_host():
    wanted = json.loads((HERE / "package.json").read_text())
    lock = json.loads((HERE / "package-lock.json").read_text())
    named = wanted["dependencies"] | wanted["devDependencies"]
    for name, version in named.items():
        assert version[0].isdigit(), f"{name} is not pinned"
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert all("integrity" in each for each in packages.values())
    assert not any("resolved" in each for each in packages.values())


def test_nothing_that_npm_brings_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files", "src/metaforge/web"], cwd=ROOT, capture_output=True, text=True).stdout
    assert "static/built" not in listed
    assert "node_modules" not in listed


def test_without_npm_the_command_says_what_to_install_and_set_up_goes_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("metaforge.web.frontend.__main__.is_built", lambda: False)
    monkeypatch.setattr(sys, "argv", ["frontend"])
    assert main() == 1
    assert "npm is not installed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["frontend", "--optional"])
    assert main() == 0
    assert "make web" in capsys.readouterr().err


def fake_npm(folder: Path, script: str) -> Path:
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("script", "told"),
    [("echo registry unreachable; exit 1", "registry unreachable"), ("exit 0", "was bundled without")],
)
def test_a_failing_npm_leaves_what_was_there(monkeypatch, tmp_path, script, told):
    monkeypatch.setenv("PATH", str(fake_npm(tmp_path, script)), prepend="")
    target = tmp_path / "built"
    target.mkdir()
    (target / "viewer.js").write_text("kept")
    with pytest.raises(frontend.NotBuilt, match=told):
        frontend.build(target)
    assert (target / "viewer.js").read_text() == "kept"


def test_a_bundle_of_other_sources_counts_as_missing(tmp_path):
    for name in frontend.BUNDLES:
        (tmp_path / f"{name}.js").write_text("")
    (tmp_path / frontend.STAMP).write_text('{"sources": "0123"}')
    assert not frontend.is_built(tmp_path)
    assert not frontend.is_built(tmp_path / "nowhere")


@pytest.fixture
def hook():
    """The build hook of the wheel, as hatch runs it, and the warnings it gives."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_frontend", ROOT / "scripts" / "hatch_frontend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    warnings = []
    app = SimpleNamespace(display_warning=warnings.append)
    made = module.FrontendHook(str(ROOT), {}, None, SimpleNamespace(), str(ROOT), "wheel", app)
    yield made, warnings, module
    sys.modules.pop("metaforge_frontend_build", None)


def test_a_wheel_without_npm_is_built_with_a_warning(hook, monkeypatch, tmp_path):
    made, warnings, module = hook
    monkeypatch.setenv("PATH", str(tmp_path))
    load = module._load

    def unbuilt(path):
        loaded = load(path)
        loaded.is_built = lambda: False
        return loaded

    monkeypatch.setattr(module, "_load", unbuilt)
    made.initialize("standard", {})
    assert "no 3-D view" in warnings[0]


def test_an_editable_install_builds_nothing(hook, monkeypatch):
    made, warnings, module = hook
    monkeypatch.setattr(module, "_load", lambda path: pytest.fail("built"))
    made.initialize("editable", {})
    assert warnings == []


@pytest.mark.skipif(not policy.built()["sources"], reason="the libraries are not bundled: make web")
def test_what_was_built_is_what_pages_expect():
    assert policy.built()["viewer_style"].startswith("sha256-")
    assert policy.built()["viewer_style"] in policy.page_headers(with_model=True)["content-security-policy"]
    assert "sha256-" not in policy.page_headers()["content-security-policy"]

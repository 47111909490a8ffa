"""What images are called, what their builds are told, and what is said when one cannot be built."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import contained

sys.path.insert(0, str(contained.ROOT / "scripts"))
import package_index

del sys.path[:2]
scripts, engines = contained.build_images, contained.container_engine
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPICE = scripts.Image("spice", contained.ROOT / "src/metaforge/adapters/spice/Dockerfile", "1.2.3")


def test_an_image_is_tagged_by_version_and_commit() -> None:
    assert scripts.tags_of(SPICE, scripts.Revision(COMMIT, False), "registry.example/team") == [
        "registry.example/team/metaforge-spice:1.2.3", "registry.example/team/metaforge-spice:0123456789ab",
    ]  # fmt: skip


@pytest.mark.parametrize("at", [scripts.Revision(COMMIT, True), scripts.Revision("", False)])
def test_what_is_no_commit_bears_none(at: scripts.Revision) -> None:
    assert scripts.tags_of(SPICE, at, "localhost") == ["localhost/metaforge-spice:1.2.3"]


def test_a_changed_tree_cannot_be_published_by_its_commit() -> None:
    assert scripts.tags_of(SPICE, scripts.Revision(COMMIT, True), "r", ["commit", "latest"]) == [
        "r/metaforge-spice:latest"
    ]
    with pytest.raises(scripts.Stop, match="Commit first"):
        scripts.tags_of(SPICE, scripts.Revision(COMMIT, True), "r", ["commit"])


def test_a_changed_tree_says_so_in_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(scripts.SOURCE, raising=False)
    assert scripts.labels_of(SPICE, scripts.Revision(COMMIT, True)) == {
        "org.opencontainers.image.version": "1.2.3", "org.opencontainers.image.revision": f"{COMMIT}-changed",
    }  # fmt: skip


def test_the_launcher_looks_for_the_name_that_is_built() -> None:
    from metaforge import __version__
    from metaforge.settings import Settings

    default = getattr(Settings(), "container_image", "localhost/metaforge-{adapter}:{version}")
    assert default.format(adapter="spice", version=__version__) == contained.image_of("spice")


@pytest.mark.parametrize("name", [*scripts.known_images()])
def test_every_image_can_be_built_on_another_base_and_runs_as_nobody(name: str) -> None:
    image = scripts.known_images()[name]
    text = image.dockerfile.read_text()
    assert ":" in image.default_base
    assert text.count("FROM ${BASE}") == text.count("FROM ") == 2
    assert "\nUSER 65534:65534\n" in text


def test_a_build_sees_the_wheel_and_what_its_dockerfile_copies_and_nothing_else(tmp_path: Path) -> None:
    wheel = tmp_path / "metaforge-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"")
    dockerfile = scripts.gather(SPICE, wheel, tmp_path / "context")
    found = {
        str(path.relative_to(tmp_path / "context")) for path in (tmp_path / "context").rglob("*") if path.is_file()
    }
    place = "src/metaforge/adapters/spice"
    assert found == {f"dist/{wheel.name}", f"{place}/Dockerfile", f"{place}/requirements.txt"}
    assert dockerfile == tmp_path / "context" / place / "Dockerfile"


def test_an_adapter_of_its_own_folder_is_built_whole_beside_the_wheel(tmp_path: Path) -> None:
    image = scripts.image_called(str(contained.ROOT / "examples" / "metaforge-openscad"))
    assert (image.name, image.version) == ("openscad", "0.1.0")
    wheel = tmp_path / "metaforge-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"")
    dockerfile = scripts.gather(image, wheel, tmp_path / "context")
    assert dockerfile == tmp_path / "context" / "Dockerfile"
    assert (tmp_path / "context" / "wheels" / wheel.name).exists()
    assert (tmp_path / "context" / "src" / "metaforge_openscad" / "server.py").exists()


def test_the_pip_of_a_build_is_told_the_index_and_not_this_machines_files(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.write_text("certificate")
    told = {
        "index-url": "https://user:secret@index.example/simple", "find-links": "/opt/wheels", "cert": str(own),
        "extra-index-url": "file:///opt/more https://more.example/simple", "default-timeout": "180",
    }  # fmt: skip
    secrets = package_index.secrets_of(told, tmp_path, {})
    assert secrets["certificates"] == own
    assert secrets["pip"].read_text().splitlines() == [
        "[global]", "disable-pip-version-check = true", "index-url = https://user:secret@index.example/simple",
        "extra-index-url = https://more.example/simple", "timeout = 180", "cert = /build/certificates.pem",
    ]  # fmt: skip
    assert secrets["pip"].stat().st_mode & 0o077 == 0


def test_where_pip_is_told_nothing_a_build_is_told_nothing(tmp_path: Path) -> None:
    secrets = package_index.secrets_of({}, tmp_path, {})
    assert secrets.keys() == {"pip"}
    assert secrets["pip"].read_text() == "[global]\ndisable-pip-version-check = true\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["spcie"], "There is no image 'spcie': there are cadquery, calculix, freecad, kicad, spice, server"),
        (["--push", "spice"], "--push needs --registry"),
    ],
)
def test_what_cannot_be_built_says_what_can(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.main(words) == 1
    assert told in capsys.readouterr().err


@pytest.fixture
def no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> engines.Engine:
    """An engine that has no image and reaches no registry."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "podman"
    program.write_text("#!/bin/sh\necho 'no such host' >&2\nexit 125\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return engines.Engine("podman")


def test_without_registry_and_mmdebstrap_the_error_says_both_ways(no_registry: engines.Engine) -> None:
    with pytest.raises(engines.Stop, match=r"python:3 cannot be fetched: no such host\ninstall mmdebstrap .*--base"):
        engines.base_for(no_registry, "", "python:3")


def test_an_engine_that_does_not_answer_is_told_with_its_words(
    no_registry: engines.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(engines.Stop, match=r"podman: no such host\n  docker: .*\nInstall podman"):
        engines.find_engine()

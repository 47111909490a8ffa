"""Build the images of the adapters and of the server, tag them by version and commit, and push them where asked.

Standard library only, so that it runs before anything is installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from container_engine import Engine, Stop, base_for, find_engine  # noqa: E402
from package_index import pip_settings, secrets_of  # noqa: E402

SERVER = "server"
TAGS = ("version", "commit", "latest")
LOCAL = "localhost"
SOURCE = "METAFORGE_IMAGE_SOURCE"
"""The variable that holds the repository's address, for the label of that name."""
ENGINE = "METAFORGE_CONTAINER_ENGINE"
"""The variable by which the server knows which engine to use; images belong where it looks for them."""
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Image:
    """What is built: a name, a Dockerfile, and the version of what it holds."""

    name: str
    dockerfile: Path
    version: str
    is_whole_folder: bool = False
    """Whether its build sees the folder it lies in, as an adapter outside this repository's package does."""

    @property
    def default_base(self) -> str:
        found = re.search(r"^ARG BASE=(\S+)$", self.dockerfile.read_text(), re.MULTILINE)
        if not found:
            raise Stop(f"{self.dockerfile} has no line ARG BASE=IMAGE")
        return found[1]


@dataclass(frozen=True)
class Revision:
    """The commit that is built, and whether the tree differs from it."""

    commit: str
    is_changed: bool

    def __str__(self) -> str:
        return f"{self.commit}{'-changed' if self.is_changed else ''}" if self.commit else "unknown"


def known_images() -> dict[str, Image]:
    """Return every image of this repository by its name: adapters in the order of the alphabet, then the server."""
    version = version_in(ROOT)
    files = sorted((ROOT / "src" / "metaforge" / "adapters").glob("*/Dockerfile"))
    images = {path.parent.name: Image(path.parent.name, path, version) for path in files}
    return images | {SERVER: Image(SERVER, ROOT / "Dockerfile", version)}


def version_in(folder: Path) -> str:
    """Return the version that a folder's pyproject.toml states."""
    return str(tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"])


def image_called(name: str) -> Image:
    """Return a known image, or that of an adapter's folder.

    Raises:
        Stop: there is none.
    """
    if (found := known_images().get(name)) is not None:
        return found
    folder = Path(name)
    if (folder / "Dockerfile").is_file() and (folder / "pyproject.toml").is_file():
        short = folder.resolve().name.removeprefix("metaforge-")
        return Image(short, (folder / "Dockerfile").resolve(), version_in(folder), is_whole_folder=True)
    raise Stop(f"There is no image {name!r}: there are {', '.join(known_images())}, or name an adapter's folder")


def revision() -> Revision:
    """Return what is built, as git names it."""

    def git(*words: str) -> str:
        try:
            return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout
        except (FileNotFoundError, subprocess.CalledProcessError):
            return ""

    # Only what a wheel is made of decides what is in an image.
    made_of = ("src", "pyproject.toml", "scripts/hatch_frontend.py", "README.md", "Dockerfile")
    return Revision(git("rev-parse", "HEAD").strip(), bool(git("status", "--porcelain", "--", *made_of).strip()))


def tags_of(image: Image, at: Revision, registry: str, kinds: Sequence[str] = ("version", "commit")) -> list[str]:
    """Return the names of an image: a commit's only where that is what was built.

    Raises:
        Stop: no name is left.
    """
    commit = at.commit[:12] if not at.is_changed else ""
    words = {"version": image.version, "commit": commit, "latest": "latest"}
    tags = [f"{registry}/metaforge-{image.name}:{words[kind]}" for kind in kinds if words[kind]]
    if not tags:
        raise Stop(f"{image.name} has no tag: the tree differs from its commit. Commit first, or tag it by version")
    return tags


def labels_of(image: Image, at: Revision) -> dict[str, str]:
    """Return what an image says of itself beside what its Dockerfile says, in OCI's words."""
    labels = {"version": image.version, "revision": str(at), "source": os.environ.get(SOURCE, "")}
    return {f"org.opencontainers.image.{name}": text for name, text in labels.items() if text}


def build_wheel(folder: Path) -> Path:
    """Build this project's wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if told.returncode or len(wheels) != 1:
        raise Stop(f"The wheel was not built:\n{(told.stdout + told.stderr).strip()[-2000:]}")
    return wheels[0]


def gather(image: Image, wheel: Path, folder: Path) -> Path:
    """Lay out what the build of an image sees, and return its Dockerfile there."""
    if image.is_whole_folder:
        ignored = shutil.ignore_patterns(".venv", "__pycache__", ".*_cache", "*.egg-info", ".git", "wheels")
        shutil.copytree(image.dockerfile.parent, folder, ignore=ignored)
        wheels = folder / "wheels"
    else:
        wheels = folder / "dist"
        place = folder / image.dockerfile.parent.relative_to(ROOT)
        place.mkdir(parents=True)
        for each in (image.dockerfile, image.dockerfile.with_name("requirements.txt")):
            if each.exists():
                shutil.copy(each, place)
    wheels.mkdir()
    shutil.copy(wheel, wheels)
    return folder / image.dockerfile.relative_to(image.dockerfile.parent if image.is_whole_folder else ROOT)


def build(engine: Engine, image: Image, base: str, wheel: Path, tags: list[str], at: Revision, *, anew: bool) -> None:
    """Build one image under its names."""
    with tempfile.TemporaryDirectory(prefix="metaforge-image-") as told:
        folder = Path(told)
        dockerfile = gather(image, wheel, folder / "context")
        secrets = secrets_of(pip_settings(), folder)
        command = engine.command("build", *engine.building, "--network", "host", "--file", str(dockerfile))
        command += ["--build-arg", f"BASE={base}", *(["--no-cache"] if anew else [])]
        for name in filter(os.environ.__contains__, _PROXIES):
            command += ["--build-arg", name]
        for name, path in secrets.items():
            command += ["--secret", f"id={name},src={path}"]
        for name, text in labels_of(image, at).items():
            command += ["--label", f"{name}={text}"]
        for tag in tags:
            command += ["--tag", tag]
        environment = {**os.environ, "DOCKER_BUILDKIT": "1", "TMPDIR": os.environ.get("TMPDIR", "/var/tmp")}
        ran = subprocess.run(
            [*command, str(folder / "context")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", env=environment, check=False,
        )  # fmt: skip
    if ran.returncode:
        raise Stop(f"{image.name} was not built:\n{ran.stdout.strip()[-4000:]}")


def push(engine: Engine, tags: list[str]) -> None:
    """Send an image to its registry, under each of its names."""
    for tag in tags:
        told = engine.run("push", tag)
        if told.returncode:
            raise Stop(f"{tag} was not pushed: {told.stderr.strip()[-500:]}")


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    if not set(kinds) <= {*TAGS}:
        raise argparse.ArgumentTypeError(f"takes some of {', '.join(TAGS)}, separated by commas")
    return kinds


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/images", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="an adapter, `server`, or an adapter's folder; default: all"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the images and end")
    parser.add_argument("--base", default="", help="image to build on; `debian`: one made here from Debian's packages. "
                        "Default: the Dockerfile's own, or Debian's packages where no registry answers")  # fmt: skip
    parser.add_argument(
        "--engine", choices=("podman", "docker"), default=os.environ.get(ENGINE, ""),
        help=f"default: {ENGINE}, or the first that answers",
    )  # fmt: skip
    parser.add_argument("--registry", default=LOCAL, help="what stands before the names; default: %(default)s")
    parser.add_argument("--push", action="store_true", help="push what was built to that registry")
    parser.add_argument(
        "--tags",
        type=_kinds,
        default="version,commit",
        metavar="KINDS",
        help="of version, commit and latest; default: version,commit",
    )
    parser.add_argument(
        "--anew", action="store_true", help="fetch or make the base again, and use nothing built before"
    )
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    """Build, and push where asked, what the options name."""
    images = [image_called(name) for name in options.names or known_images()]
    if options.push and options.registry == LOCAL:
        raise Stop("--push needs --registry, such as registry.example/team")
    engine, at, renewed = find_engine(options.engine), revision(), set[str]()
    with tempfile.TemporaryDirectory(prefix="metaforge-wheel-") as folder:
        wheel = build_wheel(Path(folder))
        for image in images:
            started = time.monotonic()
            anew = options.anew and (options.base or image.default_base) not in renewed
            base, word = base_for(engine, options.base, image.default_base, anew=anew)
            renewed.add(options.base or image.default_base)
            tags = tags_of(image, at, options.registry.rstrip("/"), options.tags)
            before = engine.id_of(tags[0])
            build(engine, image, base, wheel, tags, at, anew=options.anew)
            if before and before != engine.id_of(tags[0]):
                engine.forget(before)
            if options.push:
                push(engine, tags)
            size, seconds = engine.size_bytes(tags[0]) / 1e6, time.monotonic() - started
            print(f"  {' '.join(tags)}  {size:.0f} MB, {seconds:.0f} s, on {base} ({word})", flush=True)


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    if options.list:
        print("\n".join(known_images()))
        return 0
    try:
        run(options)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

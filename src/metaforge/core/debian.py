"""Which Debian this is, and the command that installs a package whose own version there is too old.

Standard library only: set-up uses it before anything is installed.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

_RELEASE = Path("/etc/os-release")


@cache
def codename(release: Path = _RELEASE) -> str:
    """Return the codename of this Debian release, such as `bookworm`; empty on another system."""
    try:
        lines = release.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    told = {name: text.strip('"') for name, _, text in (line.partition("=") for line in lines)}
    return told.get("VERSION_CODENAME", "") if told.get("ID") == "debian" else ""


def with_backports(packages: Sequence[str], backports_of: str, release: str | None = None) -> list[str]:
    """Return the packages as apt is asked for them: from backports where this release's own are too old."""
    here = codename() if release is None else release
    taken = f"/{here}-backports" if here and here == backports_of else ""
    return [f"{package}{taken}" for package in packages]


def install_command(packages: Sequence[str], backports_of: str = "", release: str | None = None, sudo: str = "") -> str:
    """Return one command that installs packages with apt, adding the release's backports where they come from there.

    Args:
        packages: of Debian.
        backports_of: the release whose own packages are too old.
        release: codename of the system; this one's by default.
        sudo: `sudo ` for who is not root.
    """
    here = codename() if release is None else release
    asked = " ".join(with_backports(packages, backports_of, here))
    install = f"{sudo}apt-get install -y --no-install-recommends {asked}" if backports_of else (
        f"{sudo}apt-get install -y {asked}"
    )  # fmt: skip
    if not here or here != backports_of:
        return install
    return f"{add_backports(here, sudo)} && {sudo}apt-get update && {install}"


def add_backports(release: str, sudo: str = "") -> str:
    """Return the command that adds a release's backports to apt, from the mirror that apt already uses."""
    mirror = (
        "$(apt-get indextargets --format '$(REPO_URI)' "
        f"'Codename: {release}' 'Component: main' 'Created-By: Packages' | head -n 1)"
    )
    return f'echo "deb {mirror} {release}-backports main" | {sudo}tee {sources_list(release)}'


def sources_list(release: str) -> str:
    """Return the file that names a release's backports to apt."""
    return f"/etc/apt/sources.list.d/{release}-backports.list"

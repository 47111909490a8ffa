"""Write every adapter's manifest.json from its code; with --check only say which ones are stale."""

import importlib.util
import sys
from pathlib import Path

from metaforge.adapters import CATALOG
from metaforge.tools.generate import manifest_bytes


def manifest_path(target: str) -> Path:
    """Return where the adapter's manifest lies: beside its server.py."""
    spec = importlib.util.find_spec(target.partition(":")[0])
    if spec is None or spec.origin is None:
        raise SystemExit(f"{target}: no such module")
    return Path(spec.origin).with_name("manifest.json")


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for target in CATALOG.values():
        path, fresh = manifest_path(target), manifest_bytes(target)
        if path.is_file() and path.read_bytes() == fresh:
            continue
        stale.append(path)
        if not check:
            path.write_bytes(fresh)
            print(f"written: {path}")
    if check and stale:
        print("stale, run `make manifests`:", *stale, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m metaforge.web.frontend`: add the 3-D view to the dashboard; quick when it is there already."""

import sys

from metaforge.web.frontend.build import NotBuilt, build, is_built


def main() -> int:
    """Build; returns 0 also where that is not possible when `--optional` is given, as set-up does."""
    if is_built():
        return 0
    try:
        build()
    except NotBuilt as fault:
        print(f"  dashboard: no live swapping and no 3-D view: {fault}. Then: make web", file=sys.stderr)
        return 0 if "--optional" in sys.argv[1:] else 1
    print("  dashboard: libraries bundled")
    return 0


if __name__ == "__main__":
    sys.exit(main())

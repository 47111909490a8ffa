"""What a browser may do with a page: the headers that every answer carries."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

STATIC = Path(__file__).resolve().parent.parent / "static"
BUILT = STATIC / "built"

_ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self'{blobs}; "
    "connect-src 'self'{blobs}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_FILE = "default-src 'none'; sandbox; frame-ancestors 'none'"


def page_headers(*, with_model: bool = False) -> Mapping[str, str]:
    """Return the headers of a page: nothing inline, nothing from elsewhere.

    Args:
        with_model: whether it shows a 3-D view, whose element brings one style sheet inline, allowed by its hash, and
            reads textures from `blob:` addresses that it made itself.
    """
    style = built()["viewer_style"] if with_model else ""
    policy = _PAGE.format(styles=f" '{style}'" if style else "", blobs=" blob: data:" if with_model else "")
    return _ALWAYS | {"content-security-policy": policy, "cache-control": "no-store", "vary": "hx-request, cookie"}


def file_headers(*, cached_seconds: int = 31_536_000) -> Mapping[str, str]:
    """Return the headers of a file that is named by its content: it never changes, and nothing in it may run."""
    return _ALWAYS | {
        "content-security-policy": _FILE,
        "cache-control": f"private, max-age={cached_seconds}, immutable",
    }


def static_headers() -> Mapping[str, str]:
    """Return the headers of the pages' own scripts and styles."""
    return _ALWAYS | {"cache-control": "no-cache"}


def built() -> Mapping[str, str]:
    """Return what is known of the bundled libraries: `sources` and `viewer_style`, empty where they are missing."""
    stamp = BUILT / "built.json"
    try:
        return _read(stamp, stamp.stat().st_mtime_ns)
    except (OSError, ValueError):
        return {"sources": "", "viewer_style": ""}


@lru_cache(maxsize=2)
def _read(stamp: Path, changed_ns: int) -> Mapping[str, str]:
    told = json.loads(stamp.read_text())
    return {"sources": str(told.get("sources", "")), "viewer_style": str(told.get("viewer_style", ""))}

"""Where exports go, and what makes the same export the same bytes: no clock, no path of this machine."""

import hashlib
import re
from pathlib import PurePosixPath

from metaforge.tools.context import ToolContext

FOLDER = "kicad"
TIME = "1970-01-01T00:00:00"
_DATED = (
    (re.compile(r"(TF\.CreationDate,)[^*\n]+"), rf"\g<1>{TIME}+00:00"),
    (re.compile(r'("CreationDate":\s*")[^"]*'), rf"\g<1>{TIME}+00:00"),
    (re.compile(r"(Created by KiCad \([^)]*\) date |; DRILL file \{[^}]*\} date )\S+( \S+)?"), rf"\g<1>{TIME}"),
    (re.compile(r"(FILE_NAME\('[^']*',')[^']*"), rf"\g<1>{TIME}"),
    (re.compile(r'^(\s*\(date )"[^"]*"', re.MULTILINE), r'\g<1>""'),
    (re.compile(r"^(    <date>)[^<]*", re.MULTILINE), r"\g<1>"),
    (re.compile(r"^(\.TIM ).*$", re.MULTILINE), rf"\g<1>{TIME}"),
)


def without_clock(text: str) -> str:
    """Return a file's text with its time of writing fixed."""
    for pattern, replacement in _DATED:
        text = pattern.sub(replacement, text)
    return text


def named(output_path: str | None, source: str, ending: str, content: bytes, ctx: ToolContext) -> PurePosixPath:
    """Return where an export is written.

    Args:
        output_path: the caller's choice, with or without the ending.
        source: the file it is made from.
        ending: such as `-bom.csv`.
        content: what is written: a name of our own choice never stands in the way of other content.
    """
    suffix = f".{ending.rpartition('.')[2]}"
    if output_path:
        chosen = PurePosixPath(output_path)
        return chosen if chosen.suffix.lower() == suffix else chosen.with_name(chosen.name + suffix)
    path = PurePosixPath(FOLDER) / f"{PurePosixPath(source).stem}{ending}"
    there = ctx.workspace / path
    if ctx.overwrite or not there.is_file() or there.read_bytes() == content:
        return path
    return path.with_name(f"{path.stem}-{hashlib.sha256(content).hexdigest()[:8]}{suffix}")

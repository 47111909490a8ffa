"""Run the fenced blocks of a Markdown page and compare what they print with what the page shows.

A page's blocks run in order, in one fresh folder, with a home of their own:

    bash     run; `needs=PROGRAM` skips it where the program is not found, `check=dry` only asks make what it would do
    text     what the block before it prints
    python   run with this interpreter
    json, toml, csv    must parse; `file=PATH` must equal that file of the repository

Numbers may differ by 5 %; times, call ids, digests and the folder's own path may differ freely; a line `...` stands for
any lines.
"""

import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SECONDS = 600
TOLERANCE_RATIO = 0.05
SHOWN_FOLDER = "/home/you/project"
"""What pages show instead of the folder their blocks ran in."""

_FENCE = re.compile(r"^```(\w+)?(.*)$")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*[a-zA-Z]\d)")
_FREE = (
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b|\b\d{4}-\d\d-\d\d\b"), "<time>"),
    (re.compile(r"\brun_[0-9a-f]{16}\b|\b[bilnp][0-9a-f]{20}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b|\b\d{16}\b"), "<id>"),
)


@dataclass
class Block:
    """One fenced block: its language, the attributes after it, its text and where it starts (line, from 1)."""

    language: str
    attributes: dict[str, str]
    text: str
    line: int


@dataclass
class Result:
    """What became of a block: `problem` is empty when all is well."""

    block: Block
    problem: str = ""
    skipped: str = ""
    output: str | None = None


@dataclass
class Stage:
    """The fresh folder, home and environment that a page's blocks run in."""

    folder: Path
    home: Path
    extra_path: list[Path] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        paths = [*map(str, self.extra_path), str(BIN), os.environ.get("PATH", os.defpath)]
        return {
            "PATH": os.pathsep.join(paths),
            "HOME": str(self.home),
            "METAFORGE_WORKSPACE": str(self.folder),
            "REPOSITORY": str(ROOT),
            "PYTHONPATH": str(self.home / "site"),
            "SITE": str(self.home / "site"),
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            "OMP_NUM_THREADS": "1",
            "METAFORGE_SKIP_SETUP": "1",
            "NO_COLOR": "1",
        }


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    language, attributes, lines, start = "", {}, [], 0
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        match = _FENCE.match(line.strip())
        if match and not inside:
            inside, start, lines = True, number, []
            language = match[1] or ""
            attributes = dict(each.partition("=")[::2] for each in match[2].split())
        elif match and inside and not match[1]:
            inside = False
            yield Block(language, attributes, "\n".join(lines), start)
        elif inside:
            lines.append(line)


def run_page(page: str, stage: Stage) -> list[Result]:
    """Run every block of a page."""
    results: list[Result] = []
    for block in blocks_of(page):
        results.append(_run(block, results[-1] if results else None, stage))
    return results


def _run(block: Block, before: Result | None, stage: Stage) -> Result:
    if block.language == "text":
        return _compare(block, before, stage)
    if block.language in ("bash", "python"):
        return _execute(block, stage)
    if block.language in ("json", "toml", "csv"):
        return _parse(block)
    return Result(block, f"a block without a test: language {block.language or 'missing'!r}")


def _execute(block: Block, stage: Stage) -> Result:
    needed = block.attributes.get("needs", "")
    if needed and not shutil.which(needed, path=stage.environment()["PATH"]):
        return Result(block, skipped=f"{needed} is not on PATH")
    text = block.text
    if block.attributes.get("check") == "dry":
        text = re.sub(r"^make ", f"make --dry-run --directory={ROOT} ", text, flags=re.MULTILINE)
    else:
        text = re.sub(r"^make ", f"make --no-print-directory --directory={ROOT} ", text, flags=re.MULTILINE)
    program = ["bash", "-euo", "pipefail", "-c", text] if block.language == "bash" else [sys.executable, "-c", text]
    # A person at a shell sees both streams; what a program logs while it runs is not its output.
    errors = subprocess.STDOUT if block.language == "bash" else subprocess.PIPE
    ran = subprocess.run(
        program, cwd=stage.folder, env=stage.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=errors, text=True, errors="replace", timeout=SECONDS, check=False,
    )  # fmt: skip
    wanted = int(block.attributes.get("exit", "0"))
    if ran.returncode != wanted:
        said = (ran.stdout + (ran.stderr or ""))[-3000:]
        return Result(block, f"exit status {ran.returncode}, not {wanted}:\n{said}", output=ran.stdout)
    if "Traceback (most recent call last)" in ran.stdout:
        return Result(block, f"a traceback, which no reader should see:\n{ran.stdout[-3000:]}", output=ran.stdout)
    return Result(block, output=ran.stdout)


def _compare(block: Block, before: Result | None, stage: Stage) -> Result:
    if before is None or before.block.language not in ("bash", "python"):
        return Result(block, "a text block follows no block that prints something")
    if before.skipped or before.problem or before.block.attributes.get("check") == "dry":
        return Result(block, skipped=before.skipped or "the block before it was not run in full")
    assert before.output is not None
    if difference := difference_of(block.text, shown(before.output, stage)):
        return Result(block, difference)
    return Result(block)


def shown(output: str, stage: Stage) -> str:
    """Return output as a page shows it: without the folder's own path and colours."""
    text = output.replace(str(stage.folder), SHOWN_FOLDER).replace(str(stage.home), "/home/you")
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def difference_of(expected: str, printed: str) -> str:
    """Return how two outputs differ, or an empty string."""
    want, got = expected.strip("\n").splitlines(), printed.splitlines()
    at = 0
    skipping = False
    for line in want:
        if line.strip() == "...":
            skipping = True
            continue
        while skipping and at < len(got) and not same_line(line, got[at]):
            at += 1
        skipping = False
        if at >= len(got):
            return f"the page shows a line that was not printed:\n  {line}\nprinted:\n{printed}"
        if not same_line(line, got[at]):
            return f"the page shows:\n  {line}\nprinted was:\n  {got[at]}\nall of it:\n{printed}"
        at += 1
    if at < len(got) and not skipping:
        return f"printed was more than the page shows, from:\n  {got[at]}"
    return ""


def same_line(want: str, got: str) -> bool:
    """Whether two lines say the same: words equal, numbers within the tolerance."""
    want, got = _freed(want), _freed(got)
    if _NUMBER.sub("<n>", want) != _NUMBER.sub("<n>", got):
        return False
    pairs = zip(_NUMBER.findall(want), _NUMBER.findall(got), strict=True)
    return all(_close(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs)


def _freed(line: str) -> str:
    for pattern, name in _FREE:
        line = pattern.sub(name, line)
    return " ".join(line.split())


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE_RATIO * max(abs(a), abs(b)) + 1e-9


def _parse(block: Block) -> Result:
    try:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        else:
            list(csv.reader(block.text.splitlines(), strict=True))
    except (ValueError, csv.Error) as fault:
        return Result(block, f"not {block.language}: {fault}")
    path = block.attributes.get("file")
    if path and (ROOT / path).read_text().strip() != block.text.strip():
        return Result(block, f"differs from {path}")
    return Result(block)


def renewed(page: str, results: list[Result], stage: Stage) -> str:
    """Return the page with every text block replaced by what was printed; blocks with `...` are kept."""
    lines = page.splitlines()
    for before, result in reversed(list(itertools.pairwise(results))):
        block = result.block
        if block.language != "text" or before.output is None or before.problem or before.skipped:
            continue
        if before.block.attributes.get("check") == "dry" or "\n...\n" in f"\n{block.text}\n":
            continue
        end = block.line + len(block.text.splitlines())
        lines[block.line : end] = shown(before.output, stage).splitlines()
    return "\n".join(lines) + "\n"

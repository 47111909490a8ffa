"""Write docs/reference and the allow-list from the code, and with --outputs what README and the guides print.

python scripts/write_docs.py            write docs/reference
python scripts/write_docs.py --check    say which pages are stale
python scripts/write_docs.py --outputs  also run README and the guides and put in what their blocks print
"""

import ast
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
from doc_blocks import ROOT, Stage, blocks_of, renewed, run_page

from metaforge.adapters import CATALOG, OPTIONAL
from metaforge.cli.commands import app
from metaforge.cli.tools import argument_lines
from metaforge.core import errors
from metaforge.core.codes import Code
from metaforge.registry.profiles import PROFILES
from metaforge.settings import Settings
from metaforge.tools.generate import manifest_of

REFERENCE = ROOT / "docs" / "reference"
RUN_PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/tutorial-twin.md",
    "docs/adapter-howto.md",
    "docs/adapters.md",
    "docs/containers.md",
    "docs/profiles.md",
    "docs/access.md",
    "docs/spice.md",
    "docs/kicad.md",
    "docs/freecad.md",
    "docs/knowledge.md",
    "docs/approvals.md",
    "docs/gateway.md",
    "docs/ledger.md",
    "docs/dashboard.md",
)
STEP = re.compile(r"  \w+ +ok +\d+ s$")
"""A line of scripts/check."""
HEAD = "<!-- Written by scripts/write_docs.py from the code: `make docs`. -->\n"


def settings_page() -> str:
    """Every environment variable."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for each in fields(Settings):
        if "variable" not in each.metadata:
            continue
        name = f"`{each.metadata['variable']}`"
        if also := each.metadata.get("also"):
            name += f" (also read: `{also}`)"
        default = each.default if isinstance(each.default, str | int | float | bool) else ""
        rows.append(f"| {name} | {_default(default)} | {each.metadata['doc']} |")
    intro = (
        "# Settings\n\nRead once from the environment at start. A value out of range is ignored, the default is kept, "
        "and `metaforge doctor` says so.\n\n"
    )
    return HEAD + intro + "\n".join(rows) + "\n"


def _default(value: object) -> str:
    if value == "" or value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, int | float) else f"`{value}`"


def tools_page() -> str:
    """Every tool with its arguments."""
    out = [HEAD + "# Tools", ""]
    out += [
        "Units are N, mm, MPa, t and s; the end of a number's name is its unit. Effects: *read* changes nothing, "
        "*produce* makes a new file and never replaces another unless `overwrite` is true, *write* adds to the design "
        "record, *destroy* replaces or removes.",
        "",
    ]
    for adapter_id, target in CATALOG.items():
        if adapter_id in OPTIONAL:
            continue
        manifest = manifest_of(target)
        out += [f"## {adapter_id}", ""]
        for tool in manifest["tools"]:
            out += list(_tool_section(tool))
    return "\n".join(out).rstrip() + "\n"


def _tool_section(tool: dict[str, Any]) -> Iterator[str]:
    yield f"### `{tool['tool_id']}`"
    yield ""
    yield tool["description"]
    yield ""
    needs = ", ".join(f"{need['kind']} {need['name']}" for need in tool["needs"])
    again = ", the same call twice leaves the same state" if tool["idempotent"] and tool["effect"] != "read" else ""
    yield (
        f"Effect: {tool['effect']}{again}. At most {tool['timeout_seconds']:g} s."
        + (f" Needs {needs}." if needs else "")
    )
    yield ""
    for line in argument_lines(tool["input_schema"]):
        indent = (len(line) - len(line.lstrip())) // 2
        name, colon, rest = line.strip().partition(":")
        yield f"{'  ' * indent}- `{name}`{colon}{_escaped(rest)}"
    results = tool["output_schema"].get("properties", {})
    if results:
        yield ""
        yield "Result: " + ", ".join(f"`{name}`" for name in results) + "."
    yield ""


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


def profiles_page() -> str:
    """Every profile with its tools."""
    out = [HEAD + "# Tools of each profile", "", "[What profiles are](../profiles.md)."]
    for profile in PROFILES.values():
        out += ["", f"## {profile.name}", "", profile.about, ""]
        adapters = itertools.groupby(sorted(profile.ordered), key=lambda tool_id: tool_id.partition(".")[0])
        for adapter_id, tools in adapters:
            out.append(f"- {adapter_id}: " + ", ".join(f"`{tool.partition('.')[2]}`" for tool in tools))
    return "\n".join(out) + "\n"


def errors_page() -> str:
    """Codes, error classes and the kinds a client can branch on."""
    out = [HEAD + "# Errors", ""]
    out += [
        "A tool that ran and refused, or was given wrong arguments, answers a normal result with `isError: true` and a "
        "text that says what happened, to what, and what to do. Everything else is a JSON-RPC error with one of these "
        "codes.",
        "",
        "| code | name |",
        "|---|---|",
    ]
    out += [f"| {code.value} | {code.name.lower().replace('_', ' ')} |" for code in Code]
    out += ["", "## Classes", ""]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.MetaForgeError):
            about = _first_line(kind) or _tree_line(name).lstrip("-0123456789, ")
            out.append(f"- `{name}` ({int(kind.code)})" + (f": {about}" if about else ""))
    out += ["", "## Kinds", "", "The last line of a refusal names its kind; a kind keeps its meaning.", ""]
    out += [f"- `{kind}`" for kind in sorted(kinds())]
    return "\n".join(out) + "\n"


def _first_line(kind: type) -> str:
    text = (kind.__dict__.get("__doc__") or "").strip()
    return " ".join(text.split("\n\n")[0].split())


def _tree_line(name: str) -> str:
    """Return what the tree in the module's docstring says of a class."""
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()
        if words and words[0] == name:
            return " ".join(words[1:])
    return ""


def kinds() -> set[str]:
    """Return every `kind=` that the code raises."""
    source = ROOT / "src" / "metaforge"
    paths = [path for path in source.rglob("*.py") if not OPTIONAL & set(path.relative_to(source).parts)]
    return {kind for path in paths for node in ast.walk(ast.parse(path.read_text())) for kind in _kinds_of(node)}


def _kinds_of(node: ast.AST) -> Iterator[str]:
    """Yield the kind that an error is raised or declared with."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name[:1].isupper() and name != "Need":
            yield from (_text(each.value) for each in node.keywords if each.arg == "kind" and _text(each.value))
    elif isinstance(node, ast.AnnAssign | ast.Assign):
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if getattr(target, "id", "") == "default_kind" and _text(node.value):
            yield _text(node.value)


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def cli_page() -> str:
    """Every command."""
    out = [HEAD + "# Command line", "", "`metaforge COMMAND --help` says the same.", ""]
    out += list(_command(typer.main.get_command(app), "metaforge"))
    return "\n".join(out).rstrip() + "\n"


def _command(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _command(inner, f"{path} {name}")
        return
    yield f"## `{path}`"
    yield ""
    yield " ".join((command.help or "").split())
    yield ""
    for parameter in command.params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            shown = parameter.metavar or (parameter.name or "").upper()
            shown = shown if parameter.required else f"[{shown}]"
        else:
            shown = ", ".join(parameter.opts)
        yield f"- `{shown}`: {parameter.help or ''}".rstrip(": ")
    yield ""


MAY_WRITE = frozenset({"twin.query_cypher"})
"""Reads by default, writes where the server was told to allow it: a person should be asked."""


def allow_list() -> str:
    """Claude Code's permissions under which tools that only read need no question."""
    allowed = [
        f"mcp__metaforge__{tool['tool_id'].replace('.', '_')}"
        for adapter_id, target in CATALOG.items()
        if adapter_id not in OPTIONAL
        for tool in manifest_of(target)["tools"]
        if tool["effect"] == "read" and tool["tool_id"] not in MAY_WRITE
    ]
    return json.dumps({"permissions": {"allow": allowed}}, indent=2) + "\n"


PAGES = {
    REFERENCE / "settings.md": settings_page,
    REFERENCE / "tools.md": tools_page,
    REFERENCE / "profiles.md": profiles_page,
    REFERENCE / "errors.md": errors_page,
    REFERENCE / "cli.md": cli_page,
    ROOT / ".claude" / "settings.json": allow_list,
}


def write_reference(*, check: bool) -> list[Path]:
    """Write the reference pages; return those that were stale."""
    stale = []
    for path, make in PAGES.items():
        text = make()
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"written: {path.relative_to(ROOT)}")
    return stale


def write_outputs() -> int:
    """Run the guides and put in what they print. Returns how many blocks went wrong."""
    wrong = 0
    for name in RUN_PAGES:
        page = (ROOT / name).read_text()
        with tempfile.TemporaryDirectory(prefix="metaforge-docs-") as folder:
            stage = Stage(Path(folder) / "project", Path(folder) / "home", [ROOT / "tests" / "docs" / "shims"])
            stage.folder.mkdir()
            stage.home.mkdir()
            results = run_page(page, stage)
            (ROOT / name).write_text(renewed(page, results, stage))
        for result in results:
            if result.problem and result.block.language != "text":
                wrong += 1
                print(f"{name}:{result.block.line}: {result.problem}")
        print(f"run: {name}, {len(results)} blocks")
    return wrong


def record_tests() -> int:
    """Run `make test`, show it, and put its steps and its last line into README. Returns its exit status."""
    told = []
    # The one test that looks at the recording itself cannot pass before there is one.
    arguments = "ARGS=--deselect tests/docs/test_pages.py::test_the_recorded_checks_are_those_that_make_test_runs"
    with subprocess.Popen(
        ["make", "test", arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ran:
        for line in ran.stdout or ():
            print(line, end="", flush=True)
            told.append(line.rstrip())
    if ran.returncode == 0:
        shown = [line for line in told if STEP.match(line)]
        page = ROOT / "README.md"
        blocks = list(blocks_of(page.read_text()))
        place = next(after for before, after in itertools.pairwise(blocks) if "make test" in before.text)
        lines = page.read_text().splitlines()
        lines[place.line : place.line + len(place.text.splitlines())] = [*shown, "...", told[-1]]
        page.write_text("\n".join(lines) + "\n")
    return ran.returncode


def main() -> int:
    if "--tests" in sys.argv:
        return record_tests()
    stale = write_reference(check="--check" in sys.argv)
    if "--check" in sys.argv:
        if stale:
            print("stale, run `make docs`:", *stale, sep="\n  ")
        return 1 if stale else 0
    return 1 if "--outputs" in sys.argv and write_outputs() else 0


if __name__ == "__main__":
    sys.exit(main())

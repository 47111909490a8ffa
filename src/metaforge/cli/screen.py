"""What commands share of the screen: consoles, progress bars, and fields told with their units."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

UNITS = {
    "mm": "mm", "mm2": "mm²", "mm3": "mm³", "n": "N", "nm": "N·m", "mpa": "MPa", "kg": "kg", "hz": "Hz",
    "deg": "°", "c": "°C", "seconds": "s", "ms": "ms", "mb": "MB", "bytes": "bytes",
    "mm5": "mm⁵", "percent": "%",
}  # fmt: skip
COMPOUND_UNITS = {"kg_m3": "kg/m³", "w_mk": "W/(m·K)", "kg_mm2": "kg·mm²", "w_m2": "W/m²", "w_m2k": "W/(m²·K)"}

LONGEST_LIST = 8


WIDTH_WITHOUT_TERMINAL = 160


def console(*, stderr: bool = False) -> Console:
    """Return a console; text is never guessed to be markup or highlighted, and files get wide lines."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 25)).columns
    return Console(stderr=stderr, highlight=False, markup=False, width=width, soft_wrap=not stream.isatty())


def progress() -> Progress:
    """Return a progress display on stderr; it draws nothing where stderr is no terminal."""
    shown = Console(stderr=True, highlight=False)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}", style="dim", markup=False),
        console=shown,
        transient=True,
        disable=not shown.is_terminal,
    )


def command_name() -> str:
    """Return what to type for this program: its name where that is on PATH, else where it lies."""
    if shutil.which("metaforge"):
        return "metaforge"
    beside = Path(sys.executable).with_name("metaforge")
    if not beside.exists():
        return f"{sys.executable} -m metaforge"
    here = Path.cwd()
    return str(beside.relative_to(here)) if beside.is_relative_to(here) else str(beside)


def print_json(data: Any) -> None:
    """Print data as indented JSON."""
    sys.stdout.buffer.write(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()


def name_and_unit(field: str) -> tuple[str, str]:
    """Split a field's name from its unit: `max_von_mises_mpa` is `max von mises` in `MPa`."""
    for suffix, unit in COMPOUND_UNITS.items():
        if field.endswith("_" + suffix):
            return field.removesuffix("_" + suffix).replace("_", " "), unit
    words = field.split("_")
    if len(words) > 1 and words[-1] in UNITS:
        return " ".join(words[:-1]), UNITS[words[-1]]
    return " ".join(words), ""


def number(value: float) -> str:
    """Return a number at six significant digits, without an exponent where it reads well without."""
    if isinstance(value, int) or value == 0:
        return str(value if isinstance(value, int) else 0)
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e9 else f"{value:.6g}"


def scalar(value: Any) -> str:
    """Return one value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return "-" if value is None or value == "" else str(value)


def told(data: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield one line per field, nested fields indented, long lists cut with their length."""
    pad = "  " * indent
    for field, value in data.items():
        label, unit = name_and_unit(field)
        after = f" {unit}" if unit else ""
        if isinstance(value, Mapping):
            yield f"{pad}{label}{f' ({unit})' if unit else ''}:"
            yield from told(value, indent + 1)
        elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(v, Mapping) for v in value):
            yield f"{pad}{label}: {len(value)}"
            for entry in value[:LONGEST_LIST]:
                yield f"{pad}  - " + _on_one_line(entry)
            if len(value) > LONGEST_LIST:
                yield f"{pad}  ... {len(value) - LONGEST_LIST} more (--json shows all)"
        else:
            yield f"{pad}{label}: {_flat(value)}{after}"


def _flat(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = ", ".join(_flat(each) for each in value[:LONGEST_LIST])
        more = f", ... {len(value) - LONGEST_LIST} more" if len(value) > LONGEST_LIST else ""
        return f"({shown}{more})"
    return scalar(value)


def _on_one_line(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return _flat(entry)
    parts = []
    for field, value in entry.items():
        label, unit = name_and_unit(field)
        shown = "{" + _on_one_line(value) + "}" if isinstance(value, Mapping) else _flat(value)
        parts.append(f"{label} {shown}{f' {unit}' if unit else ''}")
    return ", ".join(parts)

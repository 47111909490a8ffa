"""The table of the shared cases: case, quantity, expected, got, verdict.

A test of a case asks for the fixture `verdict` and compares through it: each comparison is a row and an assertion. The
rows travel with the test's report, so they survive parallel runs and are in any report that lists properties. At the
end of a run they are printed, with the cases that no test had a row for when all of them were asked for.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
PROPERTY = "case"
WIDTHS = (34, 44, 24, 30)


@dataclass(frozen=True)
class Row:
    """One comparison."""

    case: str
    quantity: str
    expected: str
    got: str
    verdict: str

    def line(self) -> str:
        cells = (self.case, self.quantity, self.expected, self.got)
        return "  ".join(_cell(text, width) for text, width in zip(cells, WIDTHS, strict=True)) + f"  {self.verdict}"


def _cell(text: str, width: int) -> str:
    text = " ".join(text.split())
    return (text if len(text) <= width else text[: width - 3] + "...").ljust(width)


class Verdicts:
    """Compares what a case gave with what it should give; every comparison becomes a row.

    Args:
        properties: where the rows go, with the test's own report.
    """

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def near(
        self, case: str, quantity: str, got: Any, expected: Any, *, rel: float | None = None, abs: float | None = None
    ) -> None:
        """Hold a number, or a list of numbers, to its expected value within a tolerance."""
        tolerance = " ".join(
            part for part in (f"+-{rel:.2g} rel" if rel else "", f"+-{abs:.2g}" if abs is not None else "") if part
        )
        right = bool(got == pytest.approx(expected, rel=rel, abs=abs))
        self._note(case, quantity, f"{_shown(expected)} {tolerance}", _shown(got), right)

    def equal(self, case: str, quantity: str, got: Any, expected: Any) -> None:
        """Hold a value to exactly what is expected."""
        self._note(case, quantity, _shown(expected), _shown(got), bool(got == expected))

    def holds(self, case: str, quantity: str, right: bool, expected: str, got: Any) -> None:
        """Hold any other condition, told in words."""
        self._note(case, quantity, expected, _shown(got), right)

    def told(self, case: str, quantity: str, texts: str | Sequence[str], pattern: str) -> None:
        """Hold a warning or message to words that must be in it."""
        several = [texts] if isinstance(texts, str) else list(texts)
        found = next((text for text in several if re.search(pattern, text)), None)
        got = several[0] if found is None and several else found
        self._note(case, quantity, f"says {pattern!r}", got or "nothing", found is not None)

    def refused(self, case: str, message: str, pattern: str) -> None:
        """Hold a refusal to words that must be in it."""
        right = re.search(pattern, message) is not None
        self._note(case, "refused, with the cause", pattern.replace("\\", ""), message, right)

    def _note(self, case: str, quantity: str, expected: str, got: str, right: bool) -> None:
        row = Row(case, quantity, expected, got, "right" if right else "WRONG")
        self._properties.append((PROPERTY, json.dumps(asdict(row))))
        assert right, f"{case}: {quantity}: expected {expected}, got {got}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist"):
        values = value.tolist() if hasattr(value, "tolist") else list(value)
        if not isinstance(values, list):
            return _shown(values)
        shown = ", ".join(_shown(each) for each in values[:6])
        return f"[{shown}{', ...' if len(values) > 6 else ''}]"
    return str(value)


@pytest.fixture
def verdict(request: pytest.FixtureRequest) -> Verdicts:
    """Compare through this: each comparison is a row of the table of cases."""
    return Verdicts(request.node.user_properties)


def known_cases() -> list[str]:
    """Return the ids of every shared case, the small ones by their file's name."""
    if not CASES.is_dir():
        return []
    listed = [case["id"] for case in json.loads((CASES / "cases.json").read_text())["cases"]]
    small = re.findall(r"^\| (\w+)\.\w+ \|", (CASES / "small" / "README.md").read_text(), re.MULTILINE)
    return listed + [f"small/{name}" for name in small]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    rows, unjudged = _rows(terminalreporter)
    if not rows:
        return
    asked_for_all = config.option.markexpr == "cases" and not config.option.keyword and not config.option.file_or_dir
    covered = {row.case for row in rows}
    absent = [case for case in known_cases() if case not in covered] if asked_for_all else []
    rows += [Row(case, "", "", "no test here has it", "not run") for case in absent]
    order = {case: index for index, case in enumerate(known_cases())}
    rows.sort(key=lambda row: order.get(row.case, len(order)))
    write = terminalreporter.write_line
    terminalreporter.section("shared cases")
    write(Row("case", "quantity", "expected", "got", "verdict").line())
    for row in rows:
        write(row.line())
    wrong = sum(row.verdict == "WRONG" for row in rows)
    write(
        f"{len(covered)} cases, {len(rows) - len(absent)} comparisons, {wrong} wrong"
        + (f", {len(unjudged)} tests failed before a comparison: {', '.join(unjudged)}" if unjudged else "")
        + (f", {len(absent)} cases without a test that ran" if absent else "")
    )


def _rows(terminalreporter: Any) -> tuple[list[Row], list[str]]:
    """Return the rows of every report, and the tests of cases that failed without a wrong row."""
    rows: list[Row] = []
    unjudged: list[str] = []
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            mine = list(_of(report))
            failed = outcome in ("failed", "error")
            if failed and "cases" in getattr(report, "keywords", ()) and all(row.verdict == "right" for row in mine):
                unjudged.append(report.nodeid.rpartition("::")[2])
            rows += mine
    return rows, unjudged


def _of(report: Any) -> Iterator[Row]:
    if getattr(report, "when", "") == "call":
        for name, value in report.user_properties:
            if name == PROPERTY:
                yield Row(**json.loads(value))

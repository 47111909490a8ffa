"""Read the reports that kicad-cli writes: rule checks of schematics (ERC) and boards (DRC)."""

import json
from dataclasses import dataclass, replace
from typing import Any


class UnreadableReport(ValueError):
    """The report is missing something that every report has."""


@dataclass(frozen=True)
class Item:
    """One thing that a violation concerns.

    Attributes:
        description: in KiCad's words.
        x_mm, y_mm: where it is, from the page's upper left corner, y downwards.
        uuid: its id in the file.
    """

    description: str
    x_mm: float
    y_mm: float
    uuid: str = ""


@dataclass(frozen=True)
class Violation:
    """One finding.

    Attributes:
        kind: KiCad's name of the rule, such as `clearance`.
        severity: `error` or `warning`.
        excluded: a person has accepted it in the project.
        comment: why it was accepted.
        sheet: path of the schematic sheet.
        group: `violations`, `unconnected_items` or `schematic_parity`.
    """

    kind: str
    severity: str
    description: str
    items: tuple[Item, ...]
    excluded: bool = False
    comment: str = ""
    sheet: str = ""
    group: str = "violations"

    @property
    def blocks(self) -> bool:
        return self.severity == "error" and not self.excluded

    def scaled(self, factor: float) -> "Violation":
        """Return the same with positions multiplied."""
        items = tuple(replace(i, x_mm=round(i.x_mm * factor, 4), y_mm=round(i.y_mm * factor, 4)) for i in self.items)
        return replace(self, items=items)


GROUPS = ("violations", "unconnected_items", "schematic_parity")


def read_erc(text: str) -> list[Violation]:
    """Return the findings of an ERC report.

    Raises:
        UnreadableReport: it is not one, or not in millimetres.
    """
    report = _opened(text, "sheets")
    return [
        _violation(each, "violations", str(sheet.get("path", "/")))
        for sheet in report["sheets"]
        for each in sheet["violations"]
    ]


def read_drc(text: str) -> list[Violation]:
    """Return the findings of a DRC report.

    Raises:
        UnreadableReport: it is not one, or not in millimetres.
    """
    report = _opened(text, *GROUPS)
    return [_violation(each, group, "") for group in GROUPS for each in report[group]]


def _opened(text: str, *lists: str) -> dict[str, Any]:
    try:
        report = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UnreadableReport(f"not JSON: {fault}") from None
    if not isinstance(report, dict) or report.get("coordinate_units") != "mm":
        raise UnreadableReport("not a report in millimetres")
    missing = [name for name in lists if not isinstance(report.get(name), list)]
    if missing:
        raise UnreadableReport(f"without {', '.join(missing)}")
    return report


def _violation(raw: dict[str, Any], group: str, sheet: str) -> Violation:
    try:
        items = tuple(
            Item(str(i.get("description", "")), float(i["pos"]["x"]), float(i["pos"]["y"]), str(i.get("uuid", "")))
            for i in raw["items"]
        )
        return Violation(
            str(raw["type"]), str(raw["severity"]), str(raw["description"]).strip(), items,
            bool(raw.get("excluded")), str(raw.get("comment", "")), sheet, group,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise UnreadableReport(f"a violation without {fault}") from None

"""Read a KiCad project file (`.kicad_pro`): limits, severities and accepted violations."""

import json
from dataclasses import dataclass, field
from typing import Any


class UnreadableProject(ValueError):
    """The project file is not JSON; `line` says where."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Project:
    """What a rule check takes from a project.

    Attributes:
        limits_mm: the board's own smallest clearance, track width and so on, by KiCad's name without `min_`.
        ignored_board_checks, ignored_schematic_checks: kinds of violation that the project switches off.
        board_exclusions_count, schematic_exclusions_count: violations that a person has accepted.
        net_classes: name -> clearance and track width in mm, where they are given.
    """

    limits_mm: dict[str, float] = field(default_factory=dict)
    ignored_board_checks: tuple[str, ...] = ()
    ignored_schematic_checks: tuple[str, ...] = ()
    board_exclusions_count: int = 0
    schematic_exclusions_count: int = 0
    net_classes: dict[str, dict[str, float]] = field(default_factory=dict)


_LARGEST_MM = 1e6
_LIMITS = (
    "min_clearance", "min_track_width", "min_via_diameter", "min_via_annular_width", "min_through_hole_diameter",
    "min_hole_clearance", "min_hole_to_hole", "min_copper_edge_clearance",
)  # fmt: skip


def read_project(text: str) -> Project:
    """Return what a project file says.

    Raises:
        UnreadableProject: it is not a JSON object.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UnreadableProject(str(fault), getattr(fault, "lineno", 0)) from None
    if not isinstance(raw, dict):
        raise UnreadableProject("it holds no object")
    design = _inside(raw, "board", "design_settings")
    rules = _inside(design, "rules")
    erc = _inside(raw, "erc")
    found = _inside(raw, "net_settings").get("classes")
    classes = found if isinstance(found, list) else []
    return Project(
        {name.removeprefix("min_"): round(float(rules[name]), 4) for name in _LIMITS if _is_number(rules.get(name))},
        _ignored(_inside(design, "rule_severities")),
        _ignored(_inside(erc, "rule_severities")),
        _count(design.get("drc_exclusions")),
        _count(erc.get("erc_exclusions")),
        {str(each.get("name")): _sizes(each) for each in classes if isinstance(each, dict)},
    )


def _inside(raw: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        found = raw.get(name)
        raw = found if isinstance(found, dict) else {}
    return raw


def _is_number(value: Any) -> bool:
    # JSON, as it is read here, has numbers that no float holds, and infinite ones.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST_MM


def _ignored(severities: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(str(kind) for kind, severity in severities.items() if severity == "ignore"))


def _count(listed: Any) -> int:
    return len(listed) if isinstance(listed, list) else 0


def _sizes(raw: dict[str, Any]) -> dict[str, float]:
    return {name: float(raw[name]) for name in ("clearance", "track_width") if _is_number(raw.get(name))}

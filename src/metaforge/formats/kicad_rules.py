"""Look over a board's own design rules (`.kicad_dru`) for what KiCad passes over in silence."""

import re
from dataclasses import dataclass

from metaforge.formats.kicad_sexpr import child, children, head, parse_all, texts

_OPERATORS = ("==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/")
_TOKEN = re.compile(
    r"\s+|('[^']*(?:'|$))|([A-Za-z_][\w.]*)|(\d+(?:\.\d+)?\w*)|(==|!=|<=|>=|&&|\|\||[<>+*/!(),-])|(.)", re.DOTALL
)
_FUNCTIONS = frozenset(name.lower() for name in (
    "enclosedByArea", "existsOnLayer", "fromTo", "getField", "hasComponentClass", "hasExactNetclass", "hasNetclass",
    "inDiffPair", "insideArea", "insideB", "insideBackCourtyard", "insideCourtyard", "insideFrontCourtyard",
    "intersectsArea", "intersectsBackCourtyard", "intersectsCourtyard", "intersectsFrontCourtyard", "isBlindBuriedVia",
    "isCoupledDiffPair", "isMicroVia", "isPlated", "memberOf", "memberOfFootprint", "memberOfGroup", "memberOfSheet",
    "memberOfSheetOrChildren",
))  # fmt: skip

_CONSTRAINTS = frozenset((
    "annular_width", "assertion", "clearance", "connection_width", "courtyard_clearance", "creepage", "diff_pair_gap",
    "diff_pair_uncoupled", "disallow", "edge_clearance", "hole", "hole_clearance", "hole_size", "hole_to_hole",
    "length", "max_error", "mechanical_clearance", "mechanical_hole_clearance", "min_resolved_spokes",
    "physical_clearance", "physical_hole_clearance", "silk_clearance", "skew", "text_height", "text_thickness",
    "thermal_relief_gap", "thermal_spoke_width", "track_angle", "track_segment_length", "track_width", "via_count",
    "via_dangling", "via_diameter", "zone_connection",
))  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """What a rules file holds.

    Attributes:
        names: of its rules.
        doubts: rules whose condition KiCad cannot evaluate and therefore never applies, each with the reason.
    """

    names: tuple[str, ...]
    doubts: tuple[str, ...]


def read_rules(text: str) -> Rules:
    """Return the rules of a file.

    Raises:
        BadExpression: its lists are not closed; KiCad then uses none of its rules.
    """
    names: list[str] = []
    doubts: list[str] = []
    # Comments run from # to the line's end; a # inside quotes is text.
    bare = re.sub(r'("(?:[^"\\]|\\.)*")|#[^\n]*', lambda match: match[1] or "", text)
    for node in parse_all(bare):
        if head(node) != "rule":
            continue
        name = next(iter(texts(node)), "")
        names.append(name)
        condition = child(node, "condition")
        why = _fault(" ".join(texts(condition))) if condition else ""
        if why:
            doubts.append(f"rule {name!r}: {why}")
        constraints = [next(iter(texts(each)), "") for each in children(node, "constraint")]
        if not constraints:
            doubts.append(f"rule {name!r} has no constraint")
        doubts += [
            f"rule {name!r}: there is no constraint {each!r}" for each in constraints if each not in _CONSTRAINTS
        ]
    return Rules(tuple(names), tuple(doubts))


def _fault(condition: str) -> str:
    """Return what is wrong with a condition, or nothing."""
    expects_operand, depth = True, 0
    for match in _TOKEN.finditer(condition):
        if match.lastindex is None:
            continue
        text = match[0]
        if match.lastindex == 5:
            return f"{text!r} is not understood in {condition!r}"
        if match.lastindex in (1, 2, 3):
            fault = "an operator is missing before " + text if not expects_operand else _operand_fault(match, condition)
            if fault:
                return f"{fault} in {condition!r}"
            expects_operand = False
        elif text in _OPERATORS:
            if expects_operand and text not in "+-":
                return f"nothing stands before {text} in {condition!r}"
            expects_operand = True
        else:
            depth += {"(": 1, ")": -1}.get(text, 0)
            if depth < 0:
                break
            expects_operand = text in "(,!"
    if depth:
        return f"brackets do not match in {condition!r}"
    return f"it ends with an operator: {condition!r}" if expects_operand and condition.strip() else ""


def _operand_fault(match: re.Match[str], condition: str) -> str:
    """Return what is wrong with a value, a property or a function's name."""
    if match.lastindex != 2:
        return ""
    text = match[2]
    function = text.rpartition(".")[2]
    if condition[match.end() :].lstrip().startswith("("):
        return "" if function.lower() in _FUNCTIONS else f"there is no function {function}()"
    return "" if "." in text else f"{text} is neither a property such as A.Type nor text in quotes"

"""KiCad's files are read as KiCad means them, and what is damaged tells its line."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.formats.kicad_board import NotABoard, read_board
from metaforge.formats.kicad_netlist import NotANetlist, read_netlist
from metaforge.formats.kicad_project import UnreadableProject, read_project
from metaforge.formats.kicad_report import UnreadableReport, read_drc, read_erc
from metaforge.formats.kicad_rules import read_rules
from metaforge.formats.kicad_schematic import NotASchematic, read_schematic
from metaforge.formats.kicad_sexpr import BadExpression, Node, Quoted, parse, parse_all, write
from metaforge.formats.kicad_symbol import NoSuchSymbol, find_symbol

WORDS = st.text("abcXYZ019._-+*%/", min_size=1, max_size=8)
TREES = st.recursive(
    WORDS | st.text(max_size=12).map(Quoted), lambda inner: st.lists(inner, max_size=4).map(lambda each: ["n", *each])
)


@given(st.lists(TREES, max_size=5))
def test_what_is_written_is_read_again(tree: list[Any]) -> None:
    node: Node = ["kicad", *tree]
    assert _sorted(parse(write(node))) == _sorted(node)


def _sorted(node: Node) -> Node:
    """Texts before lists, as they are written."""
    lists = [_sorted(each) for each in node if not isinstance(each, str)]
    return [*(each for each in node if isinstance(each, str)), *lists]


def test_quotes_and_escapes_are_text() -> None:
    node = parse(r'(a "b ( \" c" "x\\y" "" "line\nbreak")')
    assert node == ["a", 'b ( " c', "x\\y", "", "line\nbreak"]
    assert [isinstance(each, Quoted) for each in node] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("(a\n (b", 2, "opened in line 2"),
        ("(a))", 1, "closed that was not opened"),
        ('(a\n\n "b)', 3, "quoted text is not closed"),
        ("", 1, "no list"),
        ("(a) (b)", 1, "something follows"),
        ("hello", 1, "outside any list"),
        ("(" * 300, 1, "nested more than"),
    ],
)
def test_what_is_damaged_tells_where(text: str, line: int, why: str) -> None:
    with pytest.raises(BadExpression, match=why) as caught:
        parse(text)
    assert caught.value.line == line


def test_a_file_of_rules_holds_several_lists() -> None:
    assert [node[0] for node in parse_all("(version 1)\n(rule x)")] == ["version", "rule"]


BOARD = """(kicad_pcb (version 20241229)
  (layers (0 "F.Cu" signal) (4 "In1.Cu" signal) (2 "B.Cu" signal) (25 "Edge.Cuts" user))
  (net 0 "") (net 1 "GND") (net 2 "VCC")
  (footprint "x" (layer "F.Cu") (at 10 20 90) (property "Reference" "R1" (at 0 0))
    (pad "1" smd rect (at 5 0 90) (size 2 1) (layers "F.Cu" "F.Mask") (net 1 "GND"))
    (pad "2" thru_hole oval (at 0 0) (size 3 1) (drill 0.5 (offset 1 0)) (layers "*.Cu") (net 2 "VCC"))
    (pad "" np_thru_hole circle (at 0 0) (size 1 1) (layers "*.Cu")))
  (segment (start 0 0) (end 10 0) (width 0.25) (layer "F.Cu") (net 1))
  (arc (start 0 0) (mid 5 5) (end 10 0) (width 0.2) (layer "B.Cu") (net 2))
  (via (at 1 2) (size 0.8) (drill 0.4) (layers "F.Cu" "In1.Cu") (net 1))
  (zone (net 1) (layer "F.Cu") (polygon (pts (xy 0 0) (xy 1 0) (xy 1 1))))
  (zone (net 0) (keepout (tracks not_allowed)))
  (gr_line (start 0 0) (end 10 0) (layer "Edge.Cuts")))"""


def test_a_boards_copper_is_where_kicad_has_it() -> None:
    board = read_board(BOARD)
    assert (board.copper_layers, board.outline_count, board.zones_count, board.empty_zones) == (
        ("F.Cu", "In1.Cu", "B.Cu"), 1, 1, ("GND",),
    )  # fmt: skip
    assert board.size_mm == (10, 0)
    first, second = board.pads
    # A part turned by 90 degrees counter-clockwise, y downwards: what was 5 mm to the right is 5 mm above.
    assert first.centre == pytest.approx((10, 15))
    assert (first.name, first.net, first.layers, first.core_mm) == ("R1 pad 1", "GND", ("F.Cu",), (1.0, 0.5))
    assert (second.centre, second.rounding_mm, second.layers) == ((11.0, 20.0), 0.5, board.copper_layers)
    assert board.vias[0].layers == ("F.Cu", "In1.Cu")
    arc = [track for track in board.tracks if track.layer == "B.Cu"]
    assert all(math.dist(track.start, (5, 0)) == pytest.approx(5) for track in arc)
    assert min(track.start[1] for track in arc) >= 0
    assert {track.at for track in arc} == {(0.0, 0.0)}


@pytest.mark.parametrize(
    ("edge", "size"),
    [
        ("(gr_rect (start 1 2) (end 31 22)", (30, 20)),
        ("(gr_circle (center 5 5) (end 8 9)", (10, 10)),
        ("(gr_arc (start -5 0) (mid 0 -5) (end 5 0)", (10, 5)),
        ("(gr_poly (pts (xy 0 0) (xy 4 0) (xy 4 3))", (4, 3)),
    ],
)
def test_a_board_is_as_large_as_its_edge(edge: str, size: tuple[float, float]) -> None:
    board = read_board(f'(kicad_pcb (version 1) {edge} (layer "Edge.Cuts")))')
    assert board.size_mm == pytest.approx(size)


def test_another_kind_of_file_is_named() -> None:
    with pytest.raises(NotABoard, match="kicad_sch"):
        read_board("(kicad_sch)")
    with pytest.raises(NotASchematic, match="kicad_pcb"):
        read_schematic("(kicad_pcb)")
    with pytest.raises(NotANetlist, match="kicad_pcb"):
        read_netlist("(kicad_pcb)")


def test_a_schematic_tells_its_sheets_in_new_and_old_words() -> None:
    text = (
        '(kicad_sch (version 1) (symbol (at 1 2 0) (uuid "a")) (wire (pts (xy 3 4) (xy 5 4)) (uuid "b"))'
        '(sheet (at 0 0) (uuid "c") (property "Sheetname" "A") (property "Sheetfile" "a.kicad_sch"))'
        '(sheet (at 0 0) (uuid "d") (property "Sheet name" "B") (property "Sheet file" "b.kicad_sch")))'
    )
    schematic = read_schematic(text)
    assert [(sheet.name, sheet.file) for sheet in schematic.sheets] == [("A", "a.kicad_sch"), ("B", "b.kicad_sch")]
    assert (schematic.places["a"], schematic.places["b"], schematic.symbols_count) == ((1.0, 2.0), (3.0, 4.0), 1)


def test_a_netlist_groups_pins_and_keeps_fields() -> None:
    netlist = read_netlist(
        '(export (components (comp (ref "R1") (value "1k") (fields (field (name "MPN") "X-1") (field (name "Empty")))'
        ' (libsource (lib "Device") (part "R")) (property (name "dnp"))))'
        ' (libparts (libpart (lib "Device") (part "R") (pins (pin (num "1") (name "~") (type "passive")))))'
        ' (nets (net (code "1") (name "A") (node (ref "R1") (pin "1") (pintype "passive"))'
        ' (node (ref "C1") (pin "2")))))'
    )
    (part,) = netlist.components
    assert (part.symbol, part.fields) == ("Device:R", {"MPN": "X-1", "Empty": "", "dnp": ""})
    assert netlist.pin_groups() == {frozenset({("R1", "1"), ("C1", "2")})}
    assert netlist.library_pins == {"Device:R": (("1", "~", "passive"),)}


REPORT = {
    "coordinate_units": "mm",
    "violations": [
        {
            "type": "clearance", "severity": "error", "description": "too near",
            "items": [{"description": "Track", "pos": {"x": 1.5, "y": 2.5}, "uuid": "a"}],
        },
        {"type": "x", "severity": "warning", "description": "", "items": [], "excluded": True, "comment": "known"},
    ],
    "unconnected_items": [{"type": "unconnected_items", "severity": "error", "description": "", "items": []}],
    "schematic_parity": [],
}  # fmt: skip


def test_a_report_tells_what_blocks_and_what_is_accepted() -> None:
    violations = read_drc(json.dumps(REPORT))
    assert [(each.kind, each.blocks, each.group) for each in violations] == [
        ("clearance", True, "violations"), ("x", False, "violations"), ("unconnected_items", True, "unconnected_items"),
    ]  # fmt: skip
    assert (violations[0].items[0].x_mm, violations[1].comment) == (1.5, "known")
    assert violations[0].scaled(100).items[0].y_mm == 250


@pytest.mark.parametrize("change", [{"coordinate_units": "in"}, {"violations": None}, {"violations": [{"type": "x"}]}])
def test_a_report_that_lacks_something_is_not_taken_for_clean(change: dict[str, object]) -> None:
    with pytest.raises(UnreadableReport):
        read_drc(json.dumps(REPORT | change))
    with pytest.raises(UnreadableReport):
        read_erc("")


def test_a_project_tells_limits_ignored_checks_and_what_is_accepted() -> None:
    project = read_project(
        json.dumps(
            {
                "board": {
                    "design_settings": {
                        "rules": {"min_clearance": 0.15, "min_track_width": True},
                        "rule_severities": {"clearance": "error", "silk_overlap": "ignore"},
                        "drc_exclusions": ["a", ["b", "why"]],
                    }
                },
                "erc": {"rule_severities": {"endpoint_off_grid": "ignore"}, "erc_exclusions": []},
                "net_settings": {"classes": [{"name": "Default", "clearance": 0.2}]},
            }
        )
    )
    assert project.limits_mm == {"clearance": 0.15}
    assert (project.ignored_board_checks, project.board_exclusions_count) == (("silk_overlap",), 2)
    assert project.ignored_schematic_checks == ("endpoint_off_grid",)
    assert project.net_classes == {"Default": {"clearance": 0.2}}
    assert read_project("{}").limits_mm == {}
    with pytest.raises(UnreadableProject) as caught:
        read_project('{\n"a": ')
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("condition", "doubt"),
    [
        ("A.NetName == 'GND' && B.Type == 'Via'", ""),
        ("A.insideCourtyard('TP*') || !B.memberOfGroup('x')", ""),
        ("A.Width > 0.25mm * 2 && (B.Net != A.Net)", ""),
        ("A.NetName == 'GND", ""),
        ("A.NetName = 'GND'", "'=' is not understood"),
        ("A.NetName == 'GND' &&", "ends with an operator"),
        ("&& A.NetName == 'GND'", "nothing stands before &&"),
        ("(A.NetName == 'GND'", "brackets do not match"),
        ("A.NetName == GND", "GND is neither a property"),
        ("A.isNice()", "no function isNice()"),
        ("A.Type == 'Pad' and B.Type == 'Pad'", "an operator is missing before and"),
    ],
)
def test_conditions_that_kicad_cannot_evaluate_are_doubted(condition: str, doubt: str) -> None:
    rules = read_rules(
        f'(version 1)\n# a comment (\n(rule "r" (constraint clearance (min 1mm)) (condition "{condition}"))'
    )
    assert rules.names == ("r",)
    assert (doubt in rules.doubts[0]) if doubt else rules.doubts == ()


def test_rules_without_a_known_constraint_are_doubted() -> None:
    assert "no constraint" in read_rules('(rule "r")').doubts[0]
    assert "'clearence'" in read_rules('(rule "r" (constraint clearence (min 1mm)))').doubts[0]


LIBRARY = """(kicad_symbol_lib (version 20241209) (generator "x")
\t(symbol "BASE"
\t\t(property "Reference" "U" (at 0 0 0))
\t\t(property "Value" "BASE" (at 0 0 0))
\t\t(symbol "BASE_0_1" (rectangle (start -5 5) (end 5 -5)))
\t\t(symbol "BASE_1_1" (pin input line (at -7.5 0 0) (length 2.5) (name "IN") (number "1")))
\t\t(symbol "BASE_2_1" (pin power_in line (at 0 7.5 270) (length 2.5) (name "~") (number "2") (hide yes)))
\t\t(symbol "BASE_2_2" (pin input line (at 0 0 0) (length 1) (name "B") (number "9")))
\t)
\t(symbol "CHILD"
\t\t(extends "BASE")
\t\t(property "Value" "CHILD" (at 0 0 0))
\t\t(property "MPN" "C-1" (at 0 0 0))
\t)
)
"""


def test_a_derived_symbol_is_complete() -> None:
    child = find_symbol(LIBRARY, "CHILD")
    assert child.units_count == 2
    assert [(pin.unit, pin.number, pin.name, pin.kind, pin.is_hidden) for pin in child.pins] == [
        (1, "1", "IN", "input", False), (2, "2", "", "power_in", True),
    ]  # fmt: skip
    text = write(child.node)
    assert '"CHILD_1_1"' in text
    assert "BASE" not in text
    assert '(property "MPN" "C-1"' in text
    assert child.extents_mm[1] == (-7.5, -5.0, 5.0, 5.0)
    with pytest.raises(NoSuchSymbol) as caught:
        find_symbol(LIBRARY, "OTHER")
    assert caught.value.names == ("BASE", "CHILD")


@pytest.mark.parametrize("classes", [0.2, True, "wide", {"name": "wide"}, ["wide", None, 5]])
def test_net_classes_that_are_something_else_are_none(classes: Any) -> None:
    assert read_project(json.dumps({"net_settings": {"classes": classes}})).net_classes == {}


def test_numbers_and_depths_beyond_all_bounds_are_named_or_left_out() -> None:
    huge = int("1" + "0" * 400)
    rules = {"min_clearance": huge, "min_track_width": math.inf}
    assert read_project(json.dumps({"board": {"design_settings": {"rules": rules}}})).limits_mm == {}
    with pytest.raises(UnreadableProject):
        read_project("[" * 100_000)
    with pytest.raises(UnreadableReport):
        read_drc("[" * 100_000)


@pytest.mark.parametrize("item", ["text", {"pos": {"x": 10**400, "y": 0}}, {"pos": [1, 2]}, {}])
def test_an_item_of_a_violation_that_is_something_else_is_named(item: Any) -> None:
    violation = {"type": "t", "severity": "error", "description": "d", "items": [item]}
    report = {"coordinate_units": "mm", "violations": [violation], "unconnected_items": [], "schematic_parity": []}
    with pytest.raises(UnreadableReport, match="a violation without"):
        read_drc(json.dumps(report))

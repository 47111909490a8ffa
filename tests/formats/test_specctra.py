"""Sessions of routers are read in the design's own units, whatever resolution they claim."""

import pytest

from metaforge.formats.specctra import NotSpecctra, read_session, simplified

DESIGN = """(pcb "d.dsn"
  (parser (string_quote ") (space_in_quoted_tokens on))
  (resolution um 10) (unit um)
  (structure (layer top (type signal)) (layer bottom (type signal))
    (rule (width 250) (clearance 200)))
  (placement (component X (place R1 10000.000000 -20000.000000 front 0)) (component Y (place R2 30000 -20000 back 90)))
  (library (padstack P (shape (path top 1600  -400 0  400 0)) (attach off)))
  (network (class power "VCC" (rule (width 800) (clearance 300)))))"""


def session(factor: float) -> str:
    def at(x: float, y: float) -> str:
        return f"{x * factor:g} {y * factor:g}"

    return f"""(session "d.ses" (placement (resolution um 10)
      (component "X" (place R1 {at(10000, -20000)} front 0)))
    (routes (resolution um 10) (network_out
      (net "VCC" (wire (path "bottom" {800 * factor:g} {at(10000, -20000)} {at(15000, -20000)} {at(15000, -25000)}))
        (via "Via[0-1]_800:400_um" {at(15000, -25000)})))))"""


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_the_scale_is_measured_on_the_parts(factor: float) -> None:
    found = read_session(session(factor), DESIGN)
    (wire,), (via,) = found.wires, found.vias
    assert (wire.net, wire.layer, wire.width_mm) == ("VCC", 1, 0.8)
    assert wire.points_mm == ((10.0, 20.0), (15.0, 20.0), (15.0, 25.0))
    assert (via.at_mm, via.diameter_mm, via.drill_mm) == ((15.0, 25.0), 0.8, 0.4)


@pytest.mark.parametrize(
    "text", ["", "(session (routes))", session(1).replace("R1", "R9"), session(1).replace('"bottom"', '"other"'),
             session(1).replace("_800:400_um", "")],
)  # fmt: skip
def test_what_is_no_session_of_this_design_is_refused(text: str) -> None:
    with pytest.raises(NotSpecctra):
        read_session(text, DESIGN)


def test_a_simple_router_is_given_the_strictest_rule_and_rectangles() -> None:
    text = simplified(DESIGN)
    assert "(rule (width 800) (clearance 300))" in text
    assert "(shape (rect top -1200 -800 1200 800))" in text
    assert "(path top" not in text


@pytest.mark.parametrize("damaged", ["(place R1 1 front 0)", "(place R1 nought -20000 front 0)"])
def test_a_place_that_is_no_place_is_refused(damaged: str) -> None:
    with pytest.raises(NotSpecctra):
        read_session(session(1.0), DESIGN.replace("(place R1 10000.000000 -20000.000000 front 0)", damaged))


def test_what_only_looks_like_a_number_of_a_design_is_left_alone() -> None:
    strange = "(width .) (clearance 1.2.3) (shape (path F.Cu . 1 2)) (shape (path F.Cu 3 - 4))"
    assert simplified(strange) == strange

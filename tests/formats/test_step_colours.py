"""Colours of STEP files: by product, value by value, and nothing else of the file touched."""

import pytest

from metaforge.formats.step_colours import read_colours, settle, write_colours

FILE = """ISO-10303-21;
HEADER;
FILE_NAME('Open CASCADE Shape Model','2026-11-30T20:07:23',('Author'),(''),'p','FreeCAD','Unknown');
ENDSEC;
DATA;
#1 = SHAPE_DEFINITION_REPRESENTATION(#2,#6);
#2 = PRODUCT_DEFINITION_SHAPE('','',#3);
#3 = PRODUCT_DEFINITION('design','',#4,#9);
#4 = PRODUCT_DEFINITION_FORMATION('','',#5);
#5 = PRODUCT('Leg; front','Leg; front','',(#8));
#6 = ADVANCED_BREP_SHAPE_REPRESENTATION('',(#7,#10),#11);
#10 = MANIFOLD_SOLID_BREP('',#12);
#12 = CLOSED_SHELL('',(#13,#14));
#20 = SHAPE_DEFINITION_REPRESENTATION(#21,#25);
#21 = PRODUCT_DEFINITION_SHAPE('','',#22);
#22 = PRODUCT_DEFINITION('design','',#23,#9);
#23 = PRODUCT_DEFINITION_FORMATION('','',#24);
#24 = PRODUCT('T\\X2\\00FC\\X0\\r','','',(#8));
#25 = ADVANCED_BREP_SHAPE_REPRESENTATION('',(#7,#26),#11);
#26 = MANIFOLD_SOLID_BREP('',#27);
#30 = NEXT_ASSEMBLY_USAGE_OCCURRENCE('17','Leg','',#3,#22,$);
ENDSEC;
END-ISO-10303-21;
"""


def test_what_is_written_is_read_again_value_by_value() -> None:
    wanted = {"Leg; front": (0.87, 0.76, 0.57), "Tür": (1.0, 0.0, 1e-7)}
    text = write_colours(FILE, wanted)
    assert read_colours(text) == wanted
    assert "COLOUR_RGB('',0.87,0.76,0.57)" in text
    assert text.startswith(FILE.partition("ENDSEC;\nEND-ISO")[0]), "what was there is as it was"
    assert text.endswith("ENDSEC;\nEND-ISO-10303-21;\n")


def test_a_file_without_styles_has_no_colours() -> None:
    assert read_colours(FILE) == {}
    assert write_colours(FILE, {}) == FILE


def test_a_part_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="Lid"):
        write_colours(FILE, {"Lid": (1, 0, 0)})


def test_faces_of_one_colour_colour_their_part_and_faces_of_several_do_not() -> None:
    style = "#90=COLOUR_RGB('',0.1,0.2,0.3);\n#91=STYLED_ITEM('',(#90),#13);\n"
    text = FILE.replace("ENDSEC;\nEND-ISO", style + "ENDSEC;\nEND-ISO")
    assert read_colours(text) == {"Leg; front": (0.1, 0.2, 0.3)}
    other = "#92=COLOUR_RGB('',0.9,0.2,0.3);\n#93=STYLED_ITEM('',(#92),#14);\n"
    assert read_colours(text.replace("#91=", other + "#91=")) == {}


def test_a_named_colour_and_one_whose_name_holds_numbers_are_understood() -> None:
    style = "#90=DRAUGHTING_PRE_DEFINED_COLOUR('green');\n#91=STYLED_ITEM('',(#90),#10);\n"
    style += "#92=COLOUR_RGB('RAL 7 5',0.5,.25E0,1.);\n#93=STYLED_ITEM('',(#92),#26);\n"
    found = read_colours(FILE.replace("ENDSEC;\nEND-ISO", style + "ENDSEC;\nEND-ISO"))
    assert found == {"Leg; front": (0, 1, 0), "Tür": (0.5, 0.25, 1.0)}


def test_a_circle_of_references_ends() -> None:
    style = "#90=FILL_AREA_STYLE('',(#91));\n#91=SURFACE_SIDE_STYLE('',(#90));\n#92=STYLED_ITEM('',(#91),#10);\n"
    assert read_colours(FILE.replace("ENDSEC;\nEND-ISO", style + "ENDSEC;\nEND-ISO")) == {}


def test_a_settled_file_has_no_clock_no_running_number_and_ascii_alone() -> None:
    text = settle(FILE.replace("'Leg'", "'Bäse'"), "it's.step")
    assert "1970-01-01T00:00:00" in text
    assert "2026" not in text
    assert "FILE_NAME('it''s.step'" in text
    assert "OCCURRENCE('1','B\\X2\\00E4\\X0\\se'" in text
    assert settle(text, "it's.step") == text


@pytest.mark.parametrize(
    "damaged",
    [
        "#20 = STYLED_ITEM('',(),());",
        "#20 = SHAPE_DEFINITION_REPRESENTATION(#2);",
        "#5 = COLOUR_RGB('',1.,0.);\n#20 = STYLED_ITEM('',(#5),#10);",
    ],
)
def test_entities_that_name_too_little_colour_nothing(damaged: str) -> None:
    assert read_colours(FILE.replace("#20 = SHAPE_DEFINITION_REPRESENTATION(#21,#25);", damaged)) == {}


def test_a_row_of_quotes_takes_no_more_time_than_other_text() -> None:
    # Read one way alone: with two ways to read each pair, two hundred quotes outlast the universe.
    assert read_colours("#1 = PRODUCT(" + "'" * 20_001) == {}

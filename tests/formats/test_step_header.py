"""What the text of a STEP file tells, on text written for the purpose."""

import pytest

from metaforge.core.errors import ToolError
from metaforge.formats.step_header import OCCURRENCE_LIMIT_COUNT, read_step_header, size_warning

MILLIMETRE = "#20=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.));"
ANGLES = "#21=(NAMED_UNIT(*)PLANE_ANGLE_UNIT()SI_UNIT($,.RADIAN.));"


def step(*entities: str, end: str = "ENDSEC;\nEND-ISO-10303-21;\n") -> bytes:
    head = "ISO-10303-21;\nHEADER;\nFILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));\nENDSEC;\nDATA;\n"
    return (head + "\n".join(entities) + "\n" + end).encode()


def context(number: int, *units: int) -> str:
    listed = ",".join(f"#{unit}" for unit in units)
    return (
        f"#{number}=(GEOMETRIC_REPRESENTATION_CONTEXT(3)GLOBAL_UNIT_ASSIGNED_CONTEXT(({listed}))"
        "REPRESENTATION_CONTEXT('a; b','3D'));"
    )


def link(number: int, parent: int, child: int) -> str:
    return f"#{number}=NEXT_ASSEMBLY_USAGE_OCCURRENCE('{number}','#99 in a name','',#{parent},#{child},$);"


def test_schema_units_and_counts_are_read() -> None:
    header = read_step_header(
        step(
            MILLIMETRE, ANGLES, context(30, 20, 21), "#40=PRODUCT('p','it''s a = PRODUCT(','',(#1));",
            "#41=MANIFOLD_SOLID_BREP('',#2);", "#42=COLOUR_RGB('',0.5,0.5,0.5);", link(43, 1, 2),
        ),
        "part.step",
    )  # fmt: skip
    assert header.schema == "AUTOMOTIVE_DESIGN"
    assert header.length_units == (("millimetre", 1.0),)
    assert (header.products_count, header.links_count, header.solids_count, header.colours_count) == (1, 1, 1, 1)
    assert header.is_closed
    assert not header.has_byte_order_mark


@pytest.mark.parametrize(
    ("entities", "name", "size_mm"),
    [
        (["#20=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT($,.METRE.));"], "metre", 1000),
        (["#20=( NAMED_UNIT(*) SI_UNIT ( .CENTI. , .METRE. ) LENGTH_UNIT() );"], "centimetre", 10),
        (
            ["#20=(CONVERSION_BASED_UNIT('INCH',#5)LENGTH_UNIT()NAMED_UNIT(#6));",
             "#5=LENGTH_MEASURE_WITH_UNIT(LENGTH_MEASURE(2.54),#7);",
             "#7=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.CENTI.,.METRE.));"],
            "inch", 25.4,
        ),
        (
            ["#20=(CONVERSION_BASED_UNIT('INCH',#5)LENGTH_UNIT()NAMED_UNIT(#6));",
             "#5=LENGTH_MEASURE_WITH_UNIT(25.4,#7);", "#7=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.));"],
            "inch", 25.4,
        ),
        (
            ["#20=(CONVERSION_BASED_UNIT('SMOOT',#5)LENGTH_UNIT()NAMED_UNIT(#6));",
             "#5=LENGTH_MEASURE_WITH_UNIT(LENGTH_MEASURE(1.7018),#7);",
             "#7=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT($,.METRE.));"],
            "smoot of 1701.8 mm", 1701.8,
        ),
    ],
)  # fmt: skip
def test_a_unit_is_named_and_sized_however_it_is_written(entities: list[str], name: str, size_mm: float) -> None:
    header = read_step_header(step(*entities, context(30, 20)), "part.step")
    assert header.source_unit == name
    assert header.unit_mm == pytest.approx(size_mm)


def test_two_length_units_are_refused_by_name() -> None:
    inch = [
        "#22=(CONVERSION_BASED_UNIT('INCH',#5)LENGTH_UNIT()NAMED_UNIT(#6));",
        "#5=LENGTH_MEASURE_WITH_UNIT(LENGTH_MEASURE(25.4),#20);",
    ]
    with pytest.raises(ToolError, match="millimetre and inch") as caught:
        read_step_header(step(MILLIMETRE, *inch, context(30, 20), context(31, 22)), "part.step")
    assert caught.value.kind == "mixed_units"


def test_the_same_unit_in_many_contexts_is_one_unit() -> None:
    other = MILLIMETRE.replace("#20", "#23")
    header = read_step_header(step(MILLIMETRE, other, context(30, 20), context(31, 23)), "part.step")
    assert header.length_units == (("millimetre", 1.0),)


def test_a_comment_is_not_an_entity() -> None:
    text = step(
        MILLIMETRE, "/* #31=(LENGTH_UNIT()SI_UNIT($,.METRE.)); */", context(30, 20), "#9=PRODUCT('/*','','',());"
    )
    header = read_step_header(text, "part.step")
    assert header.source_unit == "millimetre"
    assert header.products_count == 1


def test_an_assembly_is_counted_unfolded_without_unfolding_it() -> None:
    links = [link(100 + 2 * n + twice, n + 1, n + 2) for n in range(6) for twice in (0, 1)]
    header = read_step_header(step(MILLIMETRE, context(30, 20), *links), "part.step")
    assert header.links_count == 12
    assert header.occurrences_count == 2**7 - 1


def test_a_small_file_that_unfolds_to_millions_is_refused_with_the_number() -> None:
    links = [link(100 + 2 * n + twice, n + 1, n + 2) for n in range(24) for twice in (0, 1)]
    with pytest.raises(ToolError, match=f"33,554,431 part occurrences; the limit is {OCCURRENCE_LIMIT_COUNT:,}"):
        read_step_header(step(*links), "bomb.step")


def test_mapped_items_that_unfold_to_millions_are_refused_too() -> None:
    entities = []
    for level in range(24):
        rep, mapping, first, second, below = (1000 + 10 * level + offset for offset in (0, 1, 2, 3, 10))
        entities.append(f"#{rep}=SHAPE_REPRESENTATION('',(#{first},#{second}),#30);")
        entities.append(f"#{mapping}=REPRESENTATION_MAP(#7,#{below});")
        entities += [f"#{item}=MAPPED_ITEM('',#{mapping},#8);" for item in (first, second)]
    entities.append("#1240=ADVANCED_BREP_SHAPE_REPRESENTATION('',(#9),#30);")
    with pytest.raises(ToolError) as caught:
        read_step_header(step(*entities), "bomb.step")
    assert caught.value.kind == "assembly_too_large"


def test_an_assembly_that_contains_itself_is_refused() -> None:
    with pytest.raises(ToolError, match="contains itself"):
        read_step_header(step(link(100, 1, 2), link(101, 2, 3), link(102, 3, 1)), "ring.step")


def test_a_file_cut_short_is_refused_and_one_without_its_end_mark_is_not() -> None:
    whole = step(MILLIMETRE, context(30, 20))
    with pytest.raises(ToolError, match="cut short: it ends after"):
        read_step_header(whole[: whole.index(b"#30") + 8], "part.step")
    assert not read_step_header(step(MILLIMETRE, context(30, 20), end="ENDSEC;\n"), "part.step").is_closed


def test_a_damaged_file_is_refused_with_the_offset() -> None:
    data = step(MILLIMETRE).replace(b"DATA;", b"DA\0A;")
    with pytest.raises(ToolError, match=f"NUL bytes at offset {data.index(0)}"):
        read_step_header(data, "part.step")


@pytest.mark.parametrize(
    ("data", "looks_like"),
    [
        (b"solid x\n", "looks like STL"),
        (b"\0" * 80 + (2).to_bytes(4, "little") + b"\1" * 100, "looks like binary STL"),
        (b"PK\x03\x04rest", "looks like a ZIP archive"),
        (b"DBRep_DrawableShape\n", "looks like BREP"),
        (b"hello", "starts with 'hello'"),
    ],
)
def test_another_format_is_recognised(data: bytes, looks_like: str) -> None:
    with pytest.raises(ToolError, match=looks_like) as caught:
        read_step_header(data, "part.step")
    assert caught.value.kind == "not_step"


def test_size_and_unit_must_fit_together() -> None:
    metre = read_step_header(step(MILLIMETRE.replace(".MILLI.", "$"), context(30, 20)), "part.step")
    millimetre = read_step_header(step(MILLIMETRE, context(30, 20)), "part.step")
    assert "look like millimetres" in size_warning(metre, 76_200)
    assert size_warning(metre, 760) == ""
    assert "look like metres" in size_warning(millimetre, 0.05)
    assert size_warning(millimetre, 5) == ""

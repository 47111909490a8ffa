"""Every wrong argument is named at once, with what was expected and the nearest allowed value."""

import pytest

from metaforge.calls.arguments import ArgumentJudge
from metaforge.core.errors import InvalidArguments, Quarantined
from metaforge.tools.manifest import Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["shape", "radius_mm"],
    "properties": {
        "shape": {"enum": ["box", "cylinder"], "description": "What to make."},
        "radius_mm": {"type": "number", "exclusiveMinimum": 0, "maximum": 500},
        "point_mm": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
        "note": {"type": "string"},
        "size": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "cube"}, "edge_mm": {"type": "number", "exclusiveMinimum": 0}},
                    "required": ["kind", "edge_mm"],
                },
                {"type": "object", "properties": {"kind": {"const": "ball"}}, "required": ["kind", "radius_mm"]},
                {"type": "string"},
            ]
        },
    },
}


def judge(**arguments: object) -> dict[str, str]:
    tool = Tool("x.make", "x", "Make", "", "", SCHEMA, {})
    with pytest.raises(InvalidArguments) as caught:
        ArgumentJudge().judge(tool, arguments)
    return caught.value.data["fields"]


def test_all_wrong_fields_are_named_in_one_answer() -> None:
    fields = judge(shape="cylindre", radius_mm=-5, radius=3, note=7)
    assert fields == {
        "shape": "'cylindre' is not allowed, it takes one of box, cylinder; nearest: cylinder",
        "radius_mm": "-5 is too small, it must be greater than 0",
        "radius": "is not an argument; did you mean radius_mm?",
        "note": "7 is not of type string",
    }


def test_a_missing_argument_is_described() -> None:
    assert judge(radius_mm=1)["shape"] == "is required (What to make)"


def test_a_limit_is_given_as_a_number() -> None:
    assert judge(shape="box", radius_mm=501) == {"radius_mm": "501 is too large, the largest allowed is 500"}


def test_a_short_vector_says_how_many_it_takes() -> None:
    assert judge(shape="box", radius_mm=1, point_mm=[1, 2]) == {"point_mm": "has 2 items, it takes at least 3"}


def test_of_several_shapes_the_one_that_was_meant_is_explained() -> None:
    fields = judge(shape="box", radius_mm=1, size={"kind": "cube", "edge_mm": -1})
    assert fields == {"size.edge_mm": "-1 is too small, it must be greater than 0"}


def test_null_means_not_given() -> None:
    tool = Tool("x.make", "x", "Make", "", "", SCHEMA, {})
    given = {"shape": "box", "radius_mm": 1, "note": None}
    assert ArgumentJudge().judge(tool, given) == {"shape": "box", "radius_mm": 1}


def test_a_schema_that_cannot_be_compiled_is_quarantined() -> None:
    tool = Tool("x.bad", "x", "Bad", "", "", {"type": "object", "properties": {"a": {"type": "nonsense"}}}, {})
    with pytest.raises(Quarantined, match=r"x\.bad cannot be called"):
        ArgumentJudge().judge(tool, {})


def test_senseless_arguments_by_the_thousand_are_told_shortly() -> None:
    tool = Tool("x.make", "x", "Make", "", "", SCHEMA, {})
    with pytest.raises(InvalidArguments) as caught:
        ArgumentJudge().judge(tool, {"shape": "b" * 5000, **{f"k{number}" * 400: 1 for number in range(20_000)}})
    assert len(caught.value.data["fields"]) == 40
    assert caught.value.message.startswith("x.make was not run: 40 or more arguments are wrong.")
    assert caught.value.message.endswith("- and more")
    assert len(caught.value.message) < 100_000


def test_arguments_nested_beyond_what_can_be_followed_are_the_callers_fault() -> None:
    tool = Tool("x.make", "x", "Make", "", "", SCHEMA, {})
    nested: object = 1
    for _ in range(1000):
        nested = [nested]
    with pytest.raises(InvalidArguments, match=r"x\.make was not run"):
        ArgumentJudge().judge(tool, {"shape": "box", "radius_mm": 1, "point_mm": nested})


def test_another_name_never_stands_for_what_says_whether_a_person_is_asked() -> None:
    properties = {"overwrite": {"type": "boolean"}, "project_id": {"type": "string"}, "radius_mm": {"type": "number"}}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    aliases = {"force": "overwrite", "project": "project_id", "radius": "radius_mm"}
    tool = Tool("x.make", "x", "Make", "", "", schema, {}, aliases=aliases)
    assert ArgumentJudge().judge(tool, {"radius": 2}) == {"radius_mm": 2}
    with pytest.raises(InvalidArguments) as caught:
        ArgumentJudge().judge(tool, {"force": True, "project": "p1", "radius": 2})
    assert set(caught.value.data["fields"]) == {"force", "project"}


def test_a_documented_name_without_its_unit_stands_for_the_one_with_it() -> None:
    schema = {
        "type": "object", "additionalProperties": False, "required": ["length_mm"],
        "properties": {"length_mm": {"type": "number", "exclusiveMinimum": 0}},
    }  # fmt: skip
    made = Tool("cad.pad", "cad", "Pad", "", "", schema, {}, aliases={"length": "length_mm"})
    assert ArgumentJudge().judge(made, {"length": 3}) == {"length_mm": 3}
    assert ArgumentJudge().judge(made, {"length_mm": 3}) == {"length_mm": 3}
    for wrong in ({"length": 0}, {"length": 3, "length_mm": 4}, {"size": 3}):
        with pytest.raises(InvalidArguments):
            ArgumentJudge().judge(made, wrong)

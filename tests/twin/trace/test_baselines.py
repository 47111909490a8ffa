"""Baselines hold a state for ever; a diff tells what became of it."""

import pytest
from bracket_design import FINISH, MASS, STRESS, Design

from metaforge.core.errors import ToolError
from metaforge.twin.baseline_diff import diff_baselines
from metaforge.twin.baselines import baselines, create_baseline, state
from metaforge.twin.difference import differences


def freeze(design: Design, name: str, note: str = "") -> None:
    with design.change(author="lead") as change:
        create_baseline(change, name, note)


def test_a_baseline_holds_the_heads_of_its_moment(verified):
    freeze(verified, "PDR-1", "preliminary design review")
    verified.part(0.3)
    with verified.view() as view:
        held = state(view, "PDR-1")
        made = baselines(view)
    assert [entry.ref for entry in held.entries.values()] == [
        "CAD-BRACKET@1",
        "CS-BRACKET@1",
        "NEED-CARRY-THE-CAMERA@1",
    ]
    assert [(each.name, each.note, each.author, each.item_count) for each in made] == [
        ("PDR-1", "preliminary design review", "lead", 3)
    ]


def test_drafts_are_not_frozen(verified, start_run):
    verified.part(0.2, start_run("run-1"))
    freeze(verified, "PDR-1")
    with verified.view() as view:
        assert state(view, "PDR-1").entries["CAD-BRACKET"].revision == 1


def test_two_baselines_of_one_state_have_one_digest(verified):
    freeze(verified, "A")
    freeze(verified, "B")
    verified.part(0.3)
    freeze(verified, "C")
    with verified.view() as view:
        digests = [each.digest for each in baselines(view)]
    assert digests[0] == digests[1] != digests[2]


def test_a_taken_name_is_refused_with_the_names_there_are(verified):
    freeze(verified, "PDR-1")
    with pytest.raises(ToolError) as caught:
        freeze(verified, "PDR-1")
    assert caught.value.kind == "baseline_exists"
    assert "PDR-1" in caught.value.fix


@pytest.mark.parametrize("name", ["", "now", "CAD-BRACKET@2", "two\nlines", "x" * 101])
def test_names_that_cannot_be_told_apart_are_refused(verified, name):
    with pytest.raises(ToolError, match="cannot be the name"):
        freeze(verified, name)


def test_an_empty_project_cannot_be_frozen(design):
    with pytest.raises(ToolError, match="nothing to freeze"):
        freeze(design, "PDR-1")


def test_an_unknown_baseline_names_those_there_are(verified):
    freeze(verified, "PDR-1")
    with pytest.raises(ToolError) as caught, verified.view() as view:
        state(view, "PDR")
    assert "PDR-1" in caught.value.fix


@pytest.mark.parametrize(
    "tamper",
    [
        "update nodes set body = '{}' where item_key = 'CAD-BRACKET'",
        "update baseline_entries set revision = 7 where item_key = 'CAD-BRACKET'",
        "delete from baseline_entries where item_key = 'CAD-BRACKET'",
    ],
)
def test_a_baseline_that_was_tampered_with_is_found(verified, database, tamper):
    freeze(verified, "PDR-1")
    with database.transaction(write=True) as transaction:
        assert transaction.run(tamper) == 1
    with pytest.raises(ToolError, match="damaged"), verified.view() as view:
        state(view, "PDR-1")


def test_a_diff_tells_items_fields_reasons_links_and_records(verified):
    freeze(verified, "PDR-1")
    verified.part(0.3, reason="thinner web")
    verified.part(0.28, reason="pocket added")
    verified.requirements(dict(STRESS, limit=180), MASS)
    verified.define("cad_model", "Lid", {})
    evidence = verified.evidence({"max_von_mises_mpa": 170.0}, ("CS-BRACKET#stress",))
    freeze(verified, "CDR-1")
    with verified.view() as view:
        found = diff_baselines(view, "PDR-1", "CDR-1")
    assert found.counts() == {"added": 1, "removed": 0, "revised": 2}
    assert found.unchanged_count == 1
    changed = {each.item_key: each for each in found.items}
    part = changed["CAD-BRACKET"]
    assert [(step.ref, step.change_reason) for step in part.steps] == [
        ("CAD-BRACKET@2", "thinner web"), ("CAD-BRACKET@3", "pocket added"),
    ]  # fmt: skip
    assert [(each.path, each.before, each.after) for each in part.fields] == [("measured.mass_kg", 0.35, 0.28)]
    fields = {each.path: each.what for each in changed["CS-BRACKET"].fields}
    assert fields == {"constraints[stress].limit": "changed", "constraints[finish]": "removed"}
    assert [(link.what, link.type, link.target_ref) for link in found.links] == [
        ("removed", "implements", "NEED-CARRY-THE-CAMERA@1")
    ]
    assert [node.node_id for node in found.records] == [evidence.node_id]
    assert found.as_json()["counts"] == found.counts()


def test_a_diff_to_now_follows_the_present(verified):
    freeze(verified, "PDR-1")
    with verified.view() as view:
        assert diff_baselines(view, "PDR-1").items == ()
    verified.part(0.3)
    with verified.view() as view:
        assert [each.item_key for each in diff_baselines(view, "PDR-1").items] == ["CAD-BRACKET"]


def test_a_diff_read_backwards_takes_away_what_was_added(verified):
    freeze(verified, "PDR-1")
    verified.define("cad_model", "Lid", {})
    with verified.view() as view:
        assert diff_baselines(view, "now", "PDR-1").counts()["removed"] == 1


def test_another_projects_baseline_is_unknown(verified, twin):
    freeze(verified, "PDR-1")
    with twin.change(author="x") as change:
        other = Design(twin, change.create_project("Other").project_id)
    with pytest.raises(ToolError, match="no baseline"), other.view() as view:
        state(view, "PDR-1")


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3, 4]}}, ["a.b[1]", "a.b[2]"]),
        ({"c": [STRESS, MASS]}, {"c": [MASS, STRESS]}, []),
        ({"c": [MASS]}, {"c": [MASS, FINISH]}, ["c[finish]"]),
        ({"c": [{"name": "a"}, {"name": "a"}]}, {"c": [{"name": "a"}]}, ["c[1]"]),
        ({}, {"x": None}, ["x"]),
    ],
)
def test_fields_are_compared_by_name_or_place(before, after, paths):
    assert [each.path for each in differences(before, after)] == paths


def test_long_texts_are_compared_by_line():
    change = next(differences({"t": "one\ntwo\nthree"}, {"t": "one\n2\nthree"}))
    assert change.is_text
    assert change.text_lines() == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]

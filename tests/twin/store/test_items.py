"""Items and their revisions outside runs: which item a write revises, and what is refused."""

import pytest

from metaforge.core.errors import ToolError
from metaforge.twin.model import ChangeKind, Node, Reader, Status
from metaforge.twin.store import TwinStore


def define(twin: TwinStore, project_id: str, name: str, kind: str = "cad_model", **more: str) -> Node:
    with twin.change(author="agent:mechanical", project_id=project_id) as change:
        return change.define(kind, name, {"mass_g": 12.5}, **more)


def refusal(twin: TwinStore, project_id: str, *arguments: str, **more: str) -> ToolError:
    """Return why a definition is refused, and see that it left nothing behind."""
    with twin.read() as view:
        before = view.seq(), view.transaction.value("select count(*) from nodes")
    with pytest.raises(ToolError) as caught:
        define(twin, project_id, *arguments, **more)
    with twin.read() as view:
        assert (view.seq(), view.transaction.value("select count(*) from nodes")) == before
    return caught.value


def test_a_first_definition_is_revision_one_of_a_new_item(twin: TwinStore, project_id: str) -> None:
    node = define(twin, project_id, "Leg", change_reason="first shape")

    assert (node.ref, node.status, node.author, node.change_reason) == (
        "CAD-LEG@1", Status.COMMITTED, "agent:mechanical", "first shape",
    )  # fmt: skip
    with twin.read(Reader(project_id=project_id)) as view:
        assert view["CAD-LEG"] == view["CAD-LEG@1"] == view[node.node_id] == node
        item = view.item("CAD-LEG")
    assert (item.head_ref, item.head_node_id, item.name) == ("CAD-LEG@1", node.node_id, "Leg")


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("cad_model", "CAD-X-1"), ("assembly", "ASM-X-1"), ("constraint_set", "CS-X-1"), ("intent", "INT-X-1"),
        ("stakeholder_need", "NEED-X-1"), ("objective", "OBJ-X-1"), ("bom", "BOM-X-1"),
        ("component_selection", "CMP-X-1"), ("prd", "PRD-X-1"),
    ],
)  # fmt: skip
def test_each_kind_has_its_prefix(twin: TwinStore, project_id: str, kind: str, key: str) -> None:
    assert define(twin, project_id, "x 1", kind).item_key == key


@pytest.mark.parametrize("again", ["Leg, front", "leg front", "LEG FRONT!", "  Leg -- front  "])
def test_the_same_words_are_the_same_item(twin: TwinStore, project_id: str, again: str) -> None:
    first = define(twin, project_id, "Leg, front")
    second = define(twin, project_id, again)
    assert (second.ref, second.prior_node_id) == ("CAD-LEG-FRONT@2", first.node_id)


def test_a_part_that_becomes_an_assembly_stays_the_same_item(twin: TwinStore, project_id: str) -> None:
    define(twin, project_id, "Leg")
    assert define(twin, project_id, "Leg", "assembly").ref == "CAD-LEG@2"
    with twin.read(Reader(project_id=project_id)) as view:
        assert view.item("CAD-LEG").kind == "assembly"


def test_the_same_name_in_another_kind_or_project_is_another_item(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="owner") as change:
        other = change.create_project("Rover").project_id
    assert define(twin, project_id, "Leg").ref == "CAD-LEG@1"
    assert define(twin, project_id, "Leg", "objective").ref == "OBJ-LEG@1"
    assert define(twin, other, "Leg").ref == "CAD-LEG@1"


def test_names_that_only_look_alike_in_a_key_get_numbered_keys(twin: TwinStore, project_id: str) -> None:
    assert define(twin, project_id, "+5 V rail").ref == "CAD-5-V-RAIL@1"
    assert define(twin, project_id, "-5 V rail").ref == "CAD-5-V-RAIL-2@1"
    assert define(twin, project_id, "±5 V rail").ref == "CAD-5-V-RAIL-3@1"
    assert define(twin, project_id, "+5 V rail").ref == "CAD-5-V-RAIL@2"


def test_long_names_with_one_beginning_stay_apart(twin: TwinStore, project_id: str) -> None:
    begin = "A bracket for the landing gear of the quadcopter which is on the "
    left, right = define(twin, project_id, begin + "left"), define(twin, project_id, begin + "right")
    assert right.item_key == left.item_key + "-2"
    assert len(left.item_key) <= 4 + 48
    assert define(twin, project_id, begin + "right").ref == right.item_key + "@2"


def test_item_key_keeps_the_item_under_a_new_name(twin: TwinStore, project_id: str) -> None:
    define(twin, project_id, "Leg")
    assert define(twin, project_id, "Leg, front left", item_key="CAD-LEG").ref == "CAD-LEG@2"
    with twin.read(Reader(project_id=project_id)) as view:
        history = view.history("CAD-LEG")
    assert history.item.name == "Leg, front left"
    assert [node.name for node in history.revisions] == ["Leg", "Leg, front left"]
    assert define(twin, project_id, "leg front-left").ref == "CAD-LEG@3"


def test_a_pinned_head_is_revised_and_a_stale_one_refused_with_nothing_written(
    twin: TwinStore, project_id: str
) -> None:
    define(twin, project_id, "Leg")
    assert define(twin, project_id, "Leg", item_key="CAD-LEG@1").ref == "CAD-LEG@2"

    fault = refusal(twin, project_id, "Leg", item_key="CAD-LEG@1")

    assert fault.kind == "stale_revision"
    assert "CAD-LEG@1 is not what CAD-LEG is now: that is CAD-LEG@2" in fault.message
    assert "item_key CAD-LEG@2" in fault.fix
    assert refusal(twin, project_id, "Leg", item_key="CAD-LEG@3").kind == "stale_revision"


def test_a_bare_key_that_no_item_has_names_a_new_one(twin: TwinStore, project_id: str) -> None:
    assert define(twin, project_id, "Leg", item_key="LEG_FL.01").ref == "LEG_FL.01@1"
    fault = refusal(twin, project_id, "Leg", item_key="LEG_FL.02@1")
    assert fault.kind == "unknown_item"
    assert "LEG_FL.01" in fault.fix


@pytest.mark.parametrize("key", ["cad-leg", "CAD LEG", "-CAD", "CAD@0", "CAD@", "CAD@x", "@1", "A" * 81, "CAD-LEG@1@2"])
def test_what_is_no_key_is_refused(twin: TwinStore, project_id: str, key: str) -> None:
    assert refusal(twin, project_id, "Leg", item_key=key).kind == "bad_item_ref"


def test_supersedes_revises_the_item_of_that_node(twin: TwinStore, project_id: str) -> None:
    first = define(twin, project_id, "Leg")
    assert define(twin, project_id, "Strut", supersedes=first.node_id).ref == "CAD-LEG@2"
    assert define(twin, project_id, "Strut 2", supersedes=first.node_id).ref == "CAD-LEG@3"


def test_item_key_goes_before_supersedes_and_both_must_agree(twin: TwinStore, project_id: str) -> None:
    leg, arm = define(twin, project_id, "Leg"), define(twin, project_id, "Arm")
    assert define(twin, project_id, "Arm", item_key="CAD-ARM", supersedes=arm.node_id).ref == "CAD-ARM@2"
    for key in ("CAD-ARM", "CAD-NEW"):
        fault = refusal(twin, project_id, "Arm", item_key=key, supersedes=leg.node_id)
        assert fault.kind == "conflicting_identity"


def test_another_kind_cannot_revise_an_item(twin: TwinStore, project_id: str) -> None:
    leg = define(twin, project_id, "Leg")
    assert refusal(twin, project_id, "Leg", "bom", item_key="CAD-LEG").kind == "other_kind"
    assert refusal(twin, project_id, "Leg", "bom", supersedes=leg.node_id).kind == "other_kind"


def test_a_project_has_one_prd_whatever_its_title(twin: TwinStore, project_id: str) -> None:
    assert define(twin, project_id, "Drone PRD", "prd").ref == "PRD-DRONE-PRD@1"
    assert define(twin, project_id, "Another title", "prd").ref == "PRD-DRONE-PRD@2"
    assert refusal(twin, project_id, "Third", "prd", item_key="PRD-THIRD").kind == "second_of_a_single_kind"


def test_without_project_and_key_there_is_no_item(twin: TwinStore) -> None:
    node = define(twin, "", "Leg")
    assert (node.item_key, node.revision, node.ref) == ("", None, node.node_id)
    assert define(twin, "", "Leg", item_key="CAD-LEG").ref == "CAD-LEG@1"
    assert define(twin, "", "Leg", item_key="CAD-LEG").ref == "CAD-LEG@2"


def test_a_key_of_several_projects_needs_a_project(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="owner") as change:
        other = change.create_project("Rover").project_id
    define(twin, project_id, "Leg")
    assert define(twin, "", "Leg", item_key="CAD-LEG").project_id == project_id
    define(twin, other, "Leg")

    fault = refusal(twin, "", "Leg", item_key="CAD-LEG")

    assert fault.kind == "ambiguous_item_key"
    assert project_id in fault.message
    assert other in fault.message


def test_revising_another_projects_item_by_its_node_is_refused(twin: TwinStore, project_id: str) -> None:
    leg = define(twin, project_id, "Leg")
    with twin.change(author="owner") as change:
        other = change.create_project("Rover").project_id
    assert refusal(twin, other, "Leg", supersedes=leg.node_id).kind == "other_project"


def test_an_unknown_or_deleted_project_is_refused_with_those_there_are(twin: TwinStore, project_id: str) -> None:
    fault = refusal(twin, "p-gone", "Leg")
    assert fault.kind == "unknown_project"
    assert f"{project_id} (Quadcopter)" in fault.fix
    with twin.change(author="owner") as change:
        change.delete_project(project_id)
    assert refusal(twin, project_id, "Leg").kind == "unknown_project"


def test_what_does_not_exist_is_told_with_what_does(twin: TwinStore, project_id: str) -> None:
    define(twin, project_id, "Bracket")
    define(twin, project_id, "Bracket")
    with twin.read(Reader(project_id=project_id)) as view:
        with pytest.raises(ToolError, match="no item CAD-BRAKET") as caught:
            view["CAD-BRAKET"]
        assert caught.value.fix == "Use one there is: CAD-BRACKET"
        with pytest.raises(ToolError, match="no revision CAD-BRACKET@3") as caught:
            view["CAD-BRACKET@3"]
        assert caught.value.fix == "There is @1 committed, @2 committed"
        with pytest.raises(ToolError, match="no node 'n123'") as caught:
            view["n123"]
        assert caught.value.kind == "unknown_node"


def test_a_failed_change_leaves_nothing_of_its_writes(twin: TwinStore, project_id: str) -> None:
    with pytest.raises(ToolError), twin.change(author="a", project_id=project_id) as change:  # noqa: PT012
        change.define("cad_model", "Leg", {})
        change.record("design_decision", {"title": "why"})
        change.define("cad_model", "Arm", {}, item_key="CAD-ARM@7")
    with twin.read(Reader(project_id=project_id)) as view:
        assert list(view.items()) == []
        assert [entry.kind for entry in view.changes(project_id=project_id)] == [ChangeKind.PROJECT]
    assert define(twin, project_id, "Leg").ref == "CAD-LEG@1"


def test_every_write_is_in_the_changelog_in_its_order(twin: TwinStore, project_id: str) -> None:
    leg = define(twin, project_id, "Leg")
    with twin.change(author="b", project_id=project_id) as change:
        decision = change.record("design_decision", {"title": "why"})
        link = change.link("depends_on", decision, "CAD-LEG")
    with twin.read() as view:
        entries = view.changes(project_id=project_id)
        assert view.changes(entries[0].seq, project_id=project_id) == entries[1:]
        assert view.seq(project_id) == entries[-1].seq
    assert [(entry.kind, entry.ref, entry.node_id, entry.author) for entry in entries[1:]] == [
        ("define", "CAD-LEG@1", leg.node_id, "agent:mechanical"),
        ("record", "", decision.node_id, "b"),
        ("link", link.link_id, decision.node_id, "b"),
    ]

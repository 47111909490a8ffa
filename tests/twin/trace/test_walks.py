"""Walks along links: the thread of a node, where it is used, what verifies it, what a change affects."""

import pytest
from bracket_design import Design

from metaforge.core.errors import ToolError
from metaforge.twin.impact import impact
from metaforge.twin.trace import thread_for, what_verifies, where_used


@pytest.fixture
def stack(design: Design) -> Design:
    """Bolt <- bracket <- rig <- drone, each using the one before."""
    previous = ""
    for kind, name in (("cad_model", "Bolt"), ("cad_model", "Bracket"), ("assembly", "Rig"), ("assembly", "Drone")):
        with design.change() as change:
            node = change.define(kind, name, {"measured": {"mass_kg": 0.1}})
            if previous:
                change.link("uses", node, previous)
        previous = node.item_key
    return design


def hits(design: Design, ref: str, *more, run_id: str = "", **named) -> list[tuple[str, int]]:
    with design.view(run_id) as view:
        return [(hit.ref, hit.depth) for hit in impact(view, ref, *more, **named).hits]


def test_a_change_affects_all_that_rests_on_it(stack):
    assert hits(stack, "CAD-BOLT") == [("CAD-BRACKET@1", 1), ("ASM-RIG@1", 2), ("ASM-DRONE@1", 3)]


def test_what_a_thing_rests_on_is_the_other_way(stack):
    assert hits(stack, "ASM-DRONE", "down") == [("ASM-RIG@1", 1), ("CAD-BRACKET@1", 2), ("CAD-BOLT@1", 3)]


def test_depth_ends_an_impact(stack):
    assert hits(stack, "CAD-BOLT", depth=2) == [("CAD-BRACKET@1", 1), ("ASM-RIG@1", 2)]


def test_circles_end(design):
    design.define("cad_model", "A", {})
    design.define("cad_model", "B", {})
    with design.change() as change:
        change.link("depends_on", "CAD-A", "CAD-B")
        change.link("depends_on", "CAD-B", "CAD-A")
    assert hits(design, "CAD-A", depth=32) == [("CAD-B@1", 1)]


def test_several_ways_count_once_at_their_shortest(stack):
    with stack.change() as change:
        change.link("uses", "ASM-DRONE", "CAD-BOLT")
    assert ("ASM-DRONE@1", 1) in hits(stack, "CAD-BOLT")
    assert len(hits(stack, "CAD-BOLT")) == 3


def test_the_hits_are_bounded_and_say_so(stack):
    with stack.view() as view:
        found = impact(view, "CAD-BOLT", limit=2)
    assert (len(found.hits), found.truncated) == (2, True)


def test_earlier_revisions_pass_no_impact_on(stack):
    stack.define("assembly", "Rig", {"uses": "no bracket any more"})
    assert hits(stack, "CAD-BOLT") == [("CAD-BRACKET@1", 1)]


def test_replaced_records_pass_no_impact_on(verified):
    with verified.view() as view:
        old = what_verifies(view, "CS-BRACKET")[1]
    for node in old:
        verified.evidence({"max_von_mises_mpa": 1.0}, supersedes=node.node_id)
    assert {ref for ref, _ in hits(verified, "CAD-BRACKET")}.isdisjoint(node.node_id for node in old)


def test_an_impact_names_the_requirements_whose_verification_it_touches(verified):
    with verified.view() as view:
        assert impact(view, "CAD-BRACKET").requirements == ("CS-BRACKET#finish", "CS-BRACKET#stress")


def test_drafts_count_for_their_run_alone(stack, start_run):
    run_id = start_run("run-1")
    with stack.change(run_id) as change:
        lid = change.define("cad_model", "Lid", {})
        change.link("uses", lid, "CAD-BOLT")
    assert ("CAD-LID@1", 1) in hits(stack, "CAD-BOLT", run_id=run_id)
    assert ("CAD-LID@1", 1) not in hits(stack, "CAD-BOLT")


def test_a_thread_shows_the_exact_revisions_that_were_linked(verified):
    part = verified.part(0.3)
    with verified.view() as view:
        thread = thread_for(view, "CAD-BRACKET", direction="incoming", depth=1)
    assert thread.root.node_id == part.node_id
    assert {edge.target_ref for edge in thread.edges} == {"CAD-BRACKET@1"}
    assert all(edge.suspect for edge in thread.edges)
    told = thread.as_json()
    ids = {node["node_id"] for node in told["nodes"]}
    assert {edge[side] for edge in told["edges"] for side in ("source_id", "target_id")} <= ids
    assert told["root_id"] == part.node_id


def test_a_thread_keeps_to_the_types_it_was_asked_for(verified):
    with verified.view() as view:
        thread = thread_for(view, "NEED-CARRY-THE-CAMERA", 3, ("implements",), "both")
    assert [node.ref for node in thread.nodes] == ["NEED-CARRY-THE-CAMERA@1", "CS-BRACKET@1"]


def test_a_thread_goes_both_ways(stack):
    with stack.view() as view:
        thread = thread_for(view, "ASM-RIG", 1, direction="both")
    assert [node.ref for node in thread.nodes] == ["ASM-RIG@1", "CAD-BRACKET@1", "ASM-DRONE@1"]


def test_where_a_part_is_used_leaves_evidence_out(stack):
    stack.evidence({"finding": "no burr"}, against=("CAD-BOLT",))
    with stack.view() as view:
        thread, users = where_used(view, "CAD-BOLT", 2)
    assert [node.ref for node in users] == ["CAD-BRACKET@1", "ASM-RIG@1"]
    assert len(thread.nodes) == 4


def test_what_verifies_a_requirement_and_a_part(verified):
    with verified.view() as view:
        of_set, of_part = (what_verifies(view, ref)[1] for ref in ("CS-BRACKET", "CAD-BRACKET"))
    assert len(of_set) == len(of_part) == 2
    assert {node.kind for node in of_set} == {"evidence"}


@pytest.mark.parametrize(("walk", "depth"), [(thread_for, 11), (where_used, 6), (what_verifies, 0), (impact, 0)])
def test_depths_out_of_range_are_refused(stack, walk, depth):
    with pytest.raises(ToolError, match="is outside 1 to"), stack.view() as view:
        walk(view, "CAD-BOLT", depth=depth)


def test_an_unknown_start_names_what_there_is(stack):
    with pytest.raises(ToolError) as caught, stack.view() as view:
        impact(view, "CAD-BOTL")
    assert "CAD-BOLT" in caught.value.fix

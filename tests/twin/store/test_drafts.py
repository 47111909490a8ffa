"""Drafts of runs: who sees them, and how their change set ends."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from metaforge.core.errors import ToolError
from metaforge.twin.model import ChangeKind, Node, Reader, Run, Status
from metaforge.twin.store import TwinStore

Start = Callable[[str], str]


def define(twin: TwinStore, project_id: str, name: str, run_id: str = "", mass_g: float = 1, **more: str) -> Node:
    with twin.change(author="agent", run_id=run_id, project_id=project_id) as change:
        return change.define("cad_model", name, {"mass_g": mass_g}, **more)


def current(twin: TwinStore, project_id: str, key: str, run_id: str = "") -> str:
    with twin.read(Reader(run_id, project_id)) as view:
        return view[key].ref


def close(twin: TwinStore, run_id: str, decision: str, **more: str) -> tuple[Node, ...]:
    with twin.change(author="reviewer") as change:
        return change.close_run(run_id, decision, **more)


def test_a_definition_in_a_run_is_a_draft_that_only_the_run_reads(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    define(twin, project_id, "Leg")
    start_run("r1")
    start_run("r2")

    draft = define(twin, project_id, "Leg", "r1")

    assert (draft.ref, draft.status, draft.change_set, draft.phase, draft.gate, draft.run_id) == (
        "CAD-LEG@2", Status.DRAFT, "r1", "concept", "G1", "r1",
    )  # fmt: skip
    assert current(twin, project_id, "CAD-LEG", "r1") == "CAD-LEG@2"
    assert current(twin, project_id, "CAD-LEG") == current(twin, project_id, "CAD-LEG", "r2") == "CAD-LEG@1"
    for reader in (Reader("", project_id), Reader("r2", project_id)):
        with twin.read(reader) as view:
            assert [node.revision for node in view.history("CAD-LEG").revisions] == [1]
            assert view.find("cad_model", "revision", 2) == []
            assert [node.ref for node in view.current_nodes()] == ["CAD-LEG@1"]
            for ref in (draft.node_id, "CAD-LEG@2"):
                with pytest.raises(ToolError):
                    view[ref]
    with twin.read(Reader("r1", project_id)) as view:
        history = view.history(draft.node_id)
        assert history.current == draft
        assert history.item.head_ref == "CAD-LEG@1"
        assert history.item.draft is not None
        assert (history.item.draft.base_revision, history.item.draft.revision) == (1, 2)
        assert [node.ref for node in view.current_nodes()] == ["CAD-LEG@2"]
        assert [node.ref for node in view.find("cad_model", "name", "Leg")] == ["CAD-LEG@2"]


def test_an_item_of_drafts_alone_does_not_exist_for_others(twin: TwinStore, project_id: str, start_run: Start) -> None:
    start_run("r1")
    define(twin, project_id, "Leg", "r1")
    with twin.read(Reader("", project_id)) as view:
        assert list(view.items()) == []
        assert view.find_item("CAD-LEG") is None
        with pytest.raises(ToolError, match="no item CAD-LEG"):
            view.history("CAD-LEG")
    with twin.read(Reader("r1", project_id)) as view:
        assert [(item.key, item.head_ref) for item in view.items()] == [("CAD-LEG", None)]


def test_approval_moves_every_head_at_once_and_says_who_decided(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    define(twin, project_id, "Leg")
    start_run("r1")
    define(twin, project_id, "Leg", "r1", mass_g=2)
    define(twin, project_id, "Arm", "r1")
    with twin.change(author="agent", run_id="r1") as change:
        link = change.link("depends_on", "CAD-ARM", "CAD-LEG")
    with twin.read(Reader("", project_id)) as view:
        assert view.links() == []

    approved = close(twin, "r1", "approve", reason="looks right", state="completed")

    assert {node.ref for node in approved} == {"CAD-LEG@2", "CAD-ARM@1"}
    assert {(node.status, node.decided_by, node.status_reason, node.gate) for node in approved} == {
        (Status.APPROVED, "reviewer", "looks right", "G1")
    }
    assert all(node.approved_at and node.author == "agent" for node in approved)
    with twin.read(Reader("", project_id)) as view:
        assert (view["CAD-LEG"].ref, view["CAD-ARM"].ref) == ("CAD-LEG@2", "CAD-ARM@1")
        assert [found.link_id for found in view.links()] == [link.link_id]
        assert view.run("r1") == Run("r1", project_id, "completed", "flow-1", True, "concept", "G1")
        assert view.drafts("r1") == []
        kinds = [entry.kind for entry in view.changes(project_id=project_id)]
    assert kinds[-4:].count(ChangeKind.APPROVE) == 2
    assert kinds[-1] is ChangeKind.CLOSE


def test_later_drafts_of_a_run_replace_earlier_ones_and_numbers_are_never_reused(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    start_run("r1")
    first, second = define(twin, project_id, "Leg", "r1"), define(twin, project_id, "Leg", "r1")
    assert (second.ref, second.prior_node_id) == ("CAD-LEG@2", first.node_id)
    close(twin, "r1", "approve")
    with twin.read(Reader("", project_id)) as view:
        revisions = view.history("CAD-LEG").revisions
    assert [(node.revision, node.status) for node in revisions] == [(1, "abandoned"), (2, "approved")]
    assert revisions[0].status_reason == "replaced by a later draft of the run"
    assert define(twin, project_id, "Leg").ref == "CAD-LEG@3"


@pytest.mark.parametrize(("decision", "status"), [("reject", "rejected"), ("abandon", "abandoned")])
def test_a_closed_draft_stays_readable_and_the_head_where_it_was(
    twin: TwinStore, project_id: str, start_run: Start, decision: str, status: str
) -> None:
    define(twin, project_id, "Leg")
    start_run("r1")
    define(twin, project_id, "Leg", "r1")
    define(twin, project_id, "Arm", "r1")

    close(twin, "r1", decision, reason="too heavy", state="failed")

    with twin.read(Reader("", project_id)) as view:
        closed = view["CAD-LEG@2"]
        assert (closed.status, closed.status_reason, closed.decided_by) == (status, "too heavy", "reviewer")
        assert view["CAD-LEG"].ref == "CAD-LEG@1"
        assert [node.status for node in view.history("CAD-ARM").revisions] == [status]
        with pytest.raises(ToolError, match="no approved revision of CAD-ARM"):
            view["CAD-ARM"]
    assert define(twin, project_id, "Leg").ref == "CAD-LEG@3"
    assert define(twin, project_id, "Arm").ref == "CAD-ARM@2"


def test_a_head_that_moved_since_refuses_the_whole_change_set(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    define(twin, project_id, "Leg")
    start_run("r1")
    define(twin, project_id, "Leg", "r1")
    define(twin, project_id, "Arm", "r1")
    define(twin, project_id, "Leg")

    with pytest.raises(ToolError, match="CAD-LEG@2 was drafted from CAD-LEG@1, the head is CAD-LEG@3 now") as caught:
        close(twin, "r1", "approve")

    assert caught.value.kind == "PATCH_CONFLICT"
    assert [each["item_key"] for each in caught.value.data["conflicts"]] == ["CAD-LEG"]
    assert current(twin, project_id, "CAD-LEG", "r1") == "CAD-LEG@2"
    with twin.read(Reader("", project_id)) as view:
        assert view.find_item("CAD-ARM") is None

    # What the error says to do mends it.
    assert define(twin, project_id, "Leg", "r1", item_key="CAD-LEG@3").ref == "CAD-LEG@4"
    assert {node.ref for node in close(twin, "r1", "approve")} == {"CAD-LEG@4", "CAD-ARM@1"}


def test_of_two_runs_that_draft_one_new_item_the_second_is_refused(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    for run_id in (start_run("r1"), start_run("r2")):
        define(twin, project_id, "Leg", run_id)
    assert current(twin, project_id, "CAD-LEG", "r1") == "CAD-LEG@1"
    assert current(twin, project_id, "CAD-LEG", "r2") == "CAD-LEG@2"
    close(twin, "r1", "approve")
    with pytest.raises(ToolError, match="CAD-LEG@2 was drafted from no revision, the head is CAD-LEG@1 now"):
        close(twin, "r2", "approve")


def test_in_a_run_a_pin_means_its_draft_or_the_head(twin: TwinStore, project_id: str, start_run: Start) -> None:
    define(twin, project_id, "Leg")
    start_run("r1")
    assert define(twin, project_id, "Leg", "r1", item_key="CAD-LEG@1").ref == "CAD-LEG@2"
    assert define(twin, project_id, "Leg", "r1", item_key="CAD-LEG@2").ref == "CAD-LEG@3"
    with pytest.raises(ToolError, match="CAD-LEG@2 is not what CAD-LEG is now: that is CAD-LEG@3"):
        define(twin, project_id, "Leg", "r1", item_key="CAD-LEG@2")
    assert define(twin, project_id, "Leg", item_key="CAD-LEG@1").ref == "CAD-LEG@4"


def test_a_run_writes_into_its_own_project_only_while_it_runs(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    start_run("r1")
    assert define(twin, "", "Leg", "r1").project_id == project_id
    with twin.change(author="owner") as change:
        other = change.create_project("Rover").project_id
        change.put_run(replace(Run("r1", project_id, "failed")))
    for run_id, project, kind in (
        ("r1", other, "run_other_project"),
        ("r1", "", "run_closed"),
        ("r9", "", "unknown_run"),
    ):
        with pytest.raises(ToolError) as caught:
            define(twin, project, "Leg", run_id)
        assert caught.value.kind == kind
    with pytest.raises(ToolError, match="no run 'r9'"):
        close(twin, "r9", "approve")


def test_records_of_a_run_are_everybodys_at_once_and_name_it(
    twin: TwinStore, project_id: str, start_run: Start
) -> None:
    start_run("r1")
    with twin.change(author="agent", run_id="r1") as change:
        made = change.record("evidence", {"result": 1.0}, name="FEA")
    with twin.read(Reader("", project_id)) as view:
        assert view.node(made.node_id) == made
    assert (made.status, made.run_id, made.phase, made.project_id) == (Status.COMMITTED, "r1", "concept", project_id)


def test_an_approved_change_set_can_be_followed_by_another(twin: TwinStore, project_id: str, start_run: Start) -> None:
    start_run("r1")
    define(twin, project_id, "Leg", "r1")
    close(twin, "r1", "approve")
    define(twin, project_id, "Leg", "r1")
    assert [node.ref for node in close(twin, "r1", "approve")] == ["CAD-LEG@2"]
    assert close(twin, "r1", "approve") == ()

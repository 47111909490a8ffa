"""Runs, and how their change sets end: every head moves at once, or none does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metaforge.core.counts import counted
from metaforge.core.errors import FailureMode, ToolError
from metaforge.twin import rows
from metaforge.twin.bodies import check_text
from metaforge.twin.model import ChangeKind, Decision, Draft, Node, Run, Status
from metaforge.twin.refs import match_key

if TYPE_CHECKING:
    from metaforge.twin.change import Change

_CLOSED_AS = {Decision.REJECT: Status.REJECTED, Decision.ABANDON: Status.ABANDONED}


def put_run(change: "Change", run: Run) -> None:
    """Register a run or its state; see `Change.put_run`."""
    change.transaction.run(
        f"insert into runs ({rows.RUN_COLUMNS}, created_at, updated_at) "
        "values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (run_id) do update set state = excluded.state, "
        "flow_version = excluded.flow_version, flow_approved = excluded.flow_approved, phase = excluded.phase, "
        "gate = excluded.gate, updated_at = excluded.updated_at",
        run.run_id, run.project_id, run.state, run.flow_version, int(run.flow_approved), run.phase, run.gate,
        change.now, change.now,
    )  # fmt: skip
    told = {"state": run.state, "phase": run.phase, "gate": run.gate}
    change.log(ChangeKind.RUN, ref=run.run_id, body=told, project_id=run.project_id)


def close_run(
    change: "Change", run_id: str, decision: Decision, gate: str, reason: str, state: str
) -> tuple[Node, ...]:
    """Close a run's change set; see `Change.close_run`."""
    run = change.view.run(run_id)
    if run is None:
        raise ToolError(f"There is no run {run_id[:120]!r}", kind="unknown_run")
    change.claim(run.project_id)
    gate, reason = gate or run.gate, check_text(reason or change.reason, "The reason")
    drafts = change.view.drafts(run_id)
    if decision is Decision.APPROVE:
        _refuse_moved_heads(change, run_id, drafts)
        for draft in drafts:
            _approve(change, run, draft, gate, reason)
        _close_nodes(change, run, Status.ABANDONED, ChangeKind.ABANDON, "replaced by a later draft of the run", gate)
    else:
        kind = ChangeKind.REJECT if decision is Decision.REJECT else ChangeKind.ABANDON
        _close_nodes(change, run, _CLOSED_AS[decision], kind, reason, gate)
    change.transaction.run("delete from drafts where run_id = ?", run_id)
    if state:
        change.transaction.run("update runs set state = ?, updated_at = ? where run_id = ?", state, change.now, run_id)
    nodes = change.view.nodes([draft.node_id for draft in drafts])
    closed = tuple(nodes[draft.node_id] for draft in drafts)
    change.log(
        ChangeKind.CLOSE, ref=run_id, project_id=run.project_id,
        body={"decision": decision, "reason": reason, "gate": gate, "state": state or run.state,
              "refs": [node.ref for node in closed]},
    )  # fmt: skip
    return closed


def _refuse_moved_heads(change: "Change", run_id: str, drafts: Sequence[Draft]) -> None:
    conflicts = []
    for draft in drafts:
        row = change.transaction.row(
            "select key, head_revision, head_node_id from items where item_id = ?" + _for_update(change), draft.item_id
        )
        key, head_revision, head_node_id = row or ("", None, None)
        if head_node_id != draft.base_node_id:
            base = f"{key}@{draft.base_revision}" if draft.base_revision else "no revision"
            conflicts.append({"item_key": key, "base_ref": base, "head_ref": f"{key}@{head_revision}",
                              "draft_ref": f"{key}@{draft.revision}"})  # fmt: skip
    if not conflicts:
        return
    told = "; ".join(f"{each['draft_ref']} was drafted from {each['base_ref']}, the head is {each['head_ref']} now"
                     for each in conflicts[:8])  # fmt: skip
    keys = ", ".join(str(each["head_ref"]) for each in conflicts[:8])
    raise ToolError(
        f"Run {run_id} cannot be approved: {len(conflicts)} of its {counted(len(drafts), 'draft')} "
        f"{'rests' if len(conflicts) == 1 else 'rest'} on a head that has moved. "
        f"{told}",
        kind="PATCH_CONFLICT",
        fix=f"In the run, draft again with item_key set to the present head ({keys}), then ask for approval",
        failure_mode=FailureMode.DESIGN,
        conflicts=conflicts,
    )


def _approve(change: "Change", run: Run, draft: Draft, gate: str, reason: str) -> None:
    node = change.transaction.row("select name, kind, item_key from nodes where node_id = ?", draft.node_id)
    assert node is not None, "a foreign key keeps the draft's node"
    name, kind, key = node
    change.transaction.run(
        "update nodes set status = 'approved', decided_by = ?, approved_at = ?, gate = ?, status_reason = ?, "
        "closed_at = ? where node_id = ?",
        change.author, change.now, gate, reason, change.now, draft.node_id,
    )  # fmt: skip
    change.transaction.run(
        "update items set head_revision = ?, head_node_id = ?, name = ?, match_key = ?, kind = ?, updated_at = ? "
        "where item_id = ?",
        draft.revision, draft.node_id, name, match_key(name), kind, change.now, draft.item_id,
    )  # fmt: skip
    change.log(
        ChangeKind.APPROVE, ref=f"{key}@{draft.revision}", node_id=draft.node_id, project_id=run.project_id,
        body={"kind": kind, "replaced": draft.base_node_id or "", "change_set": run.run_id},
    )  # fmt: skip
    if change.transaction.run("update links set change_set = '' where source_node_id = ?", draft.node_id):
        change.log(ChangeKind.SHOW_LINKS, node_id=draft.node_id, project_id=run.project_id)


def _close_nodes(change: "Change", run: Run, status: Status, kind: ChangeKind, reason: str, gate: str) -> None:
    """Close every draft of the run that is still open, those included that a later draft replaced."""
    query = "select node_id, item_key, revision from nodes where change_set = ? and status = 'draft' order by node_id"
    for node_id, key, revision in change.transaction.rows(query, run.run_id):
        change.transaction.run(
            "update nodes set status = ?, status_reason = ?, gate = ?, decided_by = ?, closed_at = ? where node_id = ?",
            status, reason, gate, change.author, change.now, node_id,
        )  # fmt: skip
        change.log(kind, ref=f"{key}@{revision}", node_id=node_id, body={"change_set": run.run_id},
                   project_id=run.project_id)  # fmt: skip


def _for_update(change: "Change") -> str:
    return " for update" if change.transaction.postgres else ""

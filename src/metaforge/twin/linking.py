"""Write links, pinned to what they were made against, and the marks of those who looked at them again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import rows
from metaforge.twin.bodies import check_text, dump
from metaforge.twin.ids import new_id
from metaforge.twin.model import ChangeKind, Link, Node, Status

if TYPE_CHECKING:
    from metaforge.twin.change import Change

_INSERT = f"insert into links ({rows.LINK_COLUMNS}) values ({', '.join('?' * (rows.LINK_COLUMNS.count(',') + 1))})"


def link(change: "Change", type: str, source: Node | str, target: Node | str, body: Mapping[str, Any]) -> Link:
    """Write a link; see `Change.link`."""
    start = change.view[source] if isinstance(source, str) else source
    end = change.view[target] if isinstance(target, str) else target
    change_set = start.change_set if start.status is not Status.COMMITTED and start.status != Status.APPROVED else ""
    content = dump(body, f"The link {type}").decode()
    same = change.transaction.row(
        f"select {rows.LINK_COLUMNS} from links where source_node_id = ? and target_node_id = ? and type = ? "
        "and body = ?",
        start.node_id, end.node_id, type, content,
    )  # fmt: skip
    if same is not None:
        return rows.link_of(same)
    made = Link(
        new_id("l"), start.project_id or change.project_id, check_text(type, "The link's type"),
        start.node_id, start.subject, start.revision, end.node_id, end.subject, end.revision,
        change_set, body=body, author=change.author, run_id=change.run_id, created_at=change.now,
    )  # fmt: skip
    change.transaction.run(
        _INSERT,
        made.link_id, made.project_id, made.type, made.source_node_id, made.source_subject, made.source_revision,
        made.target_node_id, made.target_subject, made.target_revision, made.change_set, None, "", "",
        content, made.author, made.run_id, made.created_at,
    )  # fmt: skip
    told = {"type": type, "target_node_id": end.node_id, "change_set": change_set}
    change.log(ChangeKind.LINK, ref=made.link_id, node_id=start.node_id, body=told, project_id=made.project_id)
    return made


def review(change: "Change", link_id: str, revision: int | None) -> Link:
    """Mark a link as looked at again; see `Change.review`."""
    found = change.view.link(link_id)
    item = change.view.item_by_id(found.target_subject)
    if item is None or item.head_revision is None:
        raise ToolError(
            f"Link {link_id} ends at a record, which has no revisions: there is nothing to review",
            kind="nothing_to_review",
        )
    revision = item.head_revision if revision is None else revision
    pinned = found.target_revision or 0
    if not pinned <= revision <= item.head_revision:
        raise ToolError(
            f"Link {link_id} is pinned to {item.key}@{pinned} and its head is {item.head_ref}: "
            f"@{revision} is not between them",
            kind="unknown_revision", fix=f"Review against {item.head_ref}",
        )  # fmt: skip
    change.transaction.run(
        "update links set reviewed_revision = ?, reviewed_by = ?, reviewed_at = ? where link_id = ?",
        revision, change.author, change.now, link_id,
    )  # fmt: skip
    change.log(
        ChangeKind.REVIEW, ref=link_id, node_id=found.source_node_id,
        body={"reviewed_revision": revision, "reason": change.reason}, project_id=found.project_id,
    )  # fmt: skip
    return replace(found, reviewed_revision=revision, reviewed_by=change.author, reviewed_at=change.now)

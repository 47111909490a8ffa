"""Which item a definition revises: item_key, then supersedes, then its name, then nodes older than items, else new."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import rows
from metaforge.twin.adoption import adopt, legacy_tip
from metaforge.twin.ids import new_id
from metaforge.twin.kinds import DEFINITIONS, DefinitionKind
from metaforge.twin.model import Item, Node
from metaforge.twin.refs import ItemRef, derive_key, match_key, names_key, numbered_key, parse_ref
from metaforge.twin.unknown import unknown_item

if TYPE_CHECKING:
    from metaforge.twin.change import Change


@dataclass(frozen=True)
class Resolved:
    """The item a definition revises, or None for a node of no item.

    Attributes:
        item: with `last_revision` 0 where it is new; it is in the table already.
        prior_node_id: what the node supersedes where there is no head.
        rebase: whether the caller named the head rather than its own draft, so that a draft rests on it from now on.
    """

    item: Item | None
    prior_node_id: str = ""
    rebase: bool = False


def resolve(change: "Change", definition: DefinitionKind, name: str, item_key: str, supersedes: str) -> Resolved:
    """Settle which item a definition revises, and make it where it is new.

    Raises:
        ToolError: the item is of another kind, the revision stale, or what is named does not exist.
    """
    prior = change.view[supersedes] if supersedes else None
    if prior is not None:
        _refuse_other_family(definition, prior.kind, supersedes)
    if item_key:
        return _by_key(change, definition, name, parse_ref(item_key), prior)
    if prior is not None and prior.item_id:
        item = _locked(change, "item_id = ?", prior.item_id)[0]
        _refuse_other_project(change, item)
        return Resolved(item)
    if not change.project_id:
        return Resolved(None, prior.node_id if prior else "")
    if prior is None and (same := _by_name(change, definition, name)):
        return Resolved(same)
    tip = prior or legacy_tip(change, definition, name)
    item = _create(change, definition, name, _free_key(change, definition, name))
    return Resolved(adopt(change, item, tip) if tip else item)


def _by_key(change: "Change", definition: DefinitionKind, name: str, ref: ItemRef, prior: Node | None) -> Resolved:
    item = _item_with_key(change, ref.key)
    if item is None:
        if ref.revision is not None:
            raise unknown_item(change.view, ref.key)
        if prior is not None and prior.item_id:
            raise ToolError(
                f"No item has the key {ref.key}, and {prior.ref} belongs to {prior.item_key}",
                kind="conflicting_identity", fix=f"Give item_key {prior.item_key}, or leave supersedes out",
            )  # fmt: skip
        _refuse_second(change, definition)
        item = _create(change, definition, name, ref.key)
        return Resolved(adopt(change, item, prior) if prior else item)
    _refuse_other_family(definition, item.kind, item.key)
    if prior is not None and prior.item_id != item.item_id:
        raise ToolError(
            f"item_key names {item.key}, and supersedes names {prior.ref}, which is not a revision of it",
            kind="conflicting_identity", fix="Give one of the two",
        )  # fmt: skip
    return Resolved(item, rebase=_judge_pin(item, ref))


def _judge_pin(item: Item, ref: ItemRef) -> bool:
    """Refuse a stale KEY@n; return whether it names the head where this caller has a draft of its own."""
    if ref.revision is None:
        return False
    if item.draft is not None and ref.revision == item.draft.revision:
        return False
    if ref.revision == item.head_revision:
        return True
    now = f"{item.key}@{item.current_revision}" if item.current_revision else "only drafts of other runs"
    raise ToolError(
        f"{ref} is not what {item.key} is now: that is {now}",
        kind="stale_revision", where="item_key",
        fix=f"Read {now} (twin.get_node, item_key {now}), make the change from it, and give item_key {now}"
        if item.current_revision else f"Give item_key {item.key} without a revision",
        current_ref=now if item.current_revision else "",
    )  # fmt: skip


def _by_name(change: "Change", definition: DefinitionKind, name: str) -> Item | None:
    """Return the project's item of this family with this name, or with the key that exactly this name gives."""
    if definition.single:
        found = _locked(change, "project_id = ? and family = ?", change.project_id, definition.family)
        return found[0] if found else None
    found = _locked(
        change, "project_id = ? and family = ? and match_key = ?", change.project_id, definition.family, match_key(name)
    )
    if found:
        return next((item for item in found if item.name == name), found[0])
    for prefix in dict.fromkeys(each.prefix for each in DEFINITIONS.values() if each.family == definition.family):
        key = derive_key(prefix, name)
        if names_key(prefix, name, key):
            same = _locked(
                change, "key = ? and project_id = ? and family = ?", key, change.project_id, definition.family
            )
            if same:
                return same[0]
    return None


def _item_with_key(change: "Change", key: str) -> Item | None:
    """Return the item with a key, seen or not: two runs that draft one new item draft the same."""
    if change.project_id:
        found = _locked(change, "key = ? and project_id = ?", key, change.project_id)
        return found[0] if found else None
    seen = change.view.find_item(key)  # refuses a key that several projects have
    if seen is not None:
        change.claim(seen.project_id)
        return _locked(change, "item_id = ?", seen.item_id)[0]
    found = _locked(change, "key = ? and project_id = ''", key)
    return found[0] if found else None


def _locked(change: "Change", condition: str, *values: Any) -> list[Item]:
    """Return items, oldest first, kept for this change until it ends."""
    tail = " order by created_at, item_id" + (" for update" if change.transaction.postgres else "")
    found = change.transaction.rows(f"select {rows.ITEM_COLUMNS} from items where {condition}{tail}", *values)
    return [_with_draft(change, row) for row in found]


def _with_draft(change: "Change", row: Sequence[Any]) -> Item:
    item = rows.item_of(tuple(row))
    if not change.run_id:
        return item
    found = change.transaction.row(
        f"select {rows.DRAFT_COLUMNS} from drafts where run_id = ? and item_id = ?", change.run_id, item.item_id
    )
    return replace(item, draft=rows.draft_of(found)) if found else item


def _free_key(change: "Change", definition: DefinitionKind, name: str) -> str:
    base = derive_key(definition.prefix, name)
    query = "select key from items where project_id = ? and (key = ? or key like ?)"
    taken = {row[0] for row in change.transaction.rows(query, change.project_id, base, f"{base}-%")}
    return numbered_key(base, taken)


def _create(change: "Change", definition: DefinitionKind, name: str, key: str) -> Item:
    item = Item(
        new_id("i"), key, definition.kind, definition.family, name, change.project_id, None, None, 0, change.now,
        change.now,
    )  # fmt: skip
    change.transaction.run(
        f"insert into items ({rows.ITEM_COLUMNS}, match_key) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        item.item_id, key, item.kind, item.family, name, item.project_id, None, None, 0, change.now, change.now,
        match_key(name),
    )  # fmt: skip
    return item


def _refuse_second(change: "Change", definition: DefinitionKind) -> None:
    if definition.single and change.project_id and (there := _by_name(change, definition, "")):
        raise ToolError(
            f"Project {change.project_id} has its one {definition.kind} already: {there.key}",
            kind="second_of_a_single_kind", fix=f"Leave item_key out, or give {there.key}",
        )  # fmt: skip


def _refuse_other_family(definition: DefinitionKind, kind: str, what: str) -> None:
    known = DEFINITIONS.get(kind)
    if known is None or known.family != definition.family:
        raise ToolError(
            f"{what} is a {kind} and cannot be revised by a {definition.kind}", kind="other_kind",
            fix="Name an item of the same kind, or leave item_key and supersedes out for a new one",
        )  # fmt: skip


def _refuse_other_project(change: "Change", item: Item) -> None:
    if change.project_id and item.project_id != change.project_id:
        raise ToolError(
            f"{item.key} belongs to project {item.project_id or '(none)'}, not to {change.project_id}",
            kind="other_project", fix="Write in its project, or leave supersedes out",
        )  # fmt: skip

"""What a reader sees of the design record: one state of it, in the reader's run and project."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from metaforge.core.errors import ToolError
from metaforge.store.blobs import Blobs
from metaforge.store.transaction import Transaction
from metaforge.twin import rows
from metaforge.twin.model import ChangeEntry, Draft, History, Item, Link, Node, Project, Reader, Run
from metaforge.twin.refs import is_ref, parse_ref
from metaforge.twin.search import find
from metaforge.twin.unknown import unknown_item, unknown_node, unknown_revision

MAX_LIMIT = 1000
VISIBLE = "(status <> 'draft' or change_set = ?)"
"""The condition on `nodes` that every read obeys; its value is the reader's run."""

Direction = Literal["outgoing", "incoming", "both"]


class View:
    """One state of the design record. Good while the block that made it lasts, for its thread.

    Attributes:
        reader: whose eyes these are.
        transaction: for queries of one's own: portable SQL with `?`; mind VISIBLE.
    """

    def __init__(self, transaction: Transaction, blobs: Blobs, reader: Reader) -> None:
        self.transaction = transaction
        self.reader = reader
        self._blobs = blobs

    def of_project(self, project_id: str) -> "View":
        """Return the same state as the same run reads it in another project."""
        return View(self.transaction, self._blobs, Reader(self.reader.run_id, project_id))

    # -- nodes and items -----------------------------------------------------------------------------------------

    def __getitem__(self, ref: str) -> Node:
        """Return what a reference names: KEY (what the reader reads as current), KEY@n, or a node id.

        Raises:
            ToolError: there is no such item, revision or node that the reader may see; the message names what is.
        """
        if not is_ref(ref):
            return self.node(ref)
        parsed = parse_ref(ref)
        return self.current(parsed.key) if parsed.revision is None else self.revision(parsed.key, parsed.revision)

    def node(self, node_id: str) -> Node:
        """Return a node by its id.

        Raises:
            ToolError: `unknown_node`: there is none, or it is another run's draft.
        """
        row = self.transaction.row(
            f"select {rows.NODE_COLUMNS} from nodes where node_id = ? and {VISIBLE}", node_id, self.reader.run_id
        )
        if row is None:
            raise unknown_node(node_id)
        return self.node_of(row)

    def nodes(self, node_ids: Sequence[str]) -> dict[str, Node]:
        """Return those of some nodes that the reader may see, by their ids."""
        found: dict[str, Node] = {}
        for start in range(0, len(node_ids), 500):
            part = node_ids[start : start + 500]
            marks = ", ".join("?" * len(part))
            query = f"select {rows.NODE_COLUMNS} from nodes where node_id in ({marks}) and {VISIBLE}"
            for row in self.transaction.rows(query, *part, self.reader.run_id):
                found[row[0]] = self.node_of(row)
        return found

    def item(self, key: str) -> Item:
        """Return an item by its key, in the reader's project, or in the one project that has it.

        Raises:
            ToolError: `unknown_item`, or `ambiguous_item_key` where several projects have it and the reader names none.
        """
        found = self.find_item(key)
        if found is None:
            raise unknown_item(self, key)
        return found

    def find_item(self, key: str) -> Item | None:
        """Return an item by its key, or None; raises ToolError where several projects have it."""
        project_id = self.reader.project_id
        query = f"select {rows.ITEM_COLUMNS} from items where key = ?"
        if project_id:
            found = self.transaction.rows(query + " and project_id = ?", key, project_id)
        else:
            found = self.transaction.rows(query + _OF_LIVING_PROJECTS, key)
        items = [item for row in found if self._sees(item := self._item(row))]
        if len(items) > 1:
            projects = ", ".join(sorted(item.project_id or "(no project)" for item in items)[:10])
            raise ToolError(
                f"{len(items)} projects have an item {key}: {projects}",
                kind="ambiguous_item_key", fix="Give project_id, or open the project first",
            )  # fmt: skip
        return items[0] if items else None

    def item_by_id(self, item_id: str) -> Item | None:
        """Return an item by its id, or None where the reader sees none."""
        row = self.transaction.row(f"select {rows.ITEM_COLUMNS} from items where item_id = ?", item_id)
        item = self._item(row) if row else None
        return item if item and self._sees(item) else None

    def items(self, kind: str = "") -> Iterator[Item]:
        """Yield the project's items that the reader sees, by key."""
        query = f"select {rows.ITEM_COLUMNS} from items where project_id = ? and (? = '' or kind = ?) "
        drafts = {draft.item_id: draft for draft in self.drafts()}
        found = self.transaction.rows(query, self.reader.project_id, kind, kind)
        for row in sorted(found, key=lambda row: row[1]):  # here: databases sort letters as their locale says
            item = rows.item_of(row, drafts.get(row[0]))
            if self._sees(item):
                yield item

    def current(self, key: str) -> Node:
        """Return what the reader reads as an item's current revision: its run's draft, else the head.

        Raises:
            ToolError: there is no such item, or only closed drafts of it.
        """
        item = self.item(key)
        if item.current_node_id is None:
            raise unknown_revision(self, item, None)
        return self.node(item.current_node_id)

    def revision(self, key: str, revision: int) -> Node:
        """Return one revision of an item.

        Raises:
            ToolError: `unknown_item` or `unknown_revision`; the message names the revisions there are.
        """
        item = self.item(key)
        row = self.transaction.row(
            f"select {rows.NODE_COLUMNS} from nodes where item_id = ? and revision = ? and {VISIBLE}",
            item.item_id, revision, self.reader.run_id,
        )  # fmt: skip
        if row is None:
            raise unknown_revision(self, item, revision)
        return self.node_of(row)

    def history(self, key_or_node_id: str) -> History:
        """Return an item with the revisions that the reader may see: its own open drafts, no other run's, all closed.

        Args:
            key_or_node_id: KEY, KEY@n, or the node id of any of its revisions.

        Raises:
            ToolError: `unknown_item`, or `no_item` for a node that is no revision of one.
        """
        if is_ref(key_or_node_id):
            item = self.item(parse_ref(key_or_node_id).key)
        else:
            node = self.node(key_or_node_id)
            found = self.item_by_id(node.item_id) if node.item_id else None
            if found is None:
                raise ToolError(
                    f"Node {node.node_id} is a {node.kind} and no revision of an item: it has no history",
                    kind="no_item", fix="Give an item key such as CAD-BRACKET",
                )  # fmt: skip
            item = found
        query = f"select {rows.NODE_COLUMNS} from nodes where item_id = ? and {VISIBLE} order by revision"
        found_rows = self.transaction.rows(query, item.item_id, self.reader.run_id)
        return History(item, tuple(self.node_of(row) for row in found_rows))

    def find(self, node_type: str, property: str, value: Any, limit: int = 100) -> list[Node]:
        """Return nodes of a kind in which a property has a value, the latest first.

        Revisions are searched that the reader reads as current; records all.

        Args:
            node_type: the kind.
            property: `name`, `status`, `author`, `run_id`, `item_key`, `revision`, `phase` of the node, else a
                property of its body; dots lead into objects (`measured.mass_g`).
            value: a JSON value; numbers are compared as numbers, texts exactly.
            limit: 1 to 1000.
        """
        return list(find(self, node_type, property, value, min(max(limit, 1), MAX_LIMIT)))

    def current_nodes(self, kind: str = "") -> Iterator[Node]:
        """Yield every node of the project that this reader reads as current: heads or own drafts, and all records."""
        query = (
            f"select {rows.prefixed(rows.NODE_COLUMNS, 'nodes')} from nodes left join items "
            "on items.item_id = nodes.item_id left join drafts on drafts.item_id = nodes.item_id and drafts.run_id = ? "
            "where nodes.project_id = ? and (? = '' or nodes.kind = ?) and (nodes.item_id is null "
            "or nodes.node_id = coalesce(drafts.node_id, items.head_node_id)) order by nodes.node_id"
        )
        reader = self.reader
        for row in self.transaction.each(query, reader.run_id, reader.project_id, kind, kind):
            yield self.node_of(row)

    def latest_nodes(self, kind: str, count: int) -> list[Node]:
        """Return the revisions of a kind that everybody reads in the project, those written last first."""
        query = (
            f"select {rows.prefixed(rows.NODE_COLUMNS, 'nodes')} from nodes join items on items.head_node_id = "
            "nodes.node_id where nodes.project_id = ? and nodes.kind = ? order by nodes.node_id desc limit ?"
        )
        return [self.node_of(row) for row in self.transaction.rows(query, self.reader.project_id, kind, count)]

    # -- links ---------------------------------------------------------------------------------------------------

    def links(
        self, node_id: str = "", *, subject: str = "", type: str = "", direction: Direction = "both", limit: int = 0
    ) -> list[Link]:
        """Return links that the reader may see, oldest first.

        Args:
            node_id: of exactly this node; or
            subject: of every revision of an item (its id), or of a record; or neither: all links of the project.
            type: of this type only.
            direction: outgoing (the node is the source), incoming, or both.
            limit: at most this many, whichever are found first; 0 for all. A node may have very many.
        """
        column, value = ("node_id", node_id) if node_id else ("subject", subject)
        if not value:
            condition, values = "project_id = ?", [self.reader.project_id]
        elif direction == "both":
            condition, values = f"(source_{column} = ? or target_{column} = ?)", [value, value]
        else:
            condition, values = f"{'source' if direction == 'outgoing' else 'target'}_{column} = ?", [value]
        query = (
            f"select {rows.LINK_COLUMNS} from links where {condition} and change_set in ('', ?) "
            "and (? = '' or type = ?)" + (" limit ?" if limit else " order by created_at, link_id")
        )
        bound = (limit,) if limit else ()
        found = self.transaction.rows(query, *values, self.reader.run_id, type, type, *bound)
        return [rows.link_of(row) for row in found]

    def links_from(self, node_ids: Sequence[str]) -> dict[str, list[Link]]:
        """Return the outgoing links of each of some nodes, the oldest first."""
        found: dict[str, list[Link]] = {node_id: [] for node_id in node_ids}
        for start in range(0, len(node_ids), 500):
            part = node_ids[start : start + 500]
            query = (
                f"select {rows.LINK_COLUMNS} from links where source_node_id in ({', '.join('?' * len(part))}) "
                "and change_set in ('', ?) order by created_at, link_id"
            )
            for row in self.transaction.rows(query, *part, self.reader.run_id):
                link = rows.link_of(row)
                found[link.source_node_id].append(link)
        return found

    def link(self, link_id: str) -> Link:
        """Return one link.

        Raises:
            ToolError: `unknown_link`.
        """
        query = f"select {rows.LINK_COLUMNS} from links where link_id = ? and change_set in ('', ?)"
        row = self.transaction.row(query, link_id, self.reader.run_id)
        if row is None:
            raise ToolError(
                f"There is no link {link_id[:120]!r}",
                kind="unknown_link",
                fix="Give the link_id of a suspect link: twin.trace_matrix lists them",
            )
        return rows.link_of(row)

    # -- runs, projects, changes -----------------------------------------------------------------------------------

    def drafts(self, run_id: str = "") -> list[Draft]:
        """Return the open change set of a run, the reader's own by default."""
        query = f"select {rows.DRAFT_COLUMNS} from drafts where run_id = ? order by node_id"
        return [rows.draft_of(row) for row in self.transaction.rows(query, run_id or self.reader.run_id)]

    def run(self, run_id: str) -> Run | None:
        """Return a run, or None."""
        row = self.transaction.row(f"select {rows.RUN_COLUMNS} from runs where run_id = ?", run_id)
        return rows.run_of(row) if row else None

    def project(self, project_id: str) -> Project | None:
        """Return a project that was not deleted, or None."""
        query = f"select {rows.PROJECT_COLUMNS} from projects where project_id = ? and deleted_at = ''"
        row = self.transaction.row(query, project_id)
        return rows.project_of(row) if row else None

    def projects(self) -> list[Project]:
        """Return the projects that were not deleted, oldest first."""
        query = f"select {rows.PROJECT_COLUMNS} from projects where deleted_at = '' order by created_at, project_id"
        return [rows.project_of(row) for row in self.transaction.rows(query)]

    def seq(self, project_id: str | None = None) -> int:
        """Return the changelog's position: the last `seq` of a project, or of all where it is None."""
        if project_id is None:
            return int(self.transaction.value("select coalesce(max(seq), 0) from changelog"))
        return int(
            self.transaction.value("select coalesce(max(seq), 0) from changelog where project_id = ?", project_id)
        )

    def changes(self, after_seq: int = 0, *, project_id: str | None = None, limit: int = 1000) -> list[ChangeEntry]:
        """Return what was written after a position, in order; drafts of other runs included, by reference only."""
        where, values = ("seq > ?", [after_seq]) if project_id is None else (
            "project_id = ? and seq > ?", [project_id, after_seq],
        )  # fmt: skip
        query = f"select {rows.CHANGE_COLUMNS} from changelog where {where} order by seq limit ?"
        return [rows.change_of(row) for row in self.transaction.rows(query, *values, limit)]

    # -- inside --------------------------------------------------------------------------------------------------

    def node_of(self, row: Sequence[Any]) -> Node:
        """Return the node of a row of NODE_COLUMNS; raises ResourceUnreadable where its long body is damaged."""
        return rows.node_of(tuple(row), self._blobs)

    def _item(self, row: Sequence[Any]) -> Item:
        draft = None
        if self.reader.run_id:
            found = self.transaction.row(
                f"select {rows.DRAFT_COLUMNS} from drafts where run_id = ? and item_id = ?", self.reader.run_id, row[0]
            )
            draft = rows.draft_of(found) if found else None
        return rows.item_of(tuple(row), draft)

    def _sees(self, item: Item) -> bool:
        """An item of which there are only other runs' open drafts does not exist for this reader."""
        if item.current_node_id is not None:
            return True
        query = "select 1 from nodes where item_id = ? and status <> 'draft' limit 1"
        return self.transaction.row(query, item.item_id) is not None


_OF_LIVING_PROJECTS = (
    " and (project_id = '' or exists (select 1 from projects"
    " where projects.project_id = items.project_id and deleted_at = ''))"
)

"""Baselines: a project's approved state under a name, frozen, and what differs between two of them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import check_text
from metaforge.twin.ids import new_id
from metaforge.twin.model import ChangeKind

if TYPE_CHECKING:
    from metaforge.twin.change import Change
    from metaforge.twin.view import View

NOW = "now"
"""What stands for the present state wherever a baseline is named."""
MAX_NAME_CHARS = 100
_COLUMNS = "baseline_id, project_id, name, note, seq, digest, author, created_at"
_SHOWN_COUNT = 12


@dataclass(frozen=True)
class Baseline:
    """A named state of a project. `digest` is over its entries and the contents of their nodes."""

    baseline_id: str
    project_id: str
    name: str
    note: str
    seq: int
    digest: str
    author: str
    created_at: str
    item_count: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "name": self.name, "note": self.note, "item_count": self.item_count, "seq": self.seq,
            "digest": self.digest, "author": self.author, "created_at": self.created_at,
            "project_id": self.project_id, "baseline_id": self.baseline_id,
        }  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One item in a baseline, at the revision that was its head then."""

    item_key: str
    revision: int
    node_id: str
    name: str

    @property
    def ref(self) -> str:
        return f"{self.item_key}@{self.revision}"


@dataclass(frozen=True)
class State:
    """What a baseline holds, or the present: entries by key, and the changelog's position."""

    name: str
    seq: int
    entries: dict[str, Entry]
    baseline: Baseline | None = None


def create_baseline(change: "Change", name: str, note: str = "") -> Baseline:
    """Freeze the heads of all items of the change's project under a name; drafts are not part of it.

    Args:
        change: the change, in a project.
        name: one line, at most 100 characters, not used in the project before.
        note: why it was made.

    Raises:
        ToolError: `bad_baseline_name`, `baseline_exists`, `empty_baseline`, `no_project`.
    """
    name = check_text(name.strip(), "The baseline's name")
    _check_name(name)
    if not change.project_id:
        raise ToolError("A baseline belongs to a project", kind="no_project", fix="Give project_id")
    taken = [each.name for each in baselines(change.view)]
    if name in taken:
        raise ToolError(
            f"There is a baseline {name!r} already, and baselines never change", kind="baseline_exists",
            fix=f"Choose another name; taken are {', '.join(taken[-_SHOWN_COUNT:])}",
        )  # fmt: skip
    seq, made_id = change.view.seq(change.project_id), new_id("b")
    digest, count = _digest(change.view, _HEADS, change.project_id)
    if not count:
        raise ToolError(
            f"Project {change.project_id} has no approved items: there is nothing to freeze", kind="empty_baseline",
            fix="Record a definition first, or approve the run whose drafts it should hold",
        )  # fmt: skip
    made = Baseline(made_id, change.project_id, name, check_text(note, "The note"), seq, digest, change.author,
                    change.now, count)  # fmt: skip
    change.transaction.run(
        f"insert into baselines ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)",
        made_id, made.project_id, name, made.note, seq, digest, made.author, made.created_at,
    )  # fmt: skip
    change.transaction.run(
        "insert into baseline_entries (baseline_id, item_key, revision, node_id, name) "
        "select cast(? as varchar), key, head_revision, head_node_id, name from items "
        "where project_id = ? and head_node_id is not null",
        made_id, change.project_id,
    )  # fmt: skip
    change.log(ChangeKind.BASELINE, ref=name, body={"baseline_id": made_id, "digest": digest, "item_count": count})
    return made


def baselines(view: "View") -> list[Baseline]:
    """Return the baselines of the reader's project, the oldest first."""
    query = (
        f"select {_COLUMNS}, (select count(*) from baseline_entries entries "
        "where entries.baseline_id = baselines.baseline_id) from baselines where project_id = ? "
        "order by seq, created_at, baseline_id"
    )
    return [Baseline(*row) for row in view.transaction.rows(query, view.reader.project_id)]


def state(view: "View", name: str) -> State:
    """Return what a baseline holds, or the present where the name is `now`.

    Raises:
        ToolError: `unknown_baseline`; `baseline_damaged` where what is stored is not what was frozen.
    """
    project_id = view.reader.project_id
    if name == NOW:
        heads = view.transaction.rows(
            "select key, head_revision, head_node_id, name from items where project_id = ? "
            "and head_node_id is not null", project_id,
        )  # fmt: skip
        return State(NOW, view.seq(project_id), _entries(heads))
    there = {each.name: each for each in baselines(view)}
    if name not in there:
        raise ToolError(
            f"There is no baseline {name[:120]!r} in project {project_id}", kind="unknown_baseline",
            fix=f"There is {', '.join([*there][-_SHOWN_COUNT:])}, and {NOW} for the present" if there
            else "There are none yet: make one with metaforge twin baseline create NAME, or twin.create_baseline",
            did_you_mean=list(there),
        )  # fmt: skip
    found = there[name]
    digest, _ = _digest(view, _FROZEN, found.baseline_id)
    if digest != found.digest:
        raise ToolError(
            f"Baseline {name!r} is damaged: its {found.item_count} entries give the digest {digest[:16]}..., "
            f"frozen was {found.digest[:16]}...",
            kind="baseline_damaged", fix="Restore the store from a backup; trust no report made from this baseline",
        )  # fmt: skip
    rows = view.transaction.rows(
        "select item_key, revision, node_id, name from baseline_entries where baseline_id = ?", found.baseline_id
    )
    return State(name, found.seq, _entries(rows), found)


def _entries(rows: list[tuple[Any, ...]]) -> dict[str, Entry]:
    return {row[0]: Entry(*row) for row in sorted(rows)}


_HEADS = (
    "select items.key, items.head_revision, nodes.node_id, items.name, nodes.body, nodes.body_sha256 from items "
    "join nodes on nodes.node_id = items.head_node_id where items.project_id = ?"
)
_FROZEN = (
    "select entries.item_key, entries.revision, nodes.node_id, entries.name, nodes.body, nodes.body_sha256 "
    "from baseline_entries entries join nodes on nodes.node_id = entries.node_id where entries.baseline_id = ?"
)


def _digest(view: "View", query: str, value: str) -> tuple[str, int]:
    """Return SHA-256 over every entry, in the order of keys, and how many there are."""
    lines = sorted(_lines(view, query, value))
    return hashlib.sha256(b"".join(lines)).hexdigest(), len(lines)


def _lines(view: "View", query: str, value: str) -> Iterator[bytes]:
    for key, revision, node_id, name, body, body_sha256 in view.transaction.each(query, value):
        content = body_sha256 or hashlib.sha256(body.encode()).hexdigest()
        yield f"{key}@{revision}\t{node_id}\t{content}\t{name!r}\n".encode()


def _check_name(name: str) -> None:
    bad = not name or len(name) > MAX_NAME_CHARS or name == NOW or "@" in name or not name.isprintable()
    if bad:
        raise ToolError(
            f"{name[:120]!r} cannot be the name of a baseline", kind="bad_baseline_name",
            fix=f"Give one line of 1 to {MAX_NAME_CHARS} characters without '@', not {NOW!r}: for instance PDR-1",
        )  # fmt: skip

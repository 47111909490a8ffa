"""What a call would do to the design record: its tool runs for real in a change that is undone.

So a person sees exactly what would be written, and a call that the record would refuse is refused before anyone is
asked. Nothing stays but contents kept by digest, which no revision names.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from metaforge.tools.context import Invocation
from metaforge.twin.change import Change
from metaforge.twin.geometry import Measured
from metaforge.twin.measuring import Measurer
from metaforge.twin.model import ChangeEntry, ChangeKind, Node, Reader
from metaforge.twin.services import TwinServices, in_thread
from metaforge.twin.view import View

T = TypeVar("T")

MEASURED_BYTES = 16 << 20
"""Larger geometry is measured when it is committed, not while its approval is prepared."""
MEASURE_SECONDS = 20.0
_NODES = frozenset({ChangeKind.DEFINE, ChangeKind.DRAFT, ChangeKind.RECORD, ChangeKind.ADOPT, ChangeKind.APPROVE})
_QUIET = frozenset({ChangeKind.SESSION, ChangeKind.SHOW_LINKS})


@dataclass
class Recording:
    """What one rehearsed call would write.

    Attributes:
        now: what is there, by what it is about: an item's key, a project; None where there is nothing yet.
        after: what would be there, by the same names.
        pictures: SHA-256 digests of pictures of the geometry concerned.
        is_measured: whether geometry is measured and drawn, which takes seconds.
    """

    now: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    pictures: list[str] = field(default_factory=list)
    is_measured: bool = True


_RECORDING: ContextVar[Recording] = ContextVar("recording")


def record_into(recording: Recording) -> None:
    """Let calls of this task be recorded; for a task of its own."""
    _RECORDING.set(recording)


class _Undone(Exception):
    """Ends a change without a trace."""


class RehearsingServices(TwinServices):
    """The services of tools that are rehearsed: they read what is there and undo what they write."""

    async def change(
        self,
        ctx: Invocation,
        work: Callable[[Change], T],
        *,
        project_id: str | None = None,
        reason: str = "",
        durable: bool = True,
    ) -> T:
        """Run `work` in a change, note what it wrote, and undo it."""
        recording = _RECORDING.get()

        def rehearse() -> T:
            made: list[T] = []
            written: list[tuple[ChangeEntry, str, dict[str, Any]]] = []

            def undone(change: Change) -> None:
                before = change.view.seq()
                made.append(work(change))
                written.extend(_written(change, before))
                raise _Undone

            with suppress(_Undone):
                self.store.perform(
                    undone, author=ctx.caller.actor_id, reason=reason, run_id=ctx.run_id,
                    project_id=project_id or ctx.project_id, durable=False,
                )  # fmt: skip
            with self.store.read(Reader(ctx.run_id, project_id or ctx.project_id)) as view:
                for entry, subject, facts in written:
                    recording.after[subject] = {**recording.after.get(subject, {}), **facts}
                    if subject not in recording.now:
                        recording.now[subject] = _now(view, entry, subject)
            return made[0]

        return await in_thread(rehearse)

    async def stage(self, sha256: str, path: str, ref: str) -> int:
        """Tell what would be put into the workspace, and put nothing there."""
        size_bytes = await in_thread(lambda: len(self.blobs.read(sha256)))
        _RECORDING.get().after[path] = {"sha256": sha256, "size_bytes": size_bytes, "of": ref}
        return size_bytes


class RehearsingMeasurer(Measurer):
    """Measures small geometry and draws it; leaves the rest for when it is committed."""

    arguments: ClassVar[Mapping[str, Any]] = {"picture": True}

    async def measure(
        self, content: bytes, format: str, material: Mapping[str, Any], invocation: Invocation
    ) -> Measured:
        """Measure what is about to be proposed, and keep a picture of it."""
        recording = _RECORDING.get()
        if not recording.is_measured:
            return Measured(problem="measured when it is committed")
        if len(content) > MEASURED_BYTES:
            return Measured(problem=f"its {len(content)} bytes are measured when it is committed")
        within = replace(invocation, timeout_seconds=MEASURE_SECONDS)
        measured = await super().measure(content, format, material, within)
        recording.pictures.extend(measured.pictures)
        return measured


def _written(change: Change, before: int) -> list[tuple[ChangeEntry, str, dict[str, Any]]]:
    """Return what a change has written so far: each entry of the changelog, what it is about, and the facts."""
    view = change.view
    entries = [
        entry
        for entry in view.changes(before)
        if entry.at == change.now and entry.author == change.author and entry.kind not in _QUIET
    ]
    nodes = view.nodes([entry.node_id for entry in entries if entry.kind in _NODES])
    names = {node_id: _subject(node) for node_id, node in nodes.items()}
    links = _links(view, entries, names)
    told: list[tuple[ChangeEntry, str, dict[str, Any]]] = []
    for entry in entries:
        if (node := nodes.get(entry.node_id)) is not None and entry.kind in _NODES:
            facts = node_facts(node)
            if rests_on := links.get(node.node_id):
                facts["links"] = rests_on
            told.append((entry, names[node.node_id], facts))
        elif entry.kind is ChangeKind.PROJECT:
            told.append((entry, _project_subject(entry), _project_facts(view, entry.ref)))
        elif entry.kind is not ChangeKind.LINK or entry.node_id not in nodes:
            told.append((entry, f"{entry.kind} {entry.ref}", dict(entry.body)))
    return told


def _subject(node: Node) -> str:
    return node.item_key or f"new {node.kind}: {node.name[:80]}"


def _project_subject(entry: ChangeEntry) -> str:
    return "new project" if entry.body.get("what") == "create" else f"project {entry.ref}"


def _links(view: View, entries: Sequence[ChangeEntry], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the new links of each new node, in words."""
    made = [entry for entry in entries if entry.kind is ChangeKind.LINK]
    targets = view.nodes([str(entry.body.get("target_node_id", "")) for entry in made])
    found: dict[str, list[str]] = {}
    for entry in made:
        target_id = str(entry.body.get("target_node_id", ""))
        target = targets.get(target_id)
        ref = names.get(target_id) or (target.ref if target else target_id)
        found.setdefault(entry.node_id, []).append(f"{entry.body.get('type')} {ref}")
    return found


def node_facts(node: Node) -> dict[str, Any]:
    """Return what a person needs to know of a node."""
    facts: dict[str, Any] = {"kind": node.kind, "name": node.name}
    if node.revision is not None:
        facts = {"ref": node.ref, **facts}
    if node.change_reason:
        facts["change_reason"] = node.change_reason
    return {**facts, **node.body}


def _now(view: View, entry: ChangeEntry, subject: str) -> dict[str, Any] | None:
    if entry.kind is ChangeKind.PROJECT:
        return _project_facts(view, entry.ref) if view.project(entry.ref) else None
    if entry.kind not in _NODES or subject.startswith("new "):
        return None
    item = view.of_project(entry.project_id).find_item(subject)
    if item is None or item.current_node_id is None:
        return None
    return node_facts(view.node(item.current_node_id))


def _project_facts(view: View, project_id: str) -> dict[str, Any]:
    project = view.project(project_id)
    if project is None:
        return {"deleted": True}
    return {"name": project.name, "description": project.description, "status": project.status}


async def rehearse(call: Callable[[], Any], *, is_measured: bool) -> tuple[Recording, Any]:
    """Run a call of a rehearsing tool and return what it would write, and what it answers.

    Raises:
        MetaForgeError: what the tool raises: the record refuses the call.
    """
    recording = Recording(is_measured=is_measured)

    async def alone() -> Any:
        record_into(recording)
        return await call()

    return recording, await asyncio.create_task(alone())

"""Release gates: named questions to the design record whose answer must be empty."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.links import suspects
from metaforge.twin.matrix import Matrix, matrix

if TYPE_CHECKING:
    from metaforge.twin.view import View


@dataclass(frozen=True)
class Obstacle:
    """One thing that stands in the way of a release, and what clears it."""

    ref: str
    what: str
    fix: str

    def as_json(self) -> dict[str, str]:
        """Return the wire form."""
        return {"ref": self.ref, "what": self.what, "fix": self.fix}


@dataclass(frozen=True)
class GateResult:
    """What a gate found; it is open when that is nothing."""

    name: str
    question: str
    obstacles: tuple[Obstacle, ...]

    @property
    def passed(self) -> bool:
        return not self.obstacles

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "gate": self.name, "question": self.question, "passed": self.passed,
            "obstacle_count": len(self.obstacles), "obstacles": [each.as_json() for each in self.obstacles],
        }  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """A gate's name, what it asks, and the query."""

    name: str
    question: str
    query: Callable[["View", "Traced"], Iterable[Obstacle]]


Traced = Callable[[], Matrix]
"""Makes the trace matrix at its first call: not every gate asks for it."""


def check_gates(view: "View", names: Sequence[str] = ()) -> list[GateResult]:
    """Ask gates about the reader's project.

    Args:
        view: the reader's view.
        names: of gates; all by default.

    Raises:
        ToolError: `unknown_gate`.
    """
    unknown = [name for name in names if name not in GATES]
    if unknown:
        raise ToolError(
            f"There is no gate {unknown[0][:60]!r}", kind="unknown_gate", fix=f"There is {', '.join(GATES)}",
            did_you_mean=list(GATES),
        )  # fmt: skip
    traced = cache(lambda: matrix(view))
    chosen = [GATES[name] for name in dict.fromkeys(names)] or list(GATES.values())
    return [GateResult(gate.name, gate.question, tuple(gate.query(view, traced))) for gate in chosen]


def _suspect(view: "View", _: Traced) -> Iterator[Obstacle]:
    for each in suspects(view):
        what = f"{each.source.kind} {each.source.name[:80]!r} {each.link.type} {each.pinned_ref}: {each.why}"
        yield Obstacle(
            each.source.ref, what,
            f"Look at it again: review link {each.link.link_id}, or record its successor"
            if each.current else "Record its successor against an approved revision",
        )  # fmt: skip


def _uncovered(_: "View", traced: Traced) -> Iterator[Obstacle]:
    for gap in traced().uncovered:
        fix = (
            "Record evidence for it, or a verification_case that says how it will be verified"
            if gap.kind == "requirement"
            else "Record a requirement with parent_refs to it"
        )
        yield Obstacle(gap.ref, f"{gap.kind} {gap.name[:80]!r}: {gap.why}", fix)


def _unverified(_: "View", traced: Traced) -> Iterator[Obstacle]:
    told = {
        "fail": ("fails", "Change the design or the requirement"),
        "stale": ("is stale", "Repeat the verification with the current revision, or review its link"),
        "uncertain": ("is uncertain", "Record evidence that measures it, valid against the current revision"),
        "no_data": ("has no data", "Record evidence for it"),
    }
    found = traced()
    if not found.rows:
        what = "it has no requirements, so nothing can be shown to hold"
        yield Obstacle(found.project_id, what, "Record them with twin.record_constraint_set")
    for row in found.unverified:
        if row.severity == "error":
            says, fix = told[row.status]
            yield Obstacle(row.ref, f"{row.demand} {says}" + (f": {row.why}" if row.why else ""), fix)


def _open_drafts(view: "View", _: Traced) -> Iterator[Obstacle]:
    query = (
        "select drafts.run_id, items.key, drafts.revision from drafts join items on items.item_id = drafts.item_id "
        "where items.project_id = ? order by drafts.run_id, items.key"
    )
    for run_id, key, revision in view.transaction.rows(query, view.reader.project_id):
        yield Obstacle(
            f"{key}@{revision}",
            f"a draft of run {run_id}",
            f"Decide the run's gate: approve, reject or abandon {run_id}",
        )


GATES = {
    gate.name: gate
    for gate in (
        Gate("suspect", "Does anything rest on a revision that the design has left behind?", _suspect),
        Gate("uncovered", "Is there a need, objective or requirement that nothing answers?", _uncovered),
        Gate("unverified", "Is there a requirement that must hold and is not shown to?", _unverified),
        Gate("open_drafts", "Is there a draft that nobody has decided on?", _open_drafts),
    )
}
"""All must be empty for a release."""

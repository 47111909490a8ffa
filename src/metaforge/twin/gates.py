"""Release gates: named questions to the design record whose answer must be empty, but for what a person has waived."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin.links import suspects
from metaforge.twin.matrix import Matrix, Row, matrix
from metaforge.twin.waivers import NOT_COVERED, Coverage, Waiver, Waivers

if TYPE_CHECKING:
    from metaforge.twin.view import View


@dataclass(frozen=True)
class Obstacle:
    """One thing that stands in the way of a release, and what clears it.

    Attributes:
        note: why a waiver that names it does not cover it.
        waiver: the one that covers it; it is in the way no more, and still told.
    """

    ref: str
    what: str
    fix: str
    note: str = ""
    waiver: Waiver | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        row: dict[str, Any] = {"ref": self.ref, "what": self.what}
        if self.waiver is not None:
            return row | self.waiver.as_json()
        row["fix"] = self.fix
        return row | {"note": self.note} if self.note else row


@dataclass(frozen=True)
class GateResult:
    """What a gate found; it is open when that is nothing but what was waived."""

    name: str
    question: str
    obstacles: tuple[Obstacle, ...]
    waived: tuple[Obstacle, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.obstacles

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "gate": self.name, "question": self.question, "passed": self.passed,
            "obstacle_count": len(self.obstacles), "obstacles": [each.as_json() for each in self.obstacles],
            "waived_count": len(self.waived), "waived": [each.as_json() for each in self.waived],
        }  # fmt: skip


class Asked:
    """A view and what several gates ask of it, each found once."""

    def __init__(self, view: "View") -> None:
        self.view = view

    @cached_property
    def matrix(self) -> Matrix:
        return matrix(self.view)

    @cached_property
    def waivers(self) -> Waivers:
        return Waivers(self.view)

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Requirements by their refs."""
        return {row.ref: row for row in self.matrix.rows}

    def waived_requirements(self) -> dict[str, Waiver]:
        """Return the requirements that may stay as they are, and by which waiver."""
        found = {row.ref: self.waivers.of_requirement(row).waiver for row in self.matrix.unverified}
        return {ref: waiver for ref, waiver in found.items() if waiver is not None}


@dataclass(frozen=True)
class Gate:
    """A gate's name, what it asks, and the query."""

    name: str
    question: str
    query: Callable[[Asked], Iterable[Obstacle]]


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
    asked = Asked(view)
    chosen = [GATES[name] for name in dict.fromkeys(names)] or list(GATES.values())
    return [_result(gate, list(gate.query(asked))) for gate in chosen]


def _result(gate: Gate, found: Sequence[Obstacle]) -> GateResult:
    return GateResult(
        gate.name, gate.question, tuple(each for each in found if each.waiver is None),
        tuple(each for each in found if each.waiver is not None),
    )  # fmt: skip


def _obstacle(ref: str, what: str, fix: str, coverage: Coverage = NOT_COVERED) -> Obstacle:
    return Obstacle(ref, what, fix, coverage.note, coverage.waiver)


def _suspect(asked: Asked) -> Iterator[Obstacle]:
    for each in suspects(asked.view):
        what = f"{each.source.kind} {each.source.name[:80]!r} {each.link.type} {each.pinned_ref}: {each.why}"
        fix = (
            f"Look at it again: review link {each.link.link_id}, or record its successor"
            if each.current
            else "Record its successor against an approved revision"
        )
        yield _obstacle(each.source.ref, what, fix, asked.waivers.of_suspect(each))


def _uncovered(asked: Asked) -> Iterator[Obstacle]:
    for gap in asked.matrix.uncovered:
        what = f"{gap.kind} {gap.name[:80]!r}: {gap.why}"
        if gap.kind == "requirement":
            fix = "Record evidence for it, or a verification_case that says how it will be verified"
            yield _obstacle(gap.ref, what, fix, asked.waivers.of_requirement(asked.rows[gap.ref]))
        else:
            yield _obstacle(gap.ref, what, "Record a requirement with parent_refs to it", asked.waivers.of_ref(gap.ref))


_FIXES = {
    "fail": ("fails", "Change the design or the requirement"),
    "stale": ("is stale", "Repeat the verification with the current revision, or review its link"),
    "uncertain": ("is uncertain", "Record evidence that measures it, valid against the current revision"),
    "no_data": ("has no data", "Record evidence for it"),
}


def _unverified(asked: Asked) -> Iterator[Obstacle]:
    found = asked.matrix
    if not found.rows:
        what = "it has no requirements, so nothing can be shown to hold"
        yield _obstacle(found.project_id, what, "Record them with twin.record_constraint_set")
    for row in found.unverified:
        if row.severity == "error":
            says, fix = _FIXES[row.status]
            what = f"{row.demand} {says}" + (f": {row.why}" if row.why else "")
            yield _obstacle(row.ref, what, fix, asked.waivers.of_requirement(row))


def _open_drafts(asked: Asked) -> Iterator[Obstacle]:
    query = (
        "select drafts.run_id, items.key, drafts.revision from drafts join items on items.item_id = drafts.item_id "
        "where items.project_id = ? order by drafts.run_id, items.key"
    )
    view = asked.view
    for run_id, key, revision in view.transaction.rows(query, view.reader.project_id):
        fix = f"Decide the run's gate: approve, reject or abandon {run_id}"
        yield _obstacle(f"{key}@{revision}", f"a draft of run {run_id}", fix)


GATES = {
    gate.name: gate
    for gate in (
        Gate("suspect", "Does anything rest on a revision that the design has left behind?", _suspect),
        Gate("uncovered", "Is there a need, objective or requirement that nothing answers?", _uncovered),
        Gate("unverified", "Is there a requirement that must hold and is not shown to?", _unverified),
        Gate("open_drafts", "Is there a draft that nobody has decided on?", _open_drafts),
    )
}
"""All must be empty for a release, but for what was waived. A draft cannot be: it is decided on."""

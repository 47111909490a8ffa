"""The trace matrix: every current requirement against what verifies it, and what nobody has answered yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.twin.evaluation import Finding, RequirementFindings, evaluate, products_of
from metaforge.twin.links import LinkType, live
from metaforge.twin.model import Node
from metaforge.twin.requirements import current_sets, words
from metaforge.twin.verification import Records, Standing, Status, Verification

if TYPE_CHECKING:
    from metaforge.twin.view import View

ANSWERED_KINDS = ("stakeholder_need", "objective")
NO_ANSWERS = ("waiver", "question", "risk", "approval")
"""Kinds that speak of a need and answer none."""
MAX_VERIFICATIONS = 50
"""Verifications of one requirement that are told; those that do not pass come first where there are more."""


@dataclass(frozen=True)
class Row:
    """One requirement: what it demands, which needs it answers, what verifies it, and how it stands."""

    set_ref: str
    name: str
    demand: str
    severity: str
    method: str
    answers: tuple[str, ...]
    verifications: tuple[Verification, ...]
    status: Status
    why: str
    judged_count: int = 0
    """Work products that have a value for it."""
    open_on: tuple[str, ...] = ()
    """Where it is not shown to hold: work products, KEY@n, and what speaks against it without naming one. The first of
    them where there are very many; `open_count` tells how many."""
    open_count: int = 0
    worst_margin_ratio: float | None = None
    """Of what violates it now."""

    @property
    def ref(self) -> str:
        return f"{self.set_ref}#{self.name}"

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        shown = self.shown_verifications()
        row: dict[str, Any] = {
            "requirement": self.ref, "demand": self.demand, "severity": self.severity, "status": self.status,
            "why": self.why, "answers": list(self.answers), "verification_method": self.method,
            "verifications": [each.as_json() for each in shown],
        }  # fmt: skip
        if len(shown) < len(self.verifications) or self.judged_count > MAX_VERIFICATIONS:
            row |= {"judged_count": self.judged_count, "open_count": self.open_count}
        return row

    def shown_verifications(self) -> tuple[Verification, ...]:
        """Return those that are told: all where they are few, else first what does not pass."""
        if len(self.verifications) <= MAX_VERIFICATIONS:
            return self.verifications
        worst_first = sorted(self.verifications, key=lambda each: _ORDER[each.says])
        return tuple(worst_first[:MAX_VERIFICATIONS])


_ORDER = {Status.FAIL: 0, Status.STALE: 1, Status.UNCERTAIN: 2, Status.NO_DATA: 3, Status.PASS: 4}


@dataclass(frozen=True)
class Gap:
    """A need, objective or requirement that nothing answers."""

    ref: str
    kind: str
    name: str
    why: str

    def as_json(self) -> dict[str, str]:
        """Return the wire form."""
        return {"ref": self.ref, "kind": self.kind, "name": self.name, "why": self.why}


@dataclass(frozen=True)
class Matrix:
    """All requirements of a project as a reader sees them; `seq` is the changelog's position."""

    project_id: str
    seq: int
    rows: tuple[Row, ...]
    uncovered: tuple[Gap, ...]

    @property
    def unverified(self) -> tuple[Row, ...]:
        """The requirements that do not pass."""
        return tuple(row for row in self.rows if row.status is not Status.PASS)

    def counts(self) -> dict[str, int]:
        """Return how many requirements stand how."""
        return {str(status): sum(row.status is status for row in self.rows) for status in Status}

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        return {
            "project_id": self.project_id, "seq": self.seq, "requirement_count": len(self.rows),
            "status_counts": self.counts(), "requirements": [row.as_json() for row in self.rows],
            "uncovered": [gap.as_json() for gap in self.uncovered], "unverified": [row.ref for row in self.unverified],
        }  # fmt: skip


def matrix(view: "View") -> Matrix:
    """Return the trace matrix of the reader's project, as it stands for this reader."""
    sets = current_sets(view)
    found = {each.ref: each for each in evaluate(view, products_of(view), sets).requirements} if sets else {}
    records = Records(view, sets)
    rows = [
        _row(node, entry, records, found[f"{node.ref}#{entry['name']}"])
        for node in sets
        for entry in node.body.get("constraints") or ()
    ]
    gaps = [Gap(row.ref, "requirement", row.demand, "nothing verifies it, and no verification is planned")
            for row in rows if not row.verifications]  # fmt: skip
    return Matrix(view.reader.project_id, view.seq(view.reader.project_id), tuple(rows), (*_unanswered(view), *gaps))


def _row(node: Node, entry: Mapping[str, Any], records: Records, findings: RequirementFindings) -> Row:
    name = str(entry["name"])
    said = records.verifications(node, entry)
    known = {each.ref for each in said if each.standing is Standing.CURRENT}
    kept = [finding for status in ("fail", "no_data", "pass") for finding in findings.kept[status]]
    found = [*said, *_judged(kept, known)]
    status, why = _status(found, kept)
    method = str(entry.get("verification_method") or entry.get("expected_evidence") or "")
    open_on = _open_on(found, kept)
    counts = findings.counts
    return Row(
        node.ref, name, words(entry), str(entry.get("severity") or "error"), method,
        records.answers(node, name), tuple(found), status, why, counts["pass"] + counts["fail"], open_on,
        max(counts["fail"] + counts["no_data"], len(open_on)) if open_on else 0,
        min((each.margin_ratio for each in _violations(found) if each.margin_ratio is not None), default=None),
    )  # fmt: skip


def _open_on(found: Iterable[Verification], kept: Iterable[Finding]) -> tuple[str, ...]:
    products = {
        each.work_product for each in kept if each.work_product and each.judgement.status in ("fail", "no_data")
    }
    for each in _violations(found):
        products.update(each.against or (each.ref,))
    return tuple(sorted(products))


def _violations(found: Iterable[Verification]) -> Iterator[Verification]:
    return (each for each in found if each.says is Status.FAIL and each.standing is Standing.CURRENT)


def _judged(findings: Iterable[Finding], known: set[str]) -> Iterable[Verification]:
    """What parts themselves and evidence about them show, beside the evidence that names the requirement."""
    for each in findings:
        told = each.judgement
        kind, _, ref = told.source.partition(" ")
        if told.status == "no_data" or (kind == "evidence" and ref in known):
            continue
        if kind != "evidence":
            kind, ref = "measured", each.work_product
        yield Verification(
            ref, kind, "", Status(told.status), Standing.CURRENT, told.reason, (each.work_product,), told.actual,
            told.unit, told.margin_ratio,
        )  # fmt: skip


def _status(found: Sequence[Verification], findings: Sequence[Finding]) -> tuple[Status, str]:
    """The worst of what is current counts; what is suspect or ahead proves nothing."""
    current = [each for each in found if each.standing is Standing.CURRENT]
    failed = next((each for each in current if each.says is Status.FAIL), None)
    if failed is not None:
        return Status.FAIL, failed.why or f"{failed.ref} speaks against it"
    missing = [each.work_product for each in findings if each.work_product and each.judgement.status == "no_data"]
    passed = [each for each in current if each.says is Status.PASS]
    if passed and missing:
        return Status.UNCERTAIN, f"no value of {', '.join(missing[:5])}"
    if passed:
        return Status.PASS, passed[0].why
    old = next((each for each in found if each.standing is not Standing.CURRENT and each.says is Status.PASS), None)
    if old is not None:
        return Status.STALE, old.why
    doubtful = [each for each in found if each.kind != "verification_case"]
    if doubtful:
        return Status.UNCERTAIN, doubtful[0].why
    reason = findings[0].judgement.reason if findings else ""
    return Status.NO_DATA, "verification is planned, not done" if found else reason


def _unanswered(view: "View") -> Iterator[Gap]:
    """Needs and objectives that no current requirement or other entity was derived for."""
    condition, values = live(view.reader.run_id)
    types = (LinkType.IMPLEMENTS, LinkType.DERIVES_FROM, LinkType.SATISFIES)
    query = (
        "select 1 from links join nodes on nodes.node_id = links.source_node_id where links.target_subject = ? "
        f"and links.type in ({', '.join('?' * len(types))}) and links.change_set in ('', ?) "
        f"and nodes.kind not in ({', '.join('?' * len(NO_ANSWERS))}) and {condition} limit 1"
    )
    for kind in ANSWERED_KINDS:
        for node in view.current_nodes(kind):
            bound = (node.subject, *types, view.reader.run_id, *NO_ANSWERS, *values)
            if view.transaction.row(query, *bound) is None:
                yield Gap(node.ref, kind, node.name, "no requirement implements it and nothing is derived from it")

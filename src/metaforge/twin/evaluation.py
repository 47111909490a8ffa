"""Judge a project's work products by its requirements, with measured values and valid evidence.

However many there are, they are read a few hundred at a time, and of what was found a few hundred of each kind are
kept beside the counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from metaforge.core.counts import counted
from metaforge.twin.judging import Judge, Judgement, Known
from metaforge.twin.links import LinkType
from metaforge.twin.metrics import Metrics, Plan
from metaforge.twin.model import Node
from metaforge.twin.pinning import WORK_PRODUCTS
from metaforge.twin.requirements import words
from metaforge.twin.trace import replaced

if TYPE_CHECKING:
    from metaforge.twin.view import View

JUDGED_KINDS = (*WORK_PRODUCTS, "component_selection", "bom")
KEPT_COUNT = 200
"""Findings that are kept of one requirement and one status; all are counted."""
_BATCH_COUNT = 400


@dataclass(frozen=True)
class Finding:
    """One requirement judged on one work product (empty where no work product has a value for it)."""

    requirement_ref: str
    name: str
    severity: str
    demand: str
    work_product: str
    judgement: Judgement
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return what a client is told."""
        told = self.judgement
        row: dict[str, Any] = {
            "constraint": self.requirement_ref, "demand": self.demand, "work_product": self.work_product or None,
            "severity": self.severity, "actual": told.actual, "limit": told.limit, "unit": told.unit or None,
            "margin_ratio": told.margin_ratio, "source": told.source or None, "reason": told.reason or None,
            "message": self.message or None,
        }  # fmt: skip
        return {name: value for name, value in row.items() if value is not None}


@dataclass(frozen=True)
class RequirementFindings:
    """What one requirement found.

    Attributes:
        counts: work products by status, all of them.
        kept: findings by status, at most KEPT_COUNT of each.
    """

    ref: str
    severity: str
    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it where there is room."""
        status = finding.judgement.status
        self.counts[status] += 1
        if len(self.kept[status]) < KEPT_COUNT:
            self.kept[status].append(finding)


@dataclass(frozen=True)
class Evaluation:
    """Every requirement judged. It passes only if something was judged and nothing that must hold is open."""

    requirements: tuple[RequirementFindings, ...]

    def _with(self, status: str, *severities: str) -> list[Finding]:
        return [each for found in self.requirements if found.severity in severities for each in found.kept[status]]

    def _count(self, status: str, *severities: str) -> int:
        return sum(found.counts[status] for found in self.requirements if found.severity in severities)

    @property
    def violations(self) -> list[Finding]:
        """The first of them; `violation_count` tells how many there are."""
        return self._with("fail", "error")

    @property
    def violation_count(self) -> int:
        return self._count("fail", "error")

    @property
    def warnings(self) -> list[Finding]:
        return self._with("fail", "warning", "info")

    @property
    def skipped(self) -> list[Finding]:
        return self._with("no_data", *_SEVERITIES)

    @property
    def skipped_count(self) -> int:
        return self._count("no_data", *_SEVERITIES)

    @property
    def evaluated_count(self) -> int:
        return self._count("pass", *_SEVERITIES) + self._count("fail", *_SEVERITIES)

    @property
    def passed(self) -> bool:
        return self.evaluated_count > 0 and not self.violation_count and not self._count("no_data", "error")

    @property
    def verdict(self) -> str:
        """pass, fail, incomplete (something that must hold has no value), or nothing_evaluated."""
        if self.violation_count:
            return "fail"
        if not self.evaluated_count:
            return "nothing_evaluated"
        return "pass" if self.passed else "incomplete"

    def summary(self) -> str:
        """Say how it stands, in a line."""
        skipped = f", {self.skipped_count} without a value" if self.skipped_count else ""
        told = ""
        if self.violation_count:
            worst = self.violations[0]
            judged = worst.judgement
            told = f": {worst.name} on {worst.work_product}"
            if judged.actual is not None and judged.limit is not None:
                told += f" is {judged.actual:.6g}, limit {judged.limit:.6g} {judged.unit}".rstrip()
        return f"{self.verdict}: {self.evaluated_count} judged, {self.violation_count} violated{skipped}{told}."

    def caveats(self) -> tuple[str, ...]:
        """Say what a missing pass, or a list, does not say by itself."""
        told = []
        if self.verdict == "nothing_evaluated":
            told.append("Nothing could be judged, which is no pass: no requirement found a value for its metric")
        elif self.verdict == "incomplete":
            names = ", ".join(each.requirement_ref for each in self._with("no_data", "error"))
            told.append(f"Not a pass: there is no value for {names[:400]}")
        for found in self.requirements:
            for status, what in (("fail", "is violated on"), ("no_data", "has no value on")):
                if found.counts[status] > len(found.kept[status]):
                    count = counted(found.counts[status], "work product")
                    told.append(f"{found.ref} {what} {count}: the first {len(found.kept[status])} are listed")
        return tuple(told)


_SEVERITIES = ("error", "warning", "info")


def evaluate(view: "View", products: Iterable[Node], sets: Iterable[Node]) -> Evaluation:
    """Judge work products by constraint sets.

    Args:
        view: the caller's view.
        products: parts, assemblies, components or bills of material; read once.
        sets: constraint sets.
    """
    asked = [_Asked(node, entry) for node in sets for entry in node.body.get("constraints") or ()]
    plan = Plan(name for each in asked for name in each.judge.wanted)
    waiting = iter(products) if asked else iter(())
    while part := list(islice(waiting, _BATCH_COUNT)):
        for sources in sources_of(view, part, plan):
            for each in asked:
                each.ask(sources)
    return Evaluation(tuple(each.answer() for each in asked))


def products_of(view: "View") -> Iterator[Node]:
    """Yield what can be judged in the reader's project, as it reads it now."""
    for kind in JUDGED_KINDS:
        yield from view.current_nodes(kind)


class _Asked:
    """One requirement while work products are judged by it."""

    def __init__(self, node: Node, entry: Mapping[str, Any]) -> None:
        self.judge = Judge(entry)
        self._entry = entry
        self._name = str(entry["name"])
        self._keys = {str(each).partition("@")[0] for each in entry.get("applies_to") or ()}
        self._kind = entry.get("target_node_type")
        self._found = RequirementFindings(f"{node.ref}#{self._name}", str(entry.get("severity") or "error"))
        self._without: Judgement | None = None

    def ask(self, sources: "Sources") -> None:
        product = sources.product
        if not self._applies(product) or self._is_counted(sources):
            return
        told = sources.judged(self.judge)
        if told.status != "no_data" or self._keys:
            self._add(product.ref, told)
        elif self._without is None:
            self._without = told

    def _is_counted(self, sources: "Sources") -> bool:
        """Count a work product of which nothing more needs to be said, as there are enough like it."""
        if sources.evidence:
            return False
        status = self.judge.status(sources.all, sources.known)
        if status is None:
            return False
        if status == "no_data" and not self._keys:
            return self._without is not None
        if len(self._found.kept[status]) < KEPT_COUNT:
            return False
        self._found.counts[status] += 1
        return True

    def answer(self) -> RequirementFindings:
        if not self._found.counts:
            self._add("", self._without or Judgement("no_data", "no work product it applies to"))
        return self._found

    def _applies(self, product: Node) -> bool:
        if self._keys:
            return product.item_key in self._keys
        return product.kind == self._kind if self._kind else product.kind in WORK_PRODUCTS

    def _add(self, product_ref: str, told: Judgement) -> None:
        status = told.status
        if len(self._found.kept[status]) >= KEPT_COUNT:
            self._found.counts[status] += 1
            return
        message = str(self._entry.get("message") or "") if status == "fail" else ""
        self._found.add(
            Finding(self._found.ref, self._name, self._found.severity, words(self._entry), product_ref, told, message)
        )


class Sources:
    """Where a work product's values come from: measured first, evidence, then what was only said.

    Args:
        product: a part, assembly, component or bill of materials.
        evidence: what is valid against exactly this revision.
        plan: for several of them.
    """

    def __init__(self, product: Node, evidence: Sequence[Node], plan: Plan | None = None) -> None:
        self.product = product
        body, ref = product.body, product.ref
        self.measured = Metrics(body.get("measured") or {}, ref, plan)
        said = {name: body[name] for name in ("properties", "specs", "totals") if isinstance(body.get(name), Mapping)}
        said |= {name: body[name] for name in ("unit_cost_usd", "quantity") if name in body}
        self.said = Metrics(said, f"{ref} as stated", plan)
        self.evidence = [Metrics(node.body.get("result") or {}, f"evidence {node.node_id}", plan) for node in evidence]
        self.all = [self.measured, *self.evidence, self.said]
        """All of them, those that count first."""
        self.known: Known = {}

    def judged(self, judge: Judge) -> Judgement:
        """Judge by what was measured and by every piece of evidence that speaks of it; the worst counts."""
        speaking = [each for each in self.evidence if any(_has(each, name) for name in judge.metrics)]
        if not speaking:
            return judge(self.all)
        order = {"fail": 0, "pass": 1, "no_data": 2}
        return min(
            (judge(self.all), *(judge([each, *self.all]) for each in speaking)),
            key=lambda each: (order[each.status], each.margin_ratio if each.margin_ratio else 0.0),
        )


def sources_of(view: "View", products: Sequence[Node], plan: Plan | None = None) -> Iterator[Sources]:
    """Yield where the values of some work products come from.

    Evidence counts that is valid against exactly the revision, or was reviewed against it, and that none replaces.

    Args:
        view: the caller's view.
        products: at most a few hundred.
        plan: for those that are asked for the same names as these.
    """
    valid = _evidence_ids(view, products)
    ids = list(dict.fromkeys(node_id for some in valid.values() for node_id in some))
    old = replaced(view, ids)
    nodes = view.nodes([node_id for node_id in ids if node_id not in old])
    for product in products:
        found = [nodes[node_id] for node_id in valid.get(product.node_id, ()) if node_id in nodes]
        yield Sources(product, found, plan)


def _evidence_ids(view: "View", products: Sequence[Node]) -> dict[str, list[str]]:
    by_subject: dict[str, list[Node]] = defaultdict(list)
    for product in products:
        by_subject[product.subject].append(product)
    query = (
        "select target_subject, target_node_id, reviewed_revision, source_node_id from links "
        f"where target_subject in ({', '.join('?' * len(by_subject))}) and type = ? and change_set in ('', ?) "
        "order by created_at, link_id"
    )
    found: dict[str, list[str]] = defaultdict(list)
    rows = view.transaction.rows(query, *by_subject, LinkType.VALID_AGAINST, view.reader.run_id) if by_subject else ()
    for subject, target_id, reviewed, source_id in rows:
        for product in by_subject[subject]:
            known = found[product.node_id]
            if (target_id == product.node_id or reviewed == product.revision) and source_id not in known:
                known.append(source_id)
    return found


def is_replaced(view: "View", node: Node) -> bool:
    """Whether a record was superseded by another."""
    return bool(view.links(node.node_id, type=LinkType.SUPERSEDES, direction="incoming"))


def _has(source: Metrics, name: str) -> bool:
    from metaforge.twin.expressions import Undetermined
    from metaforge.twin.metrics import value_in

    try:
        value_in((source,), name)
    except Undetermined as fault:
        return "no value" not in str(fault)
    return True

"""Judge a project's work products by its requirements, with measured values and valid evidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.twin.links import LinkType
from metaforge.twin.metrics import Metrics
from metaforge.twin.model import Node
from metaforge.twin.pinning import WORK_PRODUCTS
from metaforge.twin.requirements import Judgement, judge, metrics_of, words

if TYPE_CHECKING:
    from metaforge.twin.view import View

JUDGED_KINDS = (*WORK_PRODUCTS, "component_selection", "bom")


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
class Evaluation:
    """Every requirement judged. It passes only if something was judged and nothing that must hold is open."""

    findings: tuple[Finding, ...]

    def _with(self, status: str, *severities: str) -> list[Finding]:
        return [
            each for each in self.findings if each.judgement.status == status and each.severity in severities
        ]  # fmt: skip

    @property
    def violations(self) -> list[Finding]:
        return self._with("fail", "error")

    @property
    def warnings(self) -> list[Finding]:
        return self._with("fail", "warning", "info")

    @property
    def skipped(self) -> list[Finding]:
        return self._with("no_data", "error", "warning", "info")

    @property
    def evaluated_count(self) -> int:
        return len(self.findings) - len(self.skipped)

    @property
    def passed(self) -> bool:
        return self.evaluated_count > 0 and not self.violations and not self._with("no_data", "error")

    @property
    def verdict(self) -> str:
        """pass, fail, incomplete (something that must hold has no value), or nothing_evaluated."""
        if self.violations:
            return "fail"
        if not self.evaluated_count:
            return "nothing_evaluated"
        return "pass" if self.passed else "incomplete"

    def summary(self) -> str:
        """Say how it stands, in a line."""
        skipped = f", {len(self.skipped)} without a value" if self.skipped else ""
        told = ""
        if self.violations:
            worst = self.violations[0]
            judged = worst.judgement
            told = f": {worst.name} on {worst.work_product}"
            if judged.actual is not None and judged.limit is not None:
                told += f" is {judged.actual:.6g}, limit {judged.limit:.6g} {judged.unit}".rstrip()
        return f"{self.verdict}: {self.evaluated_count} judged, {len(self.violations)} violated{skipped}{told}."

    def caveats(self) -> tuple[str, ...]:
        """Say what a missing pass does not say by itself."""
        if self.verdict == "nothing_evaluated":
            return ("Nothing could be judged, which is no pass: no requirement found a value for its metric",)
        if self.verdict == "incomplete":
            names = ", ".join(each.requirement_ref for each in self._with("no_data", "error"))
            return (f"Not a pass: there is no value for {names[:400]}",)
        return ()


def evaluate(view: "View", products: Sequence[Node], sets: Iterable[Node]) -> Evaluation:
    """Judge work products by constraint sets.

    Args:
        view: the caller's view.
        products: parts, assemblies, components or bills of material.
        sets: constraint sets.
    """
    sources = {product.node_id: Sources(view, product) for product in products}
    findings: list[Finding] = []
    for node in sets:
        for entry in node.body.get("constraints") or ():
            findings += _judge_everywhere(node, entry, products, sources)
    return Evaluation(tuple(findings))


def products_of(view: "View") -> list[Node]:
    """Return what can be judged in the reader's project, as it reads it now."""
    return [node for kind in JUDGED_KINDS for node in view.current_nodes(kind)]


def evidence_for(view: "View", product: Node) -> list[Node]:
    """Return evidence valid against exactly this revision, or reviewed against it; replaced ones are left out."""
    links = view.links(subject=product.subject, type=LinkType.VALID_AGAINST, direction="incoming")
    valid = [
        link.source_node_id
        for link in links
        if link.target_node_id == product.node_id or link.reviewed_revision == product.revision
    ]
    found = view.nodes(list(dict.fromkeys(valid))).values()
    return [node for node in found if not is_replaced(view, node)]


def is_replaced(view: "View", node: Node) -> bool:
    """Whether a record was superseded by another."""
    return bool(view.links(node.node_id, type=LinkType.SUPERSEDES, direction="incoming"))


class Sources:
    """Where a work product's values come from: measured first, evidence, then what was only said."""

    def __init__(self, view: "View", product: Node) -> None:
        body = product.body
        self.measured = Metrics(body.get("measured") or {}, product.ref)
        said = {name: body[name] for name in ("properties", "specs", "totals") if isinstance(body.get(name), Mapping)}
        costs = {name: body[name] for name in ("unit_cost_usd", "quantity") if name in body}
        self.said = Metrics({**said, **costs}, f"{product.ref} as stated")
        self.evidence = [
            Metrics(node.body.get("result") or {}, f"evidence {node.node_id}") for node in evidence_for(view, product)
        ]

    @property
    def all(self) -> list[Metrics]:
        """All of them, those that count first."""
        return [self.measured, *self.evidence, self.said]

    def judge(self, entry: Mapping[str, Any]) -> Judgement:
        """Judge by every piece of evidence that speaks of it; the worst counts."""
        wanted = metrics_of(entry)
        speaking = [each for each in self.evidence if any(_has(each, name) for name in wanted)]
        others = self.all
        judged = [judge(entry, [each, *others]) for each in speaking] or [judge(entry, others)]
        order = {"fail": 0, "pass": 1, "no_data": 2}
        return min(judged, key=lambda each: (order[each.status], each.margin_ratio if each.margin_ratio else 0.0))


def _has(source: Metrics, name: str) -> bool:
    from metaforge.twin.expressions import Undetermined
    from metaforge.twin.metrics import value_in

    try:
        value_in([source], name)
    except Undetermined as fault:
        return "no value" not in str(fault)
    return True


def _judge_everywhere(
    node: Node, entry: Mapping[str, Any], products: Sequence[Node], sources: Mapping[str, Sources]
) -> list[Finding]:
    concerned = [product for product in products if _applies(entry, product)]
    judged = [(product, sources[product.node_id].judge(entry)) for product in concerned]
    with_value = [each for each in judged if each[1].status != "no_data"]
    named = bool(entry.get("applies_to"))
    shown = judged if named else with_value
    if shown:
        return [_finding(node, entry, product.ref, judgement) for product, judgement in shown]
    reason = judged[0][1] if judged else Judgement("no_data", "no work product it applies to")
    return [_finding(node, entry, "", reason)]


def _applies(entry: Mapping[str, Any], product: Node) -> bool:
    named = entry.get("applies_to")
    if named:
        return any(product.item_key == str(each).partition("@")[0] for each in named)
    wanted = entry.get("target_node_type")
    return product.kind == wanted if wanted else product.kind in WORK_PRODUCTS


def _finding(node: Node, entry: Mapping[str, Any], product_ref: str, judgement: Judgement) -> Finding:
    name = str(entry["name"])
    severity = str(entry.get("severity") or "error")
    message = str(entry.get("message") or "") if judgement.status == "fail" else ""
    return Finding(f"{node.ref}#{name}", name, severity, words(entry), product_ref, judgement, message)

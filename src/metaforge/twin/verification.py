"""What speaks about a requirement: evidence, claims and verification cases, and whether that still holds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from metaforge.twin.judging import Judge, Judgement
from metaforge.twin.links import REQUIREMENT, LinkType, Suspect, suspects
from metaforge.twin.metrics import Metrics, Plan
from metaforge.twin.model import Link, Node
from metaforge.twin.trace import current_revisions, replaced

if TYPE_CHECKING:
    from metaforge.twin.view import View

_SPEAKING = (LinkType.SUPPORTS, LinkType.CONTRADICTS, LinkType.SATISFIES, LinkType.VALID_AGAINST)
"""Types by which evidence and claims speak about a requirement; a verification case may come by any."""


class Standing(StrEnum):
    """Whether a verification still speaks of the design as it is."""

    CURRENT = "current"
    SUSPECT = "suspect"
    """Something it was made with was revised since."""
    AHEAD = "ahead"
    """It was made with a revision that is not approved yet."""


class Status(StrEnum):
    """How a requirement stands."""

    PASS = "pass"
    FAIL = "fail"
    UNCERTAIN = "uncertain"
    STALE = "stale"
    NO_DATA = "no_data"


@dataclass(frozen=True)
class Verification:
    """One thing that speaks about a requirement.

    Attributes:
        ref: the record's node id, or KEY@n of the part whose values were judged.
        kind: evidence, claim, verification_case, or measured for a part's own values.
        says: pass, fail, or uncertain where it gives no answer.
        standing: whether that still holds for the design as it is.
        why: what makes it uncertain, suspect or a failure; where a value was found.
        against: the revisions it was made with, KEY@n.
    """

    ref: str
    kind: str
    name: str
    says: Status
    standing: Standing
    why: str = ""
    against: tuple[str, ...] = ()
    actual: float | None = None
    unit: str = ""
    margin_ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the wire form, without what is absent."""
        row = {
            "ref": self.ref, "kind": self.kind, "name": self.name, "says": self.says, "standing": self.standing,
            "why": self.why, "against": list(self.against), "actual": self.actual, "unit": self.unit,
            "margin_ratio": self.margin_ratio,
        }  # fmt: skip
        return {name: value for name, value in row.items() if value not in (None, "", [])}


class Records:
    """Evidence, claims and verification cases that speak about the requirements of some sets, read once."""

    def __init__(self, view: "View", sets: Sequence[Node]) -> None:
        self._view = view
        self._plan = Plan()
        self._answers: dict[str, list[tuple[str | None, str]]] = {}
        self._incoming: dict[str, list[Link]] = {
            node.subject: [
                link
                for link in view.links(subject=node.subject, direction="incoming")
                if link.type != LinkType.SUPERSEDES
            ]
            for node in sets
        }
        self._suspects: dict[str, list[Suspect]] = defaultdict(list)
        for suspect in suspects(view):
            self._suspects[suspect.source.node_id].append(suspect)
        linked = {link.source_node_id for links in self._incoming.values() for link in links}
        self._outgoing = view.links_from(sorted(linked))
        cited = {link.target_node_id for links in self._outgoing.values() for link in links
                 if link.type == LinkType.CITES}  # fmt: skip
        self._outgoing |= view.links_from(sorted(cited - linked))
        self._replaced = replaced(view, sorted(linked | cited))
        self._nodes = view.nodes(sorted(linked | cited))
        pinned = {link.target_node_id for links in self._outgoing.values() for link in links}
        self._targets = view.nodes(sorted(pinned))
        subjects = {link.target_subject for links in self._outgoing.values() for link in links}
        self._current = current_revisions(view, subjects)

    def answers(self, node: Node, name: str) -> tuple[str, ...]:
        """Return what a requirement says it implements, KEY@n."""
        if node.node_id not in self._answers:
            links = self._view.links(node.node_id, direction="outgoing", type=LinkType.IMPLEMENTS)
            targets = self._view.nodes([link.target_node_id for link in links])
            self._answers[node.node_id] = [
                (link.body.get(REQUIREMENT), targets[link.target_node_id].ref)
                for link in links
                if link.target_node_id in targets
            ]
        return tuple(sorted({ref for named, ref in self._answers[node.node_id] if named in (None, name)}))

    def verifications(self, node: Node, entry: Mapping[str, Any]) -> list[Verification]:
        """Return what records say about one requirement, the oldest first."""
        name, judge = str(entry["name"]), Judge(entry)
        found: dict[str, Verification] = {}
        for link in self._incoming[node.subject]:
            source = self._nodes.get(link.source_node_id)
            if source is None or source.node_id in self._replaced or link.body.get(REQUIREMENT, name) != name:
                continue
            made = self._verification(source, link, judge, name)
            before = found.get(source.node_id)
            if made is not None and (before is None or made.says is Status.FAIL or before.says is Status.UNCERTAIN):
                found[source.node_id] = made
        return list(found.values())

    def _verification(self, source: Node, link: Link, judge: Judge, name: str) -> Verification | None:
        if source.kind == "verification_case":
            return Verification(source.node_id, "verification_case", source.name, Status.UNCERTAIN, Standing.CURRENT,
                                "planned")  # fmt: skip
        if link.type not in _SPEAKING:
            return None
        if source.kind == "claim":
            says, why, judged = self._claimed(source, judge)
        else:
            judged = judge([self._values_of(source)])
            if link.type == LinkType.VALID_AGAINST and judged.status == "no_data":
                return None  # it was made with this requirement and says nothing about it
            said = self._said(source, link, judged, named=REQUIREMENT in link.body)
            if said is None:
                return None
            says, why = said
        standing, doubt = self._standing(source.node_id, name)
        return Verification(
            source.node_id, source.kind, source.name, says, standing, doubt or why, self._against(source.node_id),
            judged.actual if judged else None, judged.unit if judged else "", judged.margin_ratio if judged else None,
        )  # fmt: skip

    def _values_of(self, evidence: Node) -> Metrics:
        return Metrics(evidence.body.get("result") or {}, f"evidence {evidence.node_id}", self._plan)

    def _said(self, source: Node, link: Link, judged: Judgement, *, named: bool) -> tuple[Status, str] | None:
        """What evidence says of a requirement: its numbers first, its word where the requirement is a text."""
        if link.type == LinkType.CONTRADICTS and (named or judged.status == "fail"):
            return Status.FAIL, judged.reason or source.name
        if judged.status == "fail":
            return Status.FAIL, judged.reason
        if judged.status == "pass" and link.type == LinkType.CONTRADICTS:
            return Status.UNCERTAIN, "it is said to contradict, and its value meets the limit"
        if judged.status == "no_data" and not named:
            return None
        if not any(each.type == LinkType.VALID_AGAINST for each in self._outgoing[source.node_id]):
            return Status.UNCERTAIN, "it does not say with which revision it was made"
        if judged.status == "no_data" and not judged.reason.startswith("it is a text"):
            return Status.UNCERTAIN, judged.reason
        return Status.PASS, judged.reason if judged.status == "pass" else "by inspection"

    def _claimed(self, claim: Node, judge: Judge) -> tuple[Status, str, Judgement | None]:
        if claim.body.get("claim_type", LinkType.SATISFIES) != LinkType.SATISFIES:
            return Status.UNCERTAIN, f"it claims {claim.body['claim_type']}", None
        if claim.body.get("status") != "supported":
            return Status.UNCERTAIN, str(claim.body.get("reason") or "no evidence supports it"), None
        judged: Judgement | None = None
        for link in self._outgoing[claim.node_id]:
            evidence = self._nodes.get(link.target_node_id)
            if link.type != LinkType.CITES or evidence is None or evidence.node_id in self._replaced:
                continue
            told = judge([self._values_of(evidence)])
            if told.status == "fail":
                return Status.FAIL, told.reason, told
            judged = told if told.status == "pass" or judged is None else judged
        if judged is None:
            return Status.UNCERTAIN, "the evidence it cites was replaced", None
        if judged.status == "pass" or judged.reason.startswith("it is a text"):
            return Status.PASS, judged.reason, judged
        return Status.UNCERTAIN, judged.reason, judged

    def _standing(self, node_id: str, name: str) -> tuple[Standing, str]:
        for suspect in self._suspects.get(node_id, ()):
            if suspect.link.body.get(REQUIREMENT, name) == name:
                return Standing.SUSPECT, suspect.why
        for link in self._outgoing.get(node_id, ()):
            if link.type == LinkType.CITES:
                standing, why = self._standing(link.target_node_id, name)
                if standing is not Standing.CURRENT:
                    return standing, why
            elif link.target_revision is not None and link.target_revision > self._current.get(link.target_subject, 0):
                return Standing.AHEAD, "it was made with a revision that is not approved"
        return Standing.CURRENT, ""

    def _against(self, node_id: str) -> tuple[str, ...]:
        types = (LinkType.VALID_AGAINST, LinkType.CLAIMS)
        targets = [
            self._targets.get(link.target_node_id) for link in self._outgoing.get(node_id, ()) if link.type in types
        ]
        return tuple(
            sorted({target.ref for target in targets if target is not None and target.kind != "constraint_set"})
        )

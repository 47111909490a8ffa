"""Evidence that cites calls, and claims that rest on it."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from metaforge.core.counts import counted
from metaforge.core.errors import ToolError
from metaforge.record.call_record import CallRecord
from metaforge.record.queries import FileUse
from metaforge.twin.evaluation import is_replaced
from metaforge.twin.judging import judge, metrics_of
from metaforge.twin.links import LinkType, requirement_entry
from metaforge.twin.metrics import Metrics
from metaforge.twin.model import Node
from metaforge.twin.pinning import CONSTRAINT_SET, WORK_PRODUCTS, Pinned, link_to, pin_all
from metaforge.twin.requirements import words

if TYPE_CHECKING:
    from metaforge.twin.change import Change
    from metaforge.twin.view import View

PROVENANCE_DEPTH = 4
_MAX_FILES = 200
ENTITY_KINDS = {
    "constraint": (CONSTRAINT_SET,),
    "work_product": (*WORK_PRODUCTS, "bom", "component_selection"),
}


class Calls(Protocol):
    """What calls did: `record.queries.CallLog`."""

    def get_call(self, call_id: str) -> CallRecord: ...

    def uses_of(self, sha256: str, limit: int = 50) -> list[FileUse]: ...


@dataclass(frozen=True)
class Cited:
    """Calls that evidence rests on, and every file their inputs were made from, as far as records tell."""

    calls: tuple[CallRecord, ...]
    origins: frozenset[str]
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Files of the calls, by SHA-256, that are not where they belong, and why."""

    @property
    def artefacts(self) -> list[str]:
        """SHA-256 of the files that the calls made."""
        return list(dict.fromkeys(each.sha256 for call in self.calls for each in call.artefacts))

    def files_waiting(self) -> list[dict[str, str]]:
        """Return the calls' files that are not where they belong, with the reason."""
        found = {each.sha256: each.path for call in self.calls for each in call.artefacts}
        return [{"path": found[sha256], "sha256": sha256, "reason": why} for sha256, why in self.waiting.items()]

    def as_json(self) -> list[dict[str, Any]]:
        """Return what evidence keeps of them, so that it can be read without the calls' own records."""
        return [
            {
                "call_id": call.call_id, "tool_id": call.tool_id, "started_at": call.started_at,
                "adapter_version": call.adapter_version, "programs": dict(call.programs), "summary": call.summary,
                "inputs": [{"path": each.path, "sha256": each.sha256} for each in call.inputs],
                "artefacts": [{"path": each.path, "sha256": each.sha256} for each in call.artefacts],
            }
            for call in self.calls
        ]  # fmt: skip


def cite(log: Calls, call_ids: Sequence[str]) -> Cited:
    """Look up calls and where their inputs come from.

    Args:
        log: the record of calls.
        call_ids: as results carry them.

    Raises:
        ToolError: `unknown_call`, or `call_not_usable` for one that did not succeed.
    """
    calls: list[CallRecord] = []
    for call_id in dict.fromkeys(call_ids):
        try:
            call = log.get_call(call_id)
        except KeyError:
            raise ToolError(
                f"There is no call {call_id[:60]!r} to cite", kind="unknown_call", where=call_id[:60],
                fix="Give the call_id of the result that is the evidence",
            ) from None  # fmt: skip
        if call.status != "ok":
            raise ToolError(
                f"Call {call_id} ({call.tool_id}) ended {call.status}: {call.error_message[:200]}",
                kind="call_not_usable", where=call_id, fix="Cite a call that succeeded",
            )  # fmt: skip
        calls.append(call)
    return Cited(tuple(calls), _origins(log, calls))


def _origins(log: Calls, calls: Iterable[CallRecord]) -> frozenset[str]:
    """Follow files back to the calls that made them: a mesh to the part that was meshed."""
    found = {each.sha256 for call in calls for each in call.inputs}
    fresh = set(found)
    for _ in range(PROVENANCE_DEPTH):
        made_from: set[str] = set()
        for sha256 in sorted(fresh)[:_MAX_FILES]:
            for use in log.uses_of(sha256, limit=20):
                if use.direction == "artefact":
                    made_from |= {each.sha256 for each in use.call.inputs}
        fresh = made_from - found
        if not fresh:
            break
        found |= fresh
    return frozenset(found)


@dataclass(frozen=True)
class Recorded:
    """Evidence as it was recorded, and what its reader should know."""

    node: Node
    result_hash: str
    executed_at: str
    supports: tuple[Pinned, ...]
    contradicts: tuple[Pinned, ...]
    valid_against: tuple[Pinned, ...]
    warnings: tuple[str, ...]


def record_evidence(
    change: "Change",
    *,
    evidence_type: str,
    statement: str,
    producer: Mapping[str, Any] | None,
    inputs: Mapping[str, Any],
    result: Mapping[str, Any],
    supports: Sequence[str],
    contradicts: Sequence[str],
    valid_against: Sequence[Pinned],
    supersedes: str,
    cited: Cited,
    session_id: str = "",
) -> Recorded:
    """Write evidence with its links, pinned.

    Raises:
        ToolError: an unknown reference; `empty_result`; `evidence_contradicts` where it violates what it is said to
            support; `producer_mismatch`, `missing_producer`.
    """
    _check_result(result, cited)
    speaks_for, speaks_against = pin_all(change.view, supports), pin_all(change.view, contradicts)
    _check_support(speaks_for, result)
    producer = _producer(producer, cited)
    content = orjson.dumps({"inputs": inputs, "result": result}, option=orjson.OPT_SORT_KEYS)
    result_hash = hashlib.sha256(content).hexdigest()
    executed_at = cited.calls[-1].started_at if cited.calls else change.now
    body = {
        "evidence_type": evidence_type, "statement": statement, "producer": producer, "inputs": dict(inputs),
        "result": dict(result), "calls": cited.as_json(), "valid_against": [each.ref for each in valid_against],
        "supports": [each.ref for each in speaks_for], "contradicts": [each.ref for each in speaks_against],
        "execution_timestamp": executed_at, "result_hash": result_hash,
    }  # fmt: skip
    if session_id:
        body["session_id"] = session_id
    name = statement[:200] or f"{evidence_type} by {producer['tool']}"
    node = change.record("evidence", body, name=name, supersedes=supersedes)
    link_to(change, LinkType.SUPPORTS, node, speaks_for)
    link_to(change, LinkType.CONTRADICTS, node, speaks_against)
    link_to(change, LinkType.VALID_AGAINST, node, valid_against)
    warnings = tuple(_doubts(valid_against, cited))
    return Recorded(node, result_hash, executed_at, speaks_for, speaks_against, tuple(valid_against), warnings)


def _check_result(result: Mapping[str, Any], cited: Cited) -> None:
    if says_something(result):
        return
    given = orjson.dumps(result).decode()
    source = f"the figures that {cited.calls[-1].tool_id} returned" if cited.calls else "what it shows"
    raise ToolError(
        f"The result {given if len(given) <= 80 else given[:80] + '...'} says nothing, so it is evidence of nothing",
        kind="empty_result", where="result",
        fix=f'Give {source}, units in the names: {{"max_von_mises_mpa": 120}}; or a finding in words: '
        '{"finding": "no crack after 1000 cycles"}',
    )  # fmt: skip


def says_something(value: Any) -> bool:
    """Whether a JSON value holds at least one number, truth value or word that is no placeholder."""
    if isinstance(value, Mapping):
        return any(says_something(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(says_something(each) for each in value)
    if isinstance(value, str):
        word = value.strip().strip(".?-_").casefold()
        return bool(word) and word not in _PLACEHOLDERS
    return value is not None


_PLACEHOLDERS = frozenset(("n/a", "na", "none", "null", "nil", "tbd", "tba", "todo", "unknown", "undefined", "nan"))


def _producer(given: Mapping[str, Any] | None, cited: Cited) -> dict[str, Any]:
    tools = {call.tool_id: call.adapter_version for call in cited.calls}
    if given is None:
        if not tools:
            raise ToolError(
                "Evidence needs to say what produced it", kind="missing_producer",
                fix="Give call_ids of the calls that produced it, or producer with tool and version",
            )  # fmt: skip
        tool = cited.calls[-1].tool_id
        return {"tool": tool, "version": tools[tool]}
    tool = str(given["tool"])
    if tools and tool not in tools:
        raise ToolError(
            f"The producer is said to be {tool}, the cited calls are of {', '.join(sorted(tools))}",
            kind="producer_mismatch", where="producer.tool", fix="Leave producer out: the cited calls tell it",
        )  # fmt: skip
    version = str(given.get("version") or "") or tools.get(tool, "")
    return {"tool": tool, "version": version} if version else {"tool": tool}


def _check_support(supports: Iterable[Pinned], result: Mapping[str, Any]) -> None:
    values = [Metrics(result, "the result")]
    for target in supports:
        entry = requirement_entry(target.node, target.requirement) if target.requirement else None
        if entry is None:
            continue
        judged = judge(entry, values)
        if judged.status == "fail":
            told = f"{judged.actual:g} {judged.unit}" if judged.actual is not None else judged.reason
            raise ToolError(
                f"The result violates {target.ref} ({words(entry)}) that it is said to support: {told}",
                kind="evidence_contradicts", where=target.ref, fix=f"Name {target.ref} in contradicts",
            )  # fmt: skip


def _doubts(valid_against: Iterable[Pinned], cited: Cited) -> Iterable[str]:
    if not cited.calls:
        yield "No call is cited: nothing shows that this evidence was made with what it is valid against"
        return
    if waiting := cited.files_waiting():
        first = waiting[0]
        yield (
            f"{counted(len(waiting), 'file', 'files')} of the cited calls cannot be relied on to be there later, "
            f"{first['path']} first: {first['reason']}"
        )
    for target in valid_against:
        sha256 = target.node.body.get("content_hash")
        if target.node.kind in WORK_PRODUCTS and sha256 and sha256 not in cited.origins:
            yield (
                f"The cited calls did not read the file of {target.ref} (SHA-256 {sha256[:12]}...) nor anything "
                "recorded as made from it: check that the evidence is about this revision"
            )


@dataclass(frozen=True)
class Claim:
    """A claim as it was recorded."""

    node: Node
    artefact: Pinned
    requirement: Pinned
    evidence: tuple[Pinned, ...]
    status: str
    reason: str


def record_claim(
    change: "Change", requirement: Pinned, artefact: Pinned, evidence: Sequence[Pinned], claim_type: str
) -> Claim:
    """Write a claim that an artefact satisfies a requirement, resting on evidence.

    Raises:
        ToolError: `not_evidence`.
    """
    for each in evidence:
        if each.node.kind != "evidence":
            raise ToolError(
                f"{each.ref} is a {each.node.kind} and no evidence", kind="not_evidence", where=each.ref,
                fix="Record it with twin.record_evidence and give that node_id",
            )  # fmt: skip
    status, reason = support_of(change.view, requirement, artefact, [each.node for each in evidence])
    body = {
        "claim_type": claim_type, "requirement": requirement.ref, "artefact": artefact.ref,
        "evidence": [each.ref for each in evidence], "status": status, "reason": reason,
    }  # fmt: skip
    node = change.record("claim", body, name=f"{artefact.ref} {claim_type} {requirement.ref}")
    link_to(change, LinkType.SATISFIES if claim_type == "satisfies" else claim_type, node, [requirement])
    link_to(change, LinkType.CLAIMS, node, [artefact])
    link_to(change, LinkType.CITES, node, evidence)
    return Claim(node, artefact, requirement, tuple(evidence), status, reason)


def support_of(view: "View", requirement: Pinned, artefact: Pinned, evidence: Iterable[Node]) -> tuple[str, str]:
    """Return supported or unsupported, and why.

    Evidence supports a claim when it is valid against this very revision, is not replaced, and its values meet the
    requirement. Evidence without a value supports only what is judged by people.
    """
    reasons: list[str] = []
    supporting = 0
    entry = requirement_entry(requirement.node, requirement.requirement) if requirement.requirement else None
    for node in evidence:
        if is_replaced(view, node):
            reasons.append(f"evidence {node.node_id} was replaced")
        elif not _is_valid_for(view, node, artefact.node):
            reasons.append(f"evidence {node.node_id} is not valid against {artefact.ref}")
        elif entry is None or not metrics_of(entry):
            supporting += 1
        else:
            judged = judge(entry, [Metrics(node.body.get("result") or {}, f"evidence {node.node_id}")])
            if judged.status == "fail":
                return "unsupported", f"evidence {node.node_id} violates {requirement.ref}: {judged.reason}"
            if judged.status == "pass":
                supporting += 1
            else:
                reasons.append(f"evidence {node.node_id} does not show it: {judged.reason}")
    if supporting:
        return "supported", f"by {counted(supporting, 'piece')} of evidence valid against {artefact.ref}"
    return "unsupported", "; ".join(reasons) or "no evidence is cited"


def _is_valid_for(view: "View", evidence: Node, artefact: Node) -> bool:
    links = view.links(evidence.node_id, type=LinkType.VALID_AGAINST, direction="outgoing")
    return any(
        link.target_node_id == artefact.node_id
        or (link.target_subject == artefact.subject and link.reviewed_revision == artefact.revision)
        for link in links
    )


def check_entity_kind(target: Pinned, entity_kind: str) -> None:
    """Refuse a reference that is not what the caller says it is; raises ToolError `other_kind`."""
    allowed = ENTITY_KINDS.get(entity_kind)
    fits = target.node.kind in allowed if allowed else target.node.kind not in sum(ENTITY_KINDS.values(), ())
    if not fits:
        raise ToolError(
            f"{target.ref} is a {target.node.kind} and no {entity_kind}", kind="other_kind", where=target.ref,
            fix="Give the entity_kind that fits: constraint, work_product or engineering_entity",
        )  # fmt: skip

"""Follow links: threads, impact, the trace matrix, baselines and release gates."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from metaforge.adapters.twin.answers import Row
from metaforge.core.counts import counted
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool
from metaforge.twin import trace
from metaforge.twin.baseline_diff import diff_baselines
from metaforge.twin.baselines import create_baseline
from metaforge.twin.gates import check_gates
from metaforge.twin.impact import impact
from metaforge.twin.links import LinkType, suspects
from metaforge.twin.matrix import Matrix, matrix
from metaforge.twin.model import Node
from metaforge.twin.pinning import CONSTRAINT_SET
from metaforge.twin.services import ToolGroup
from metaforge.twin.trace import Thread, node_row
from metaforge.twin.verification import Status
from metaforge.twin.view import View

MAX_ROWS = 200
GateName = Literal["suspect", "uncovered", "unverified", "open_drafts"]
StatusName = Literal["pass", "fail", "uncertain", "stale", "no_data"]


@dataclass(frozen=True)
class ThreadAnswer:
    nodes: list[Row]
    edges: list[Row]
    root_id: str
    depth: int
    truncated: bool = False


@dataclass(frozen=True, kw_only=True)
class UsedAnswer(ThreadAnswer):
    used: bool
    related_count: int
    note: str


@dataclass(frozen=True, kw_only=True)
class VerifiedAnswer(ThreadAnswer):
    verified: bool
    related_count: int
    note: str


@dataclass(frozen=True)
class ImpactAnswer:
    root: Row
    hit_count: int
    hits: list[Row]
    requirements: list[str]
    truncated: bool


@dataclass(frozen=True)
class MatrixAnswer:
    requirement_count: int
    status_counts: dict[str, int]
    requirements: list[Row]
    uncovered: list[Row]
    suspect: list[Row]
    seq: int


@dataclass(frozen=True)
class ReviewedAnswer:
    link_id: str
    type: str
    reviewed_revision: int
    reviewed_by: str
    still_suspect_count: int


@dataclass(frozen=True)
class BaselineAnswer:
    baseline_id: str
    name: str
    item_count: int
    seq: int
    digest: str


@dataclass(frozen=True)
class BaselineDiffAnswer:
    before: Row
    after: Row
    counts: dict[str, int]
    unchanged_count: int
    items: list[Row]
    links: list[Row]
    records: list[Row]


@dataclass(frozen=True)
class GatesAnswer:
    passed: bool
    gates: list[Row] = field(default_factory=list)


class Tracing(ToolGroup):
    """Tools that follow links, and two that write: a review and a baseline."""

    @tool(
        effect=Effect.READ, capability="twin_trace", title="Follow a digital thread",
        search_hint="links of a node, dependencies, what it derives from, traceability",
    )  # fmt: skip
    async def thread_for(
        self,
        ctx: Invocation,
        node_id: str,
        depth: Annotated[int, Field(ge=1, le=trace.MAX_DEPTH)] = 3,
        edge_types: list[str] | None = None,
        direction: Literal["outgoing", "incoming", "both"] = "outgoing",
        project_id: str | None = None,
    ) -> Answer[ThreadAnswer]:
        """Follow links from a node, exact revisions shown, suspect links marked.

        Args:
            node_id: Node id, KEY or KEY@n.
            depth: How many links far.
            edge_types: Only these, such as depends_on.
            direction: outgoing leads to what it rests on.
            project_id: When several projects have the key.
        """
        thread = await self.services.read(
            ctx, lambda view: trace.thread_for(view, node_id, depth, edge_types or (), direction), project_id=project_id
        )
        return Answer(ThreadAnswer(**_thread(thread)), f"{_thread_words(thread)}.")

    @tool(
        effect=Effect.READ, capability="twin_trace", title="Find where a node is used",
        search_hint="where used, parents in assemblies, who depends on this part",
    )  # fmt: skip
    async def where_used(
        self,
        ctx: Invocation,
        node_id: str,
        depth: Annotated[int, Field(ge=1, le=trace.MAX_USED_DEPTH)] = 2,
        project_id: str | None = None,
    ) -> Answer[UsedAnswer]:
        """Find what uses a node, directly or through others.

        Args:
            node_id: Node id, KEY or KEY@n.
            depth: How many links far.
            project_id: When several projects have the key.
        """
        thread, users = await self.services.read(
            ctx, lambda view: trace.where_used(view, node_id, depth), project_id=project_id
        )
        shown = ", ".join(node.ref for node in users[:8])
        note = f"used by {shown}" if users else f"nothing within {counted(depth, 'link')} uses it"
        answer = UsedAnswer(**_thread(thread), used=bool(users), related_count=len(users), note=note)
        return Answer(answer, f"{thread.root.ref}: {note}.")

    @tool(
        effect=Effect.READ, capability="twin_trace", title="Find what verifies a node",
        search_hint="evidence, claims, tests and simulations for a requirement or part",
    )  # fmt: skip
    async def what_verifies(
        self,
        ctx: Invocation,
        node_id: str,
        depth: Annotated[int, Field(ge=1, le=trace.MAX_USED_DEPTH)] = 2,
        project_id: str | None = None,
    ) -> Answer[VerifiedAnswer]:
        """Find the evidence, claims and verification cases that speak about a node.

        Args:
            node_id: Node id, KEY or KEY@n.
            depth: How many links far.
            project_id: When several projects have the key.
        """

        def look(view: View) -> tuple[Thread, list[Node], bool]:
            thread, found = trace.what_verifies(view, node_id, depth)
            return thread, found, _is_verified(view, thread, found)

        thread, found, verified = await self.services.read(ctx, look, project_id=project_id)
        count = len(found) - len(_doubtful(thread, found))
        note = (
            f"{counted(len(found), 'record speaks', 'records speak')} about it, {count} of them about what is current"
        )
        answer = VerifiedAnswer(**_thread(thread), verified=verified, related_count=len(found), note=note)
        verdict = "verified" if verified else "not shown to hold"
        return Answer(
            answer, f"{thread.root.ref}: {verdict}; {note}.", next_step="twin.trace_matrix tells how requirements stand"
        )

    @tool(
        effect=Effect.READ, capability="twin_trace", title="Analyse the impact of a change",
        search_hint="what breaks if I change this; affected parts, evidence, requirements",
    )  # fmt: skip
    async def impact_of(
        self,
        ctx: Invocation,
        node_id: str,
        way: Literal["up", "down"] = "up",
        depth: Annotated[int, Field(ge=1, le=32)] = 8,
        project_id: str | None = None,
    ) -> Answer[ImpactAnswer]:
        """Find everything current that a change would touch.

        Args:
            node_id: Node id, KEY or KEY@n.
            way: up: what rests on it; down: what it rests on.
            depth: How many links far.
            project_id: When several projects have the key.
        """
        found = await self.services.read(ctx, lambda view: impact(view, node_id, way, depth), project_id=project_id)
        told = found.as_json()
        answer = ImpactAnswer(
            told["root"], len(found.hits), told["hits"][:MAX_ROWS], told["requirements"], found.truncated
        )
        what = ("rests on it", "rest on it") if way == "up" else ("is what it rests on", "are what it rests on")
        more = (f"The first {MAX_ROWS} of {len(found.hits)} are listed",) if len(found.hits) > MAX_ROWS else ()
        requirements = counted(len(found.requirements), "requirement")
        touched = f"; verification of {requirements} goes through them" if found.requirements else ""
        within = f"{counted(len(found.hits), *what)}, within {counted(depth, 'link')}"
        return Answer(answer, f"{found.root.ref}: {within}{touched}.", warnings=more)

    @tool(
        effect=Effect.READ, capability="twin_trace", title="Read the trace matrix",
        search_hint="requirement status, coverage, unverified, stale evidence, suspect links",
    )  # fmt: skip
    async def trace_matrix(
        self,
        ctx: Invocation,
        project_id: str | None = None,
        status: list[StatusName] | None = None,
        offset: Annotated[int, Field(ge=0)] = 0,
    ) -> Answer[MatrixAnswer]:
        """Read how every requirement stands, what verifies it, what nothing answers, and every suspect link.

        Args:
            project_id: Another project than the opened one.
            status: Only requirements that stand so.
            offset: Entries of each list to pass over.
        """
        found, doubtful = await self.services.read(
            ctx, lambda view: (matrix(view), suspects(view)), project_id=project_id
        )
        rows = [row for row in found.rows if not status or row.status in status]
        page = slice(offset, offset + MAX_ROWS)
        suspect = [
            {"link_id": each.link.link_id, "type": each.link.type, "pinned_ref": each.pinned_ref, "why": each.why}
            | {"source": node_row(each.source)}
            for each in doubtful[page]
        ]
        answer = MatrixAnswer(
            len(found.rows), found.counts(), [row.as_json() for row in rows[page]],
            [gap.as_json() for gap in found.uncovered[page]], suspect, found.seq,
        )  # fmt: skip
        most = max(len(rows), len(found.uncovered), len(doubtful))
        more = (
            (f"Lists end after {MAX_ROWS} entries and the longest has {most}: go on with offset={page.stop}",)
            if most > page.stop else ()
        )  # fmt: skip
        step = "Repeat what is suspect, or twin.review_link where it still holds" if doubtful else ""
        return Answer(
            answer, f"{_matrix_words(found)}; {counted(len(doubtful), 'suspect link')}.", warnings=more, next_step=step
        )

    @tool(
        effect=Effect.WRITE, capability="twin_review", title="Review a suspect link",
        search_hint="clear a suspect flag after looking at evidence, claim or dependency again",
    )  # fmt: skip
    async def review_link(
        self, ctx: Invocation, link_id: str, reason: str, project_id: str | None = None
    ) -> Answer[ReviewedAnswer]:
        """State that a suspect link still holds for its target's current revision; who says so is kept.

        Args:
            link_id: From twin.trace_matrix.
            reason: Why it still holds.
            project_id: Another project than the opened one.
        """
        made, left = await self.services.change(
            ctx,
            lambda change: (change.review(link_id), suspects(change.view)),
            project_id=project_id,
            reason=reason,
        )
        assert made.reviewed_revision is not None, "a review is against a revision"
        answer = ReviewedAnswer(link_id, made.type, made.reviewed_revision, made.reviewed_by, len(left))
        return Answer(
            answer, f"Reviewed against revision {made.reviewed_revision}; {counted(len(left), 'link')} still suspect."
        )

    @tool(
        effect=Effect.WRITE, capability="twin_baseline", title="Create a baseline",
        search_hint="freeze, tag, snapshot the design for a review or release",
    )  # fmt: skip
    async def create_baseline(
        self, ctx: Invocation, name: str, note: str = "", project_id: str | None = None
    ) -> Answer[BaselineAnswer]:
        """Freeze the approved heads of all items under a name; it never changes, drafts are not in it.

        Args:
            name: One line, such as PDR-1.
            note: Why it is made.
            project_id: Another project than the opened one.
        """
        made = await self.services.change(
            ctx, lambda change: create_baseline(change, name, note), project_id=project_id, reason=note
        )
        answer = BaselineAnswer(made.baseline_id, made.name, made.item_count, made.seq, made.digest)
        return Answer(
            answer,
            f"Baseline {made.name}: {counted(made.item_count, 'item')} frozen, SHA-256 {made.digest[:12]}.",
            next_step=f"twin.compare_baselines before={made.name} tells what changes from now on",
        )

    @tool(
        effect=Effect.READ, capability="twin_baseline", title="Compare baselines",
        search_hint="diff, change report, what changed since the review",
    )  # fmt: skip
    async def compare_baselines(
        self, ctx: Invocation, before: str, after: str = "now", project_id: str | None = None
    ) -> Answer[BaselineDiffAnswer]:
        """Tell what was added, revised and removed between two baselines, field by field, and why.

        Args:
            before: A baseline's name.
            after: Another's, or now.
            project_id: Another project than the opened one.
        """
        found = await self.services.read(ctx, lambda view: diff_baselines(view, before, after), project_id=project_id)
        told = found.as_json()
        for name in ("items", "links", "records"):
            told[name] = told[name][:MAX_ROWS]
        counts = ", ".join(f"{count} {what}" for what, count in found.counts().items())
        most = max(len(found.items), len(found.links), len(found.records))
        more = (f"Lists end after {MAX_ROWS} entries; the longest has {most}",) if most > MAX_ROWS else ()
        summary = f"{before} to {after}: {counts} items, {counted(len(found.records), 'record')} between."
        return Answer(BaselineDiffAnswer(**told), summary, warnings=more)

    @tool(
        effect=Effect.READ, capability="twin_gate", title="Check the release gates",
        search_hint="ready for release? suspect, uncovered, unverified, open drafts",
    )  # fmt: skip
    async def check_release_gates(
        self, ctx: Invocation, gates: list[GateName] | None = None, project_id: str | None = None
    ) -> Answer[GatesAnswer]:
        """Ask what stands in the way of a release, and what a person has waived; decides nothing.

        Args:
            gates: Only these; all by default.
            project_id: Another project than the opened one.
        """
        found = await self.services.read(ctx, lambda view: check_gates(view, gates or ()), project_id=project_id)
        rows = [result.as_json() for result in found]
        for row in rows:
            row |= {name: row[name][:MAX_ROWS] for name in ("obstacles", "waived")}
        passed = all(result.passed for result in found)
        told = ", ".join(f"{len(result.obstacles)} {result.name}" for result in found if not result.passed)
        waived = sum(len(result.waived) for result in found)
        accepted = f" {counted(waived, 'obstacle is', 'obstacles are')} waived." if waived else ""
        verdict = "Nothing is in the way of a release." if passed else f"Not ready for release: {told}."
        return Answer(
            GatesAnswer(passed, rows),
            verdict + accepted,
            next_step="" if passed else str(next(row for row in rows if row["obstacles"])["obstacles"][0]["fix"]),
        )


def _thread(thread: Thread) -> Row:
    told = thread.as_json()
    return {name: told[name] for name in ("nodes", "edges", "root_id", "depth")} | {"truncated": thread.truncated}


def _thread_words(thread: Thread) -> str:
    doubtful = sum(edge.suspect for edge in thread.edges)
    words = (
        f"{thread.root.ref}: {counted(len(thread.nodes) - 1, 'node')} and {counted(len(thread.edges), 'link')} within "
        f"{counted(thread.depth, 'link')}"
    )
    return words + (f", {doubtful} of them suspect" if doubtful else "")


def _doubtful(thread: Thread, found: list[Node]) -> set[str]:
    doubtful = {edge.link.source_node_id for edge in thread.edges if edge.suspect}
    return doubtful & {node.node_id for node in found}


def _is_verified(view: View, thread: Thread, found: list[Node]) -> bool:
    """Requirements are as the matrix judges them; anything else needs current evidence and none against it."""
    if thread.root.kind == CONSTRAINT_SET:
        rows = [row for row in matrix(view).rows if row.set_ref == thread.root.ref]
        return bool(rows) and all(row.status is Status.PASS for row in rows)
    proofs = {node.node_id for node in found if node.kind != "verification_case"} - _doubtful(thread, found)
    against = {edge.link.source_node_id for edge in thread.edges if edge.link.type == LinkType.CONTRADICTS}
    return bool(proofs) and not proofs & against


def _matrix_words(found: Matrix) -> str:
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.counts().items() if count)
    return f"{counted(len(found.rows), 'requirement')}: {counts or 'none'}; {len(found.uncovered)} not covered"

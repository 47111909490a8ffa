"""Record what was decided and why: decisions, documents, engineering entities, components."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from metaforge.adapters.twin.answers import (
    ComponentAnswer,
    DecisionAnswer,
    DocumentAnswer,
    EntityAnswer,
    homeless,
    left_behind,
    suspect_warning,
    written,
)
from metaforge.core.errors import InvalidArguments
from metaforge.core.ids import sha256_bytes
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool
from metaforge.twin import components, prd, waivers
from metaforge.twin.change import Change
from metaforge.twin.kinds import DEFINITIONS
from metaforge.twin.links import LinkType
from metaforge.twin.model import Node
from metaforge.twin.pinning import link_to, pin_all
from metaforge.twin.requirements import current_sets
from metaforge.twin.services import ToolGroup

EntityType = Literal[
    "intent", "stakeholder_need", "objective", "assumption", "question", "risk", "verification_case", "evidence",
    "budget", "invariant", "waiver", "release_approval", "concept_option",
]  # fmt: skip
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[float, Field(gt=0)]


class Alternative(BaseModel):
    model_config = ConfigDict(extra="forbid")

    option: Name
    reason_rejected: str = ""


class Decisions(ToolGroup):
    """Tools that add to the record. A reference that is unknown fails the call with nothing written."""

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record a decision",
        search_hint="why this was chosen, alternatives, rationale, depends on requirements",
    )  # fmt: skip
    async def record_decision(
        self,
        ctx: Invocation,
        title: Name,
        rationale: Name,
        alternatives: list[Alternative] | None = None,
        parent_refs: list[str] | None = None,
        evidence_refs: list[str] | None = None,
        relation: str = "derives_from",
        depends_on: list[str] | None = None,
        supersedes: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[DecisionAnswer]:
        """Record a design decision with what it rests on, pinned to exact revisions.

        Args:
            title: What was decided.
            rationale: Why; kept whole.
            alternatives: What was rejected.
            parent_refs: What it follows from.
            evidence_refs: Evidence it cites.
            relation: To its parents.
            depends_on: KEY, KEY@n, KEY#requirement it rests on: suspect once one is revised.
            supersedes: Node id of the decision it replaces.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """

        def write(change: Change) -> DecisionAnswer:
            parents = pin_all(change.view, parent_refs or ())
            cited = pin_all(change.view, evidence_refs or ())
            rests_on = pin_all(change.view, depends_on or ())
            body: dict[str, Any] = {
                "title": title, "rationale": rationale,
                "alternatives": [each.model_dump() for each in alternatives or ()],
                "depends_on": [each.ref for each in rests_on],
            }  # fmt: skip
            body |= _of_session(session_id)
            node = change.record("design_decision", body, name=title, supersedes=supersedes or "")
            link_to(change, relation, node, parents)
            link_to(change, LinkType.CITES, node, cited)
            link_to(change, LinkType.DEPENDS_ON, node, rests_on)
            return DecisionAnswer(
                **written(node),
                parent_refs=[each.ref for each in parents],
                evidence_refs=[each.ref for each in cited],
                depends_on=[each.ref for each in rests_on],
            )

        answer = await self.services.change(ctx, write, project_id=project_id)
        rest = f", resting on {', '.join(answer.depends_on)}" if answer.depends_on else ""
        return Answer(answer, f"Decision {answer.node_id} recorded{rest}.", warnings=homeless(answer.project_linked))

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record a document",
        search_hint="save prd prose, documentation, load case, simulation report",
    )  # fmt: skip
    async def record_document(
        self,
        ctx: Invocation,
        name: Name,
        content: Name,
        document_type: Literal["prd", "documentation", "robot_description", "simulation_result", "load_case"],
        format: str = "markdown",
        metadata: dict[str, Any] | None = None,
        source_part_node_ids: list[str] | None = None,
        evidence_node_id: str | None = None,
        item_key: str | None = None,
        supersedes: str | None = None,
        change_reason: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[DocumentAnswer]:
        """Record a text, whole. A prd is the project's prose: its numbers belong in twin.record_constraint_set.

        Args:
            name: Title.
            content: The text.
            document_type: A project has one prd; the next one is its next revision.
            format: Of the text.
            metadata: More about it.
            source_part_node_ids: Parts or revisions it is about.
            evidence_node_id: Evidence it reports.
            item_key: prd only - KEY, or KEY@n to assert the head.
            supersedes: Node id of what it replaces.
            change_reason: prd only - why it differs.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """

        def write(change: Change) -> DocumentAnswer:
            parts = pin_all(change.view, source_part_node_ids or ())
            cited = pin_all(change.view, [evidence_node_id] if evidence_node_id else ())
            raw = content.encode()
            body: dict[str, Any] = {
                "title": name, "content": content, "format": format, "content_hash": sha256_bytes(raw),
                "size_bytes": len(raw), "metadata": metadata or {}, **_of_session(session_id),
            }  # fmt: skip
            told: dict[str, Any] = {}
            if document_type == "prd":
                node = change.define(
                    "prd", name, body,
                    item_key=item_key or "", supersedes=supersedes or "", change_reason=change_reason or "",
                )  # fmt: skip
                told = _requirements_of_prd(change, content)
            else:
                node = change.record(document_type, body, name=name, supersedes=supersedes or "")
            link_to(change, "describes", node, parts)
            link_to(change, LinkType.CITES, node, cited)
            return DocumentAnswer(**written(node), size_bytes=len(raw), **told)

        answer = await self.services.change(ctx, write, project_id=project_id)
        warnings = homeless(answer.project_linked)
        if answer.requirement_warning:
            warnings = (answer.requirement_warning, *warnings)
        what = answer.item_ref or f"{document_type} {answer.node_id}"
        return Answer(answer, f"{what} recorded, {answer.size_bytes} bytes.", warnings=warnings)

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record an engineering entity",
        search_hint="intent, stakeholder need, objective, risk, assumption, question, verification case",
    )  # fmt: skip
    async def record_engineering_entity(
        self,
        ctx: Invocation,
        entity_type: EntityType,
        statement: Name,
        title: str | None = None,
        extra: dict[str, Any] | None = None,
        parent_refs: list[str] | None = None,
        relation: str = "derives_from",
        item_key: str | None = None,
        supersedes: str | None = None,
        change_reason: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[EntityAnswer]:
        """Record an intent, need, objective (each a revised item), or a risk, assumption, question and the like.

        Args:
            entity_type: What it is.
            statement: In one or a few sentences; kept whole.
            title: Short name; the same name is the same item.
            extra: More fields.
            parent_refs: What it comes from, or what a waiver waives: KEY, KEY@n, KEY#requirement, node ids.
            relation: How it relates to its parents.
            item_key: Item to revise: KEY, or KEY@n to assert its head.
            supersedes: Node id of an earlier revision or replaced record.
            change_reason: Why it differs from the revision before.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """
        revised = entity_type in DEFINITIONS
        if item_key and not revised:
            raise InvalidArguments(
                f"twin.record_engineering_entity: a {entity_type} is no item and has no key",
                fields={"item_key": "leave it out; supersedes names a record that this one replaces"},
            )
        is_waiver = entity_type == waivers.KIND
        if is_waiver and not parent_refs:
            raise InvalidArguments(
                "twin.record_engineering_entity: a waiver names what it waives",
                fields={"parent_refs": "give requirements as KEY#name, needs, objectives, or what is suspect"},
            )
        waived: list[dict[str, Any]] = []
        idle: list[str] = []
        if is_waiver:
            # All requirements are judged for it: not while others wait to write.
            waived, idle = await self.services.read(
                ctx, lambda view: waivers.waived(view, pin_all(view, parent_refs or ())), project_id=project_id
            )

        def write(change: Change) -> tuple[Node, EntityAnswer]:
            parents = pin_all(change.view, parent_refs or ())
            name = title or statement[:120]
            body = {"statement": statement, "extra": extra or {}, **_of_session(session_id)}
            body |= {"title": title} if title else {}
            if is_waiver:
                body["waives"] = waivers.unmoved(waived, parents)
            if revised:
                node = change.define(
                    entity_type, name, body,
                    item_key=item_key or "", supersedes=supersedes or "", change_reason=change_reason or "",
                )  # fmt: skip
            else:
                node = change.record(entity_type, body, name=name, supersedes=supersedes or "")
            link_to(change, LinkType.WAIVES if is_waiver else relation, node, parents)
            suspect = left_behind(change, node)
            return node, EntityAnswer(
                **written(node), entity_type=entity_type, parent_ids=[each.ref for each in parents],
                suspect=suspect or None,
            )  # fmt: skip

        node, answer = await self.services.change(ctx, write, project_id=project_id)
        needless = (f"Nothing stands in the way of {', '.join(idle)} now: there it waives nothing",) if idle else ()
        return Answer(
            answer,
            f"{entity_type} {node.ref} recorded."
            + (" It changes nothing until a person has approved it." if is_waiver else ""),
            warnings=(*suspect_warning(node, answer.suspect or []), *needless, *homeless(answer.project_linked)),
            next_step=f"twin.approve_engineering_entity node_id={node.node_id} state=approved, decided by a person"
            if is_waiver else "",
        )  # fmt: skip

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Record a component selection",
        search_hint="choose a bought part: mpn, manufacturer, price, footprint, bill of materials",
    )  # fmt: skip
    async def record_component_selection(
        self,
        ctx: Invocation,
        mpn: Name,
        manufacturer: Name,
        category: Name,
        purchase_unit: Literal["discrete_part", "cots_assembly"] = "discrete_part",
        role: str | None = None,
        quantity: Annotated[int, Field(ge=1)] = 1,
        unit_cost_usd: Annotated[float, Field(ge=0)] | None = None,
        specs: dict[str, Any] | None = None,
        source: str | None = None,
        distributor: str | None = None,
        datasheet_url: str | None = None,
        image_url: str | None = None,
        footprint: str | None = None,
        cad_model_url: str | None = None,
        purchase_url: str | None = None,
        price_currency: str | None = None,
        priced_distributor: str | None = None,
        item_key: str | None = None,
        supersedes: str | None = None,
        change_reason: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> Answer[ComponentAnswer]:
        """Record a bought component as an item, and revise the project's bill of materials with it.

        Args:
            mpn: Manufacturer part number.
            manufacturer: Who makes it.
            category: Such as mcu, ldo, bearing.
            purchase_unit: What is bought.
            role: What it does in the design; the same role is the same item, whatever part fills it.
            quantity: How many a product.
            unit_cost_usd: Price of one.
            specs: Figures, units in their names (max_current_a).
            source: Where the facts come from.
            distributor: Who sells it.
            datasheet_url: Address.
            image_url: Address.
            footprint: Name of the land pattern.
            cad_model_url: Address.
            purchase_url: Address.
            price_currency: When the price was quoted in another one.
            priced_distributor: Whose price it is.
            item_key: Item to revise: KEY, or KEY@n to assert its head.
            supersedes: Node id of an earlier revision.
            change_reason: Why it differs from the revision before.
            project_id: Another project than the opened one.
            session_id: Work session it was made in.
        """
        facts = {
            "mpn": mpn, "manufacturer": manufacturer, "category": category, "purchase_unit": purchase_unit,
            "role": role, "quantity": quantity, "unit_cost_usd": unit_cost_usd, "specs": specs, "source": source,
            "distributor": distributor, "datasheet_url": datasheet_url, "image_url": image_url, "footprint": footprint,
            "cad_model_url": cad_model_url, "purchase_url": purchase_url, "price_currency": price_currency,
            "priced_distributor": priced_distributor, **_of_session(session_id),
        }  # fmt: skip
        body = {name: value for name, value in facts.items() if value not in (None, "", {})}

        def write(change: Change) -> tuple[Node, Node | None, ComponentAnswer]:
            node = change.define(
                "component_selection", role or mpn, body,
                item_key=item_key or "", supersedes=supersedes or "", change_reason=change_reason or "",
            )  # fmt: skip
            bom = components.revise_bom(change, node) if change.project_id else None
            suspect = left_behind(change, node)
            return node, bom, ComponentAnswer(
                **written(node), mpn=mpn, category=category, suspect=suspect or None,
                bom_work_product_id=bom.node_id if bom else None, bom_ref=bom.ref if bom else None,
            )  # fmt: skip

        node, bom, answer = await self.services.change(ctx, write, project_id=project_id)
        listed = f", listed in {bom.ref}" if bom else ""
        return Answer(
            answer,
            f"{node.ref}: {quantity} x {mpn} by {manufacturer}{listed}.",
            warnings=(*suspect_warning(node, answer.suspect or []), *homeless(answer.project_linked)),
        )


def _requirements_of_prd(change: Change, content: str) -> dict[str, Any]:
    sets = current_sets(change.view) if change.project_id else []
    stray = prd.stray_values(content, sets)
    told: dict[str, Any] = {
        "requirements_home": prd.HOME.format(project_id=change.project_id or "{project_id}"),
        "requirement_refs": [node.ref for node in sets],
    }
    if stray:
        told |= {"stray_requirement_values": stray, "requirement_warning": prd.stray_warning(stray)}
    return told


def _of_session(session_id: str | None) -> dict[str, Any]:
    return {"session_id": session_id} if session_id else {}

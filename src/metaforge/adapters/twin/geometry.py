"""Commit geometry, and put a committed file back into the workspace."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from metaforge.adapters.twin.answers import GeometryAnswer, StagedAnswer, left_behind, suspect_warning, written
from metaforge.tools.context import Answer, Artefact, Invocation, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.paths import InputPath
from metaforge.tools.tool import tool
from metaforge.twin import geometry
from metaforge.twin.change import Change
from metaforge.twin.geometry import Measured
from metaforge.twin.model import Node
from metaforge.twin.pinning import link_to, pin_all, work_product
from metaforge.twin.services import ToolGroup

Format = Literal["step", "brep", "stl"]
_NAMED_PROPERTIES = ("material", "density_kg_m3")


class Geometry(ToolGroup):
    """Tools on parts and assemblies. What is measured is measured of exactly the bytes that are kept."""

    @tool(
        effect=Effect.WRITE, capability="twin_write", title="Commit geometry", timeout_seconds=300,
        search_hint="save a STEP part or assembly to the design record as the next revision",
    )  # fmt: skip
    async def commit_geometry(
        self,
        ctx: Invocation,
        name: Annotated[str, Field(min_length=1)],
        file_path: InputPath | None = None,
        session_id: str | None = None,
        obj_id: str | None = None,
        step_base64: str | None = None,
        format: Format | None = None,
        domain: str | None = None,
        script_source: str | None = None,
        parameters: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        source_tool: str | None = None,
        depends_on: list[str] | None = None,
        item_key: str | None = None,
        supersedes: str | None = None,
        change_reason: str | None = None,
        project_id: str | None = None,
    ) -> Answer[GeometryAnswer]:
        """Commit a part or assembly as the next revision of its item, measured by the CAD kernel.

        Args:
            name: The same name is the same item.
            file_path: STEP file, as CAD tools return it.
            session_id: CAD session that exported it, with obj_id.
            obj_id: Exported object of that session.
            step_base64: The file itself, if there is no other way.
            format: By default that of the file.
            domain: Such as mechanical.
            script_source: Script that made it.
            parameters: Of the script or tool.
            properties: Known beside its shape; material or density_kg_m3 give the mass.
            source_tool: Tool that made it.
            depends_on: KEY, KEY@n, KEY#requirement it was designed to.
            item_key: Item to revise: KEY, or KEY@n to assert its head.
            supersedes: Node id of an earlier revision.
            change_reason: Why it differs from the revision before.
            project_id: Another project than the opened one.
        """
        services = self.services
        form = geometry.format_of(file_path or "", format)
        content = self._content(session_id or "", obj_id or "", step_base64, file_path)
        geometry.check_content(content, form)
        given = properties or {}
        material = {each: given[each] for each in _NAMED_PROPERTIES if given.get(each)}
        measured = await services.measurer.measure(content, form, material, ctx)
        sha256 = await services.keep(content)
        origin = {
            "file_path": file_path, "session_id": session_id, "obj_id": obj_id, "source_tool": source_tool,
            "call_id": ctx.call_id,
        }  # fmt: skip
        said = {"domain": domain, "script_source": script_source, "parameters": parameters, "properties": properties}
        body = geometry.body_of(
            content_hash=sha256,
            size_bytes=len(content),
            format=form,
            measured=measured,
            said={each: value for each, value in said.items() if value},
            origin={each: value for each, value in origin.items() if value},
        )

        def write(change: Change) -> tuple[Node, Node | None, list[dict[str, Any]]]:
            rests_on = pin_all(change.view, depends_on or ())
            node = change.define(
                "assembly" if measured.is_assembly else "cad_model", name, body,
                item_key=item_key or "", supersedes=supersedes or "", change_reason=change_reason or "",
            )  # fmt: skip
            link_to(change, "depends_on", node, rests_on)
            before = change.view.nodes([node.prior_node_id]).get(node.prior_node_id)
            return node, before, left_behind(change, node)

        node, before, suspect = await services.change(ctx, write, project_id=project_id)
        unchanged = before.ref if before is not None and before.body.get("content_hash") == sha256 else None
        answer = GeometryAnswer(
            **written(node), suspect=suspect or None, content_uri=f"metaforge://artefacts/{sha256}",
            model_url=f"metaforge://items/{node.project_id or '-'}/{node.ref}", format=form, size_bytes=len(content),
            measured=dict(body["measured"]), measured_properties_missing=measured.missing or None,
            unchanged_since=unchanged,
        )  # fmt: skip
        return Answer(
            answer,
            _summary(node, measured, len(content)),
            warnings=_warnings(node, measured, given, suspect, unchanged),
            next_step=f"twin.record_evidence valid_against {node.ref}, once it was analysed",
            programs=dict(measured.programs),
        )

    def _content(self, session_id: str, obj_id: str, step_base64: str | None, file_path: str | None) -> bytes:
        """Return the bytes to commit; an export that the server kept has been put into step_base64 before."""
        if step_base64:
            return geometry.decode_step(step_base64)
        if file_path:
            return geometry.read_file(self.services.workspace, file_path)
        raise geometry.missing_geometry(session_id, obj_id)

    @tool(
        effect=Effect.PRODUCE, capability="twin_read", title="Stage a work product's file", idempotent=True,
        search_hint="get the STEP file of a committed part into the workspace to load or edit it",
    )  # fmt: skip
    async def stage_work_product_file(
        self, ctx: Invocation, node_id: str, project_id: str | None = None
    ) -> Answer[StagedAnswer]:
        """Put the file of a committed part into the workspace, so that CAD and analysis tools can read it.

        Args:
            node_id: Node id, KEY or KEY@n.
            project_id: When several projects have the key.
        """
        services = self.services
        node = await services.read(ctx, lambda view: work_product(view, node_id), project_id=project_id)
        sha256 = str(node.body["content_hash"])
        path = geometry.staged_name(node.ref, sha256, str(node.body["format"]))
        size_bytes = await services.stage(sha256, path, node.ref)
        answer = StagedAnswer(
            node.node_id, node.ref, path, Path(path).name, size_bytes, sha256, str(node.body["format"])
        )
        next_step = (
            f"freecad.import_step with file_path {path} loads it for editing, freecad.describe_step_file with "
            f"input_file {path} lists its parts; cadquery.get_properties and calculix.run_fea read the same path"
        )
        file = Artefact(
            path, str(services.workspace / path), sha256, size_bytes, str(node.body["media_type"]), "geometry"
        )
        return _with_file(answer, f"{node.ref} staged as {path}, {size_bytes} bytes.", next_step, file)


def _with_file(answer: StagedAnswer, summary: str, next_step: str, file: Artefact) -> Answer[StagedAnswer]:
    """The file is in the workspace already: an Outcome links it, where an Answer would have it collected."""
    outcome: Any = Outcome(dict(vars(answer)), summary, next_step=next_step, files=(file,))
    return outcome  # type: ignore[no-any-return]


def _summary(node: Node, measured: Measured, size_bytes: int) -> str:
    found = measured.properties
    told = f"{node.ref} committed, {size_bytes} bytes"
    if (volume := found.get("volume_mm3")) is not None:
        told += f", volume {volume:.6g} mm3"
    if size := (found.get("bounding_box_mm") or {}).get("size_mm"):
        told += f", {' x '.join(f'{each:.6g}' for each in size)} mm"
    if (mass := found.get("mass_kg")) is not None:
        told += f", mass {mass:.4g} kg"
    return told + "."


def _warnings(
    node: Node, measured: Measured, given: dict[str, Any], suspect: list[dict[str, Any]], unchanged: str | None
) -> tuple[str, ...]:
    told = [*measured.warnings, *geometry.disagreements(given, measured.properties), *suspect_warning(node, suspect)]
    if measured.missing:
        why = f": {measured.problem}" if measured.problem else ""
        told.append(f"Committed without {', '.join(measured.missing)}{why}")
    if unchanged:
        told.append(f"The file is byte for byte that of {unchanged}")
    if not node.project_id:
        told.append("It belongs to no project: give project_id, or project.open one first, to make it an item")
    return tuple(told)

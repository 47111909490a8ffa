"""Tools that open, close and describe sessions, and run scripts in them."""

from typing import Annotated, Any

from pydantic import Field

from metaforge.adapters.freecad.steps import FREECAD, Group, look, step
from metaforge.adapters.freecad.told import Told, changed, facts_of, judge, measured, words
from metaforge.engineering.solid_guard import Change
from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool

SCRIPT_MARGIN_SECONDS = 5.0


class SessionTools(Group):
    """A session is one live FreeCAD document: what one call changes, the next one finds."""

    @tool(
        effect=Effect.PRODUCE, capability="cad_session", title="Open FreeCAD session", session="open",
        needs=(FREECAD,), timeout_seconds=120, max_memory_mb=3072,
        search_hint="start CAD modelling in FreeCAD: sketch, pad, pocket, fillet, assembly",
    )  # fmt: skip
    def open_session(self, ctx: ToolContext, name: str = "Session") -> Answer[Told]:
        """Open a live FreeCAD document. It ends when closed, or after half an hour unused.

        Args:
            name: What to call it.
        """
        session = self.workbench.open(name)
        return Answer(
            {"session_id": session.session_id, "name": name, "freecad_version": session.process.version},
            f"Session {session.session_id} is open (FreeCAD {session.process.version}).",
            next_step="freecad.create_body, then create_sketch and pad_sketch; or create_primitive, import_step",
            programs={"FreeCAD": session.process.version},
        )

    @tool(
        effect=Effect.PRODUCE, capability="cad_session", title="Close FreeCAD session", search_hint="end a CAD session",
        session="close",
        needs=(FREECAD,), timeout_seconds=60, max_memory_mb=3072,
    )  # fmt: skip
    def close_session(self, ctx: ToolContext, session_id: str) -> Answer[Told]:
        """End a session. Its document is gone; exported files stay.

        Args:
            session_id: From open_session.
        """
        session = self.workbench.close(session_id)
        return Answer({"closed": True, "session_id": session_id}, f"Session {session.name} is closed.")

    @look(title="Describe session", search_hint="list the objects of a CAD session")
    def describe_session(self, ctx: ToolContext, session_id: str) -> Answer[Told]:
        """List a session's objects with id, kind, volume, box, and what is pinned or imported.

        Args:
            session_id: From open_session.
        """
        session = self.workbench.find(session_id)
        objects = [self._object(each) for each in session.ask("describe_session", ctx.timeout_seconds)["objects"]]
        for each in objects:
            if each["obj_id"] in session.colours:
                each["color"] = list(session.colours[each["obj_id"]])
        data = {"session_id": session_id, "name": session.name, "object_count": len(objects), "objects": objects}
        listed = ", ".join(str(each["obj_id"]) for each in objects[:12])
        return Answer(data, f"{session.name}: {len(objects)} objects{f': {listed}' if objects else ''}.")

    def _object(self, told: dict[str, Any]) -> dict[str, Any]:
        facts = told.pop("facts", None)
        return told if facts is None else told | measured(facts_of(facts))

    @step(
        effect=Effect.DESTROY, title="Run FreeCAD script", runs_caller_code=True, timeout_seconds=300,
        search_hint="run Python in FreeCAD on the session's document",
    )  # fmt: skip
    def execute_code(
        self, ctx: ToolContext, session_id: str, code: Annotated[str, Field(min_length=1)], picture: bool = False
    ) -> Answer[Told]:
        """Run Python on the session's document (names: doc, App, Part, obj). Assign `result` to get it back.

        A failing script leaves the document as it was. A shape assigned to a parametric object stays.

        Args:
            session_id: From open_session.
            code: The script; it has no network and cannot write files that are kept.
            picture: Also draw the object in result.
        """
        session = self.workbench.find(session_id)
        session.ran_code = True
        seconds = max(1.0, ctx.timeout_seconds - SCRIPT_MARGIN_SECONDS)
        reply = session.ask("execute_code", ctx.timeout_seconds, code=code, seconds=seconds)
        data: dict[str, Any] = {"executed": True, "session": session_id, "result": reply["result"]}
        for name, key in (("printed", "printed"), ("added", "added_obj_ids"), ("pinned", "pinned_obj_ids")):
            if reply[name]:
                data[key] = reply[name]
        if reply["result_truncated"]:
            data["result_truncated"] = True
        warnings: list[str] = []
        if reply.get("after") is not None:
            warnings = judge(session, reply, "script", Change.NEW, solids_count=None)
            data |= changed(reply)
        told = words(data) if "volume_mm3" in data else f"result {str(reply['result'])[:120]}"
        files: tuple[Any, ...] = ()
        pictures: tuple[Any, ...] = ()
        if picture and "volume_mm3" in data:
            from metaforge.adapters.freecad.show import draw

            files, pictures = draw(ctx, session, data["obj_id"], data)
        return Answer(
            data, f"Script ran: {told}.", tuple(warnings), "freecad.describe_session lists all", files, pictures,
            {"FreeCAD": session.process.version},
        )  # fmt: skip

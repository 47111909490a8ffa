"""“Open a FreeCAD session, sketch the bracket, pad it, fillet it ... run FEA on it”, over the official client."""

from math import pi
from typing import Any

import pytest
from conversations import conversation, words
from house import House
from mcp import Client
from mcp_types import ImageContent, ResourceLink

pytestmark = [pytest.mark.program("freecadcmd", "ccx", "gmsh", "cadquery"), pytest.mark.slow]
PROFILE = [[0, 0], [50, 0], [50, 6], [6, 6], [6, 40], [0, 40]]
"""An L of 50 x 40 mm outside, 6 mm thick."""
WIDTH_MM, RADIUS_MM, FORCE_N = 30, 5, 100
VOLUME_MM3 = WIDTH_MM * (50 * 6 + 34 * 6 + RADIUS_MM**2 * (1 - pi / 4))


class Model:
    """Calls tools one after another, as a model does, and reads what it is told."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session = ""

    async def do(self, tool: str, **arguments: Any) -> Any:
        if tool.startswith("freecad.") and self.session:
            arguments = {"session_id": self.session, **arguments}
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, words(result)
        return result

    async def told(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return dict((await self.do(tool, **arguments)).structured_content)

    async def refused(self, tool: str, **arguments: Any) -> str:
        if tool.startswith("freecad."):
            arguments = {"session_id": self.session, **arguments}
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        return words(result)


@pytest.mark.parametrize(
    ("era", "transport"), [("handshake", "stdio"), ("stateless", "stdio"), ("handshake", "http"), ("stateless", "http")]
)
async def test_a_bracket_from_sketch_to_stress(tmp_path: Any, era: str, transport: str) -> None:
    house = House(
        tmp_path, adapters="freecad,cadquery,calculix", METAFORGE_APPROVAL_HOLD="destroy", METAFORGE_APPROVALS="off"
    )
    async with conversation(house, era, transport, seconds=300) as client:
        model = Model(client)
        if transport == "stdio":
            await model.told("project.create", name="Shelf")
        model.session = (await model.told("freecad.open_session", name="Bracket"))["session_id"]
        body = (await model.told("freecad.create_body", name="Bracket"))["obj_id"]
        sketch = await model.told(
            "freecad.create_sketch", body_id=body, plane="XZ", elements=[{"type": "polyline", "points_mm": PROFILE}]
        )
        assert sketch["is_closed"] is True
        assert sketch["next_step"].startswith("freecad.pad_sketch")
        # The documented name without its unit is understood as well.
        padded = await model.told("freecad.pad_sketch", body_id=body, sketch_id=sketch["obj_id"], length=WIDTH_MM)
        assert padded["volume_mm3"] == pytest.approx(WIDTH_MM * 504)
        assert padded["bounding_box_mm"]["size_mm"] == [50, 30, 40]

        edges = (await model.told("freecad.describe_model", obj_id=body))["edges"]
        inner = [each["name"] for each in edges if each["middle_mm"][0] == 6 and each["middle_mm"][2] == 6]
        text = await model.refused("freecad.fillet", obj_id=body, radius_mm=60, edges=inner)
        assert "the largest that works on these edges is 33.9 mm" in text
        rounded = await model.do("freecad.fillet", obj_id=body, radius_mm=RADIUS_MM, edges=inner, picture=True)
        assert rounded.structured_content["volume_mm3"] == pytest.approx(VOLUME_MM3, rel=1e-8)
        assert rounded.structured_content["faces_change_count"] == 1
        assert any(isinstance(block, ImageContent) for block in rounded.content)
        assert len(words(rounded)) < 480, "the first text is to stay below 120 tokens"

        measured = await model.told("freecad.measure", obj_id=body, material="aluminium")
        assert measured["mass_kg"] == pytest.approx(VOLUME_MM3 * 2710e-9, rel=1e-6)

        exported = await model.do("freecad.export_model", obj_id=body, material="18 mm birch plywood")
        data = exported.structured_content
        assert data["parts"][0]["color"] == [0.87, 0.76, 0.57]
        assert data["stored_properties"]["volume_mm3"] == pytest.approx(VOLUME_MM3, rel=1e-8)
        (link,) = [block for block in exported.content if isinstance(block, ResourceLink)]
        contents: Any = (await client.read_resource(str(link.uri))).contents[0]
        assert "COLOUR_RGB('',0.87,0.76,0.57)" in (getattr(contents, "text", "") or "") or contents.blob

        meshed = await client.call_tool(
            "freecad.generate_mesh", {"input_file": data["cad_file"], "element_size_mm": 4, "output_path": "b.inp"}
        )
        assert not meshed.is_error, words(meshed)
        assert meshed.structured_content["mesh_bbox_mm"] == pytest.approx([0, -30, 0, 50, 0, 40], abs=1e-6)
        solved = await client.call_tool(
            "calculix.run_fea",
            {
                "mesh_file": "b.inp", "analysis_type": "static_stress", "material": {"name": "aluminium"},
                "supports": [{"face": "left"}],
                "loads": [{"face": "right", "force_n": [0, 0, -FORCE_N]}],
            },
        )  # fmt: skip
        assert not solved.is_error, words(solved)
        assert max(solved.structured_content["max_von_mises_mpa"].values()) > 1

        if transport == "stdio":
            committed = await model.told("twin.commit_geometry", name="Bracket", session_id=model.session, obj_id=body)
            assert committed["item_ref"] == "CAD-BRACKET@1"
            assert committed["measured"]["volume_mm3"] == pytest.approx(VOLUME_MM3, rel=1e-6)
            assert committed["measured"]["bounding_box_mm"]["min_mm"] == pytest.approx([0, -30, 0], abs=1e-6)
        await model.told("freecad.close_session")
        assert "session" in await model.refused("freecad.measure", obj_id=body)

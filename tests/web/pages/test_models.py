"""Shapes as glTF: converted once, kept by digest, refused with a reason."""

import asyncio
import os
from dataclasses import replace

import orjson
import pytest

from metaforge.web.pages.models import MAX_BYTES, Models, NotShown

pytestmark = [pytest.mark.program("cadquery")]
SCRIPT = """
import cadquery as cq
result = cq.Assembly()
result.add(cq.Workplane('XY').box(60, 40, 6), name='plate', color=cq.Color(0.8, 0.1, 0.1))
"""


@pytest.fixture
def settings(settings):
    return replace(settings, adapters=(), environment=dict(os.environ))


@pytest.fixture
async def step(site):
    """The digest of a red plate, and its workspace."""
    made = await site.call("cadquery.execute_script", script=SCRIPT, output_path="plate.step")
    content = (site.app.workspace / made["cad_file"]).read_bytes()
    return site.app.blobs.put_bytes(content)


async def test_a_step_file_becomes_gltf_with_its_colour_and_leaves_the_workspace_as_it_was(site, step):
    before = sorted(site.app.workspace.rglob("*"))
    answer = await site.browser.get(f"/models/{step}.glb")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "model/gltf-binary"
    assert answer.content[:4] == b"glTF"
    length = int.from_bytes(answer.content[12:16], "little")
    told = orjson.loads(answer.content[20 : 20 + length])
    red, green, blue, _ = told["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"]
    assert (red, green, blue) == pytest.approx((0.604, 0.010, 0.010), abs=0.003)  # 0.8 and 0.1, made linear
    assert sorted(site.app.workspace.rglob("*")) == before


async def test_it_is_converted_once_for_everybody(site, step, monkeypatch):
    runs = []
    run = site.app.engine.run

    async def counted(tool, arguments, invocation):
        runs.append(tool.id)
        return await run(tool, arguments, invocation)

    monkeypatch.setattr(site.app.engine, "run", counted)
    models = Models(site.services)
    first = await asyncio.gather(*(models.glb(step) for _ in range(5)))
    later = await Models(site.services).glb(step)
    assert len(runs) == 1
    assert {*first, later} == {later}


async def test_what_the_kernel_cannot_read_is_told_once_and_remembered(site, monkeypatch):
    sha256 = site.app.blobs.put_bytes(b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\nENDSEC;\nEND-ISO-10303-21;\n")
    models = Models(site.services)
    with pytest.raises(NotShown, match="cannot show this shape") as told:
        await models.glb(sha256)
    assert ".metaforge" not in str(told.value)
    monkeypatch.setitem(site.services.__dict__, "engine", None)
    with pytest.raises(NotShown, match="cannot show this shape"):
        await models.glb(sha256)


async def test_what_is_no_shape_is_told(site):
    answer = await site.browser.get(f"/models/{site.app.blobs.put_bytes(b'solid x')}.glb")
    assert answer.status_code == 422
    assert "Only STEP, BREP and GLB" in answer.text
    assert "immutable" not in answer.headers["cache-control"].replace("max-age=0, immutable", "")


async def test_a_gltf_file_is_shown_as_it_is(site):
    content = b"glTF\x02\x00\x00\x00 and so on"
    answer = await site.browser.get(f"/models/{site.app.blobs.put_bytes(content)}.glb")
    assert answer.content == content


async def test_a_shape_that_is_too_large_is_to_be_downloaded(site):
    sha256 = site.app.blobs.put_bytes(b"ISO-10303-21;" + b" " * MAX_BYTES)
    with pytest.raises(NotShown, match="at most 64 are converted"):
        await Models(site.services).glb(sha256)


class TestWithoutTheKernel:
    """A server that was told to load no CAD adapter."""

    @pytest.fixture
    def settings(self, settings):
        return replace(settings, adapters=("none",))

    async def test_the_view_says_what_is_missing(self, site):
        sha256 = site.app.blobs.put_bytes(b"ISO-10303-21;\n")
        answer = await site.browser.get(f"/models/{sha256}.glb")
        assert answer.status_code == 422
        assert "cadquery adapter is not loaded" in answer.text

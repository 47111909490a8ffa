"""How pages look: light and dark, shapes with their colours, and without the bundled libraries or any script."""

from pathlib import Path

import pytest
from browser_eyes import Eyes
from dashboard_server import Running

from metaforge.approvals.model import State
from metaforge.web.pages import policy

SCRIPT = """
import cadquery as cq
plate = cq.Workplane('XY').box(60, 40, 6)
peg = cq.Workplane('XY').circle(8).extrude(22)
result = cq.Assembly()
result.add(plate, name='plate', color=cq.Color(0.8, 0.05, 0.05))
result.add(peg, name='peg', color=cq.Color(0.05, 0.1, 0.8))
"""
needs_bundles = pytest.mark.skipif(not policy.built()["sources"], reason="the 3-D view is not built: make web")


@pytest.fixture(scope="module")
def project_id(module_server: Running) -> str:
    """A project with a part of two colours, in two revisions, on the module's server."""
    server = module_server
    project_id: str = server.call("project.create", {"name": "Camera mount"}).data["id"]
    server.call("twin.record_constraint_set", {"project_id": project_id, "title": "Mount", "constraints": [
        {"name": "mass", "metric": "mass", "operator": "<=", "limit": 50, "unit": "g"}]})  # fmt: skip
    return project_id


@pytest.fixture(scope="module")
def part(module_server: Running, project_id: str) -> str:
    """The key of that part."""
    server = module_server
    server.call("cadquery.execute_script", {"script": SCRIPT, "output_path": "mount.step"})
    server.call(
        "cadquery.create_parametric",
        {"shape_type": "plate", "output_path": "flat.step",
         "parameters": {"width_mm": 60, "length_mm": 40, "thickness_mm": 8}},
    )  # fmt: skip
    commit = {"project_id": project_id, "name": "Mount", "depends_on": ["CS-MOUNT"]}
    made = server.call("twin.commit_geometry", {**commit, "file_path": "mount.step"})
    server.call("twin.commit_geometry", {**commit, "file_path": "flat.step", "change_reason": "Thicker"})
    return str(made.data["item_key"])


@pytest.fixture
def page(eyes: Eyes, module_server: Running) -> Eyes:
    return eyes.at(module_server.url)


@pytest.fixture
def unbundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pages as they are where npm was missing when the package was built."""
    monkeypatch.setattr(policy, "BUILT", tmp_path)


def brightness(page: Eyes, css: str, what: str = "backgroundColor") -> float:
    """Return how bright an element's colour is, 0 to 1."""
    colour: str = page.run(f"return getComputedStyle(document.querySelector(arguments[0])).{what}", css)
    red, green, blue = (float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.mark.program("cadquery")
@needs_bundles
def test_a_part_is_seen_in_three_dimensions_with_its_colours(
    page: Eyes, module_server: Running, project_id: str, part: str
) -> None:
    page.open(f"/projects/{project_id}/items/{part}@1")
    page.until(lambda: page.run("return document.querySelector('model-viewer')?.loaded ?? false"))
    assert page.find("model-viewer").get_attribute("tone-mapping") == "neutral"

    def counts() -> tuple[int, int]:
        red = blue = 0
        for count, (r, g, b) in page.colours("model-viewer"):
            red += count if r > 120 and g < 60 and b < 60 else 0
            blue += count if b > 120 and r < 60 else 0
        return red, blue

    # The first frames after loading are empty: it is drawn when there is a red plate and a smaller blue peg.
    red, blue = page.until(lambda: found if min(found := counts()) > 2000 else None)
    assert red > blue
    assert page.complaints() == []


@pytest.mark.program("cadquery")
@needs_bundles
def test_two_revisions_are_seen_beside_each_other_with_what_changed(page: Eyes, project_id: str, part: str) -> None:
    page.open(f"/projects/{project_id}/items/{part}/diff?from=1&to=2")
    assert len(page.all("model-viewer")) == 2
    assert "measured.volume_mm3" in page.text()
    assert "Thicker" in page.text()
    page.until(lambda: page.run("return [...document.querySelectorAll('model-viewer')].every((each) => each.loaded)"))
    assert page.complaints() == []


@needs_bundles
def test_a_shape_that_cannot_be_shown_says_why(page: Eyes, module_server: Running) -> None:
    sha256 = module_server.app.blobs.put_bytes(b"solid nothing\nendsolid nothing\n")
    change = {"now": {"CAD-X": None}, "after": {"CAD-X": {"format": "step", "content_hash": sha256}}}
    entry = module_server.hold(change=change)
    page.open(f"/approvals/{entry.approval_id}")
    page.until(lambda: "Only STEP, BREP and GLB" in page.text(".fault"))


@pytest.mark.parametrize("path", ["/approvals", "/projects", "/sessions", "/calls", "/system", "/approvals/nothing"])
def test_pages_are_light_or_dark_as_the_reader_prefers(page: Eyes, project_id: str, path: str) -> None:
    page.open(path)
    assert brightness(page, "body") > 0.9
    assert brightness(page, "h1, b", "color") < 0.2
    page.dark().open(path)
    assert brightness(page, "body") < 0.1
    assert brightness(page, "h1, b", "color") > 0.75


@pytest.mark.parametrize("path", ["/approvals", "/projects", "/sessions", "/calls", "/system"])
def test_no_page_is_wider_than_a_small_screen_and_nothing_on_it_is_refused(
    page: Eyes, project_id: str, path: str
) -> None:
    page.driver.set_window_size(500, 900)
    try:
        page.open(path)
        assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    finally:
        page.driver.set_window_size(1360, 900)
    assert page.complaints() == []


@pytest.mark.program("cadquery")
def test_without_the_bundled_libraries_pages_work_and_say_how_to_add_the_view(
    page: Eyes, module_server: Running, project_id: str, part: str, unbundled: None
) -> None:
    page.open(f"/projects/{project_id}/items/{part}@1")
    assert "The 3-D view is not installed" in page.text()
    assert "make web" in page.text()
    entry = module_server.hold()
    page.open("/approvals").until_live()
    later = module_server.hold(title="Comes while looking")
    page.find(f"#open-{later.approval_id}")
    page.open(f"/approvals/{entry.approval_id}")
    page.click("#approve")
    page.until(lambda: "Approved by" in page.text(".steps"))
    assert page.complaints() == []


def test_without_any_script_a_call_can_still_be_decided(page: Eyes, module_server: Running) -> None:
    entry = module_server.hold()
    page.without_scripts().open("/approvals")
    page.find(f"#open-{entry.approval_id}").click()
    page.find("#reason").send_keys("Not now")
    page.click("#reject")
    page.find(".steps .bad")
    assert module_server.services.ledger.get(entry.approval_id).state is State.REJECTED

"""Nobody is let in, made to decide or shown a script by what agents or other sites send."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import httpx
import pytest

from metaforge.approvals.model import State
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Caller, Trust

NAUGHTY = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{1234*5678}} 🚁"


class Tags(HTMLParser):
    """Every tag of a page, as a browser reads it, with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


async def pages_of(site, project_id, entry):
    """Return the HTML of every kind of page, by its address."""
    session = await site.call("session.start", agent_code=NAUGHTY, task_type=NAUGHTY, title=NAUGHTY)
    call_id = (await site.get("/calls")).split('href="/calls/')[1].split('"')[0]
    paths = [
        "/approvals", "/approvals?status=all", f"/approvals/{entry.approval_id}", "/projects",
        f"/projects/{project_id}", f"/projects/{project_id}/trace", f"/projects/{project_id}/compare",
        f"/projects/{project_id}/items/CS-MOUNT", f"/projects/{project_id}/items/CS-MOUNT/diff", "/sessions",
        f"/sessions/{session['session_id']}", "/calls", f"/calls/{call_id}", "/system",
    ]  # fmt: skip
    return {path: await site.browser.get(path) for path in paths}


@pytest.fixture
async def everything(site, project_id):
    """Every kind of page, each with names that would be scripts if they could."""
    await site.call("project.update", id=project_id, name=NAUGHTY, description=NAUGHTY)
    caller = Caller(NAUGHTY, Trust.UNTRUSTED, NAUGHTY, NAUGHTY, NAUGHTY)
    change = {"now": {NAUGHTY: None}, "after": {NAUGHTY: {NAUGHTY: NAUGHTY}}, "warnings": [NAUGHTY]}
    entry = site.hold(title=NAUGHTY, summary=NAUGHTY, reason_held=NAUGHTY, caller=caller, change=change,
                      arguments={NAUGHTY: NAUGHTY}, project_id=project_id)  # fmt: skip
    return await pages_of(site, project_id, entry)


async def test_no_page_holds_anything_that_runs_or_styles_inline(everything):
    for path, answer in everything.items():
        assert answer.status_code == 200, path
        tags = Tags(answer.text).found
        for tag, attributes in tags:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (path, tag)
            assert "javascript:" not in " ".join(attributes.values()).lower(), (path, tag)
            if tag == "script":
                assert attributes["src"].startswith("/static/"), path
            if tag == "img":
                assert attributes["src"].startswith("/pictures/"), path
        assert "style" not in [tag for tag, _ in tags], path
        assert "7006652" not in answer.text, path  # a template in a name is a name


async def test_every_page_forbids_scripts_of_others_frames_and_guessing_of_types(everything):
    for path, answer in everything.items():
        headers = answer.headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'", path
        assert policy["script-src"] == "'self'", path
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'", path
        assert policy["form-action"] == "'self'", path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["cache-control"] == "no-store", path
        assert headers["referrer-policy"] == "same-origin", path


async def test_every_form_that_changes_something_carries_a_token(everything):
    for path, answer in everything.items():
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", answer.text, re.DOTALL):
            assert re.search(r'name="csrf" value="[0-9a-f]{16,}"', form), path


async def test_a_form_without_the_token_decides_nothing(site):
    entry = site.hold()
    await site.get("/approvals")
    for fields in ({}, {"csrf": ""}, {"csrf": "0" * 32}):
        answer = await site.browser.post(f"/approvals/{entry.approval_id}", data={**fields, "decision": "approve"})
        assert answer.status_code == 403
        assert "load the page again" in answer.text
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING


async def test_a_token_of_another_browser_decides_nothing(site, another_browser):
    entry = site.hold()
    path = f"/approvals/{entry.approval_id}"
    token = re.search(r'name="csrf" value="(\w+)"', await site.get(path))[1]
    for visits_first in (False, True):
        if visits_first:
            await another_browser.get(path)
        answer = await another_browser.post(path, data={"csrf": token, "decision": "approve"})
        assert answer.status_code == 403
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING


async def test_a_page_of_another_site_cannot_send_a_form(site):
    entry = site.hold()
    path = f"/approvals/{entry.approval_id}"
    token = re.search(r'name="csrf" value="(\w+)"', await site.get(path))[1]
    fields = {"csrf": token, "decision": "approve"}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await site.browser.post(path, data=fields, headers=headers)).status_code == 403
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"decision=approve", "text/plain"), (b"decision=approve&csrf=\xff", "application/x-www-form-urlencoded"),
     (b"&".join(b"a=1" for _ in range(100)), "application/x-www-form-urlencoded"),
     (b"reason=%ff", "application/x-www-form-urlencoded")],
)  # fmt: skip
async def test_what_no_browser_sends_is_refused(site, body, media_type):
    path = f"/approvals/{site.hold().approval_id}"
    answer = await site.browser.post(path, content=body, headers={"content-type": media_type})
    assert answer.status_code == 422
    assert "form" in answer.text


@pytest.mark.parametrize(
    "content",
    [b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", b"<html><script>alert(1)</script>", b"GIF89a"],
)
async def test_only_what_is_a_picture_by_its_bytes_is_shown_as_one(site, content):
    sha256 = site.app.blobs.put_bytes(content)
    assert (await site.browser.get(f"/pictures/{sha256}")).status_code == 422
    kept = await site.browser.get(f"/files/{sha256}?name=../../a%0d%0aX-Y: b/<x>.html")
    assert kept.content == content
    assert kept.headers["content-type"] == "application/octet-stream"
    assert kept.headers["content-disposition"] == 'attachment; filename="_x_.html"'
    assert "sandbox" in kept.headers["content-security-policy"]


async def test_a_picture_is_shown_and_may_be_kept_for_ever(site):
    sha256 = site.app.blobs.put_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    answer = await site.browser.get(f"/pictures/{sha256}")
    assert answer.headers["content-type"] == "image/png"
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/pictures/abc", "/files/" + "0" * 64, "/models/xyz.glb", "/models/" + "0" * 64 + ".glb"]
)
async def test_a_content_that_is_not_there_is_told(site, path):
    assert (await site.browser.get(path)).status_code in (404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../services.py",
        "/static/%2e%2e/services.py",
        "/static/built/built.json",
        "/static/",
        "/static/x.js",
        "/static/%00.js",
        "/static/%2fetc/hosts.txt",
        "/static/" + "x" * 300 + ".js",
        "/static/" + "x/" * 3000 + "x.js",
    ],
)
async def test_nothing_but_scripts_styles_and_pictures_of_pages_is_static(site, path):
    assert (await site.browser.get(path)).status_code == 404


async def test_the_pages_own_files_are_served(site):
    for name, media_type in (
        ("dashboard.css", "text/css"),
        ("dashboard.js", "text/javascript"),
        ("favicon.svg", "image/svg+xml"),
    ):
        answer = await site.browser.get(f"/static/{name}")
        assert answer.headers["content-type"].startswith(media_type)


class TestWithAKey:
    """A server that asks for its key."""

    @pytest.fixture
    def settings(self, settings):
        return replace(settings, api_key="k" * 32)

    async def sign_in(self, browser: httpx.AsyncClient, secret="k" * 32, following="/projects"):
        page = await browser.get("/sign-in")
        token = re.search(r'name="csrf" value="(\w+)"', page.text)[1]
        fields = {"csrf": token, "secret": secret, "name": "Maria <b>", "next": following}
        return await browser.post("/sign-in", data=fields)

    async def test_a_stranger_is_sent_to_sign_in_and_back(self, site):
        answer = await site.browser.get("/approvals?status=all")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/sign-in?next=%2Fapprovals%3Fstatus%3Dall"
        page = await site.get(answer.headers["location"])
        assert 'name="next" value="/approvals?status=all"' in page
        assert (await self.sign_in(site.browser)).headers["location"] == "/projects"
        assert "Projects" in await site.get("/projects")

    async def test_a_wrong_key_is_told_and_opens_nothing(self, site):
        answer = await self.sign_in(site.browser, "wrong")
        assert answer.status_code == 401
        assert "METAFORGE_MCP_API_KEY" in answer.text
        assert (await site.browser.get("/approvals")).status_code == 303

    async def test_guessing_is_slowed_down(self, site):
        for number in range(12):
            answer = await self.sign_in(site.browser, f"guess {number}")
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0
        assert (await self.sign_in(site.browser)).status_code == 429

    async def test_decisions_are_signed_with_the_name_that_was_typed_and_marked_as_not_verified(self, site):
        entry = site.hold()
        await self.sign_in(site.browser)
        await site.post(f"/approvals/{entry.approval_id}", {"decision": "approve"})
        approver = site.services.ledger.get(entry.approval_id).decision.approver
        assert (approver.name, approver.verified, approver.surface) == ("Maria <b>", False, "dashboard")
        assert "Maria &lt;b&gt;" in await site.get("/projects")

    async def test_signing_out_ends_the_session(self, site):
        site.hold()
        await self.sign_in(site.browser)
        page = await site.get("/approvals")
        token = re.search(r'action="/sign-out"><input type="hidden" name="csrf" value="(\w+)"', page)[1]
        kept = dict(site.browser.cookies)
        assert (await site.browser.post("/sign-out", data={"csrf": token})).status_code == 303
        for name, value in kept.items():
            site.browser.cookies.set(name, value)
        assert (await site.browser.get("/approvals")).status_code == 303

    @pytest.mark.parametrize(
        "following",
        ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nx: y", "", "evil"],
    )
    async def test_nobody_is_sent_to_another_site_after_signing_in(self, site, following):
        assert (await self.sign_in(site.browser, following=following)).headers["location"] == "/approvals"

    async def test_programs_get_a_401_and_no_page(self, site):
        answer = await site.browser.get("/approvals", headers={"accept": "application/json"})
        assert answer.status_code == 401
        assert (await site.browser.get("/v1/approvals")).status_code == 401
        assert (await site.browser.get("/static/dashboard.css")).status_code == 200

    async def test_a_sign_in_form_of_another_browser_is_not_taken(self, site, another_browser):
        token = re.search(r'name="csrf" value="(\w+)"', await site.get("/sign-in"))[1]
        answer = await another_browser.post("/sign-in", data={"csrf": token, "secret": "k" * 32, "name": "M"})
        assert answer.status_code == 403


async def test_an_open_server_asks_nobody_to_sign_in(site):
    assert (await site.browser.get("/sign-in")).headers["location"] == "/approvals"


async def test_a_page_opened_under_another_name_is_refused(site):
    answer = await site.browser.get("/approvals", headers={"host": "evil.example"})
    assert answer.status_code == 403


async def test_what_a_person_reads_of_a_call_holds_no_secret(site):
    with pytest.raises(Exception, match="api_key"):
        await site.app.call_tool("project.create", {"name": "x", "api_key": "s3cret"}, call_id=new_call_id(),
                                 caller=Caller("local", Trust.LOCAL, "c", "1", "s"))  # fmt: skip
    page = await site.get("/calls")
    call_id = page.split('href="/calls/')[1].split('"')[0]
    assert "s3cret" not in page + await site.get(f"/calls/{call_id}")

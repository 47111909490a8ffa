"""The Approvals pages: what waits, one entry, and the answer to it."""

import asyncio
import re
from dataclasses import replace

import pytest

from metaforge.approvals.faults import LedgerUnavailable
from metaforge.approvals.model import Approver, Route, State
from metaforge.tools.context import Caller, Trust
from metaforge.web.pages.approval_list import PAGE_COUNT, Filter, list_entries

MARIA = Approver("maria", True, "cli")


async def test_the_list_tells_who_asks_for_what_and_how_long_is_left(site, project_id):
    entry = site.hold(project_id=project_id, title="Revise CAD-ARM", caller=Caller("bob", Trust.REMOTE, "codex", "1"))
    page = await site.read("/approvals")
    for told in ("Revise CAD-ARM", "project.create", "codex", "bob", "Camera <mount>", "write"):
        assert told in page
    assert f'data-expires="{entry.request.expires_at}"' in await site.get("/approvals")


async def test_nothing_waiting_is_said(site):
    assert "Nothing waits" in await site.read("/approvals")


async def test_a_script_gets_the_part_that_changes_and_a_mark_of_its_version(site):
    site.hold()
    part = await site.get("/approvals", **{"hx-request": "true"})
    assert part.strip().startswith('<section class="card" id="entries"')
    assert "<nav" not in part
    version = part.split('data-version="')[1].split('"')[0]
    assert version in await site.get("/approvals")
    site.hold()
    assert version not in await site.get("/approvals")


async def test_going_back_in_the_browser_loads_a_whole_page(site):
    assert "<nav" in await site.get("/approvals", **{"hx-request": "true", "hx-history-restore-request": "true"})


async def test_decided_entries_are_listed_apart(site):
    waiting, decided = site.hold(title="Still open"), site.hold(title="Long gone")
    site.services.ledger.decide(decided.approval_id, "reject", MARIA, reason="No")
    assert "Long gone" not in await site.read("/approvals")
    page = await site.read("/approvals?status=decided")
    assert "Long gone" in page
    assert "rejected" in page
    assert "maria" in page
    assert "Still open" not in page
    both = await site.read("/approvals?status=all")
    assert waiting.request.title in both
    assert decided.request.title in both


def titles(site, **asked):
    listing = list_entries(site.services.ledger, Filter(**asked))
    return [entry.request.title for entry in listing.entries], listing


async def test_filters_narrow_the_list(site):
    site.hold(title="One", tool_id="twin.commit_geometry")
    site.hold(title="Two", caller=Caller("bob", Trust.REMOTE, "codex", "1"))
    site.hold(title="Three", project_id="p1")
    assert titles(site, tool_id="twin.commit_geometry")[0] == ["One"]
    assert titles(site, client="codex")[0] == ["Two"]
    assert titles(site, project_id="p1")[0] == ["Three"]
    assert titles(site, text="TWO")[0] == ["Two"]
    assert titles(site, text="nowhere")[0] == []
    assert "Nothing fits" in await site.read("/approvals?q=nowhere")


async def test_pages_of_a_long_list_follow_each_other_without_gaps(site):
    made = [site.hold(title=f"Change {number}").request.title for number in range(2 * PAGE_COUNT + 7)]
    seen, before = [], ""
    while True:
        shown, listing = titles(site, before=before)
        seen += shown
        if not listing.more:
            break
        before = listing.more
    assert seen == made[::-1]
    assert titles(site)[1].matching == len(made)


async def test_an_entry_shows_its_arguments_without_secrets(site):
    entry = site.hold(arguments={"name": "Arm", "api_key": "s3cret"})
    page = await site.get(f"/approvals/{entry.approval_id}")
    assert "s3cret" not in page
    assert "[redacted]" in page
    assert "secrets hidden" in page


async def test_what_is_too_long_for_a_page_is_linked_in_full_length(site):
    entry = site.hold(arguments={"content": "x" * 100_000})
    page = await site.get(f"/approvals/{entry.approval_id}")
    assert "100000 characters in all, SHA-256" in page
    assert len(page) < 30_000
    (whole,) = re.findall(r'id="whole" href="([^"]+)"', page)
    assert (await site.browser.get(whole)).json() == {"content": "x" * 100_000}
    short = await site.get(f"/approvals/{site.hold().approval_id}")
    assert "in full length" not in short


async def test_an_entry_is_found_by_its_name_on_the_api_too(site):
    entry = site.hold(title="Make an arm")
    assert "Make an arm" in await site.read(f"/approvals/tool:{entry.approval_id}")


async def test_an_entry_shows_what_it_would_change(site):
    change = {
        "now": {"CAD-ARM": {"ref": "CAD-ARM@1", "mass_kg": 2.0, "name": "Arm"}, "CAD-OLD": {"name": "Old"}},
        "after": {"CAD-ARM": {"ref": "CAD-ARM@2", "mass_kg": 1.5, "name": "Arm"}, "CAD-OLD": {"deleted": True},
                  "NEED-X": {"statement": "Carry 2 kg"}},
        "warnings": ["1.5 kg is 3 % above the limit"], "pictures": ["a" * 64], "reads": {"arm.step": "b" * 64},
    }  # fmt: skip
    page = await site.get(f"/approvals/{site.hold(change=change).approval_id}")
    assert '<del class="plain">2</del>' in page
    assert '<ins class="plain">1.5</ins>' in page
    assert f'src="/pictures/{"a" * 64}"' in page
    for told in ("CAD-ARM", "changed", "CAD-OLD", "deleted", "NEED-X", "new", "Carry 2 kg", "3 % above", "arm.step"):
        assert told in page
    assert "Arm</del>" not in page  # what stays the same is not shown as a change


async def test_geometry_that_would_change_is_shown_now_and_after(site):
    shape = {"format": "step", "name": "Arm"}
    change = {"now": {"CAD-ARM": {**shape, "ref": "CAD-ARM@1", "content_hash": "a" * 64}},
              "after": {"CAD-ARM": {**shape, "ref": "CAD-ARM@2", "content_hash": "b" * 64}}}  # fmt: skip
    page = await site.read(f"/approvals/{site.hold(change=change).approval_id}")
    assert "Now CAD-ARM@1" in page
    assert "After CAD-ARM@2" in page


async def test_approving_is_signed_and_shown(site):
    entry = site.hold()
    answer = await site.post(f"/approvals/{entry.approval_id}", {"decision": "approve"})
    assert answer.headers["location"] == f"/approvals/{entry.approval_id}"
    decided = site.services.ledger.get(entry.approval_id)
    assert decided.state is State.APPROVED
    assert decided.decision.approver == Approver("local:dashboard", False, "dashboard")
    page = await site.read(f"/approvals/{entry.approval_id}")
    assert "Approved by local:dashboard (identity not verified)" in page
    assert 'name="decision"' not in await site.get(f"/approvals/{entry.approval_id}")


async def test_a_rejection_without_a_reason_is_not_taken(site):
    entry = site.hold()
    answer = await site.post(f"/approvals/{entry.approval_id}", {"decision": "reject", "reason": "  "}, 422)
    assert "Say why" in answer.text
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING
    await site.post(f"/approvals/{entry.approval_id}", {"decision": "reject", "reason": "Wrong <project>"})
    assert site.services.ledger.get(entry.approval_id).decision.reason == "Wrong <project>"
    assert "Wrong &lt;project&gt;" in await site.get(f"/approvals/{entry.approval_id}")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("{", "line 1, column 2"),
        ("[]", "must be an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"n": NaN}', "NaN"),
    ],
)
async def test_arguments_that_cannot_be_used_are_told_and_kept_to_be_mended(site, typed, told):
    entry = site.hold()
    answer = await site.post(f"/approvals/{entry.approval_id}", {"decision": "edit", "arguments": typed}, 422)
    assert told in answer.text
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING
    assert 'id="edit-details" open' in answer.text


async def test_edits_that_the_tool_does_not_take_are_told_before_anything_is_decided(site):
    entry = site.hold(arguments={"name": "Arm"})
    typed = {"decision": "edit", "arguments": '{"name": "Arm", "descripton": "Six axes"}'}
    answer = await site.post(f"/approvals/{entry.approval_id}", typed, 422)
    assert "descripton: is not an argument" in answer.text
    assert site.services.ledger.get(entry.approval_id).state is State.AWAITING


async def test_edits_for_a_tool_of_another_server_are_left_to_it(site):
    entry = site.hold(tool_id="elsewhere.make", arguments={"name": "Arm"})
    await site.post(f"/approvals/{entry.approval_id}", {"decision": "edit", "arguments": '{"nome": "Arm"}'})
    assert site.services.ledger.get(entry.approval_id).arguments == {"nome": "Arm"}


async def test_edited_arguments_are_another_call_and_are_shown_beside_the_asked_ones(site):
    entry = site.hold(arguments={"name": "Arm", "api_key": "s3cret"})
    edited = '{"name": "Leg", "api_key": "[redacted]"}'
    await site.post(f"/approvals/{entry.approval_id}", {"decision": "edit", "arguments": edited, "reason": "Clearer"})
    decided = site.services.ledger.get(entry.approval_id)
    assert decided.arguments == {"name": "Leg", "api_key": "s3cret"}
    assert decided.digest != entry.request.digest
    page = await site.read(f"/approvals/{entry.approval_id}")
    assert "Approved with edits by local:dashboard" in page
    assert "Clearer" in page
    assert "s3cret" not in page


async def test_of_two_answers_the_second_is_told_that_it_came_late(site):
    entry = site.hold()
    page = await site.get(f"/approvals/{entry.approval_id}")
    site.services.ledger.decide(entry.approval_id, "approve", MARIA)
    token = page.split('name="csrf" value="')[1].split('"')[0]
    fields = {"csrf": token, "decision": "reject", "reason": "No"}
    answer = await site.browser.post(f"/approvals/{entry.approval_id}", data=fields)
    assert answer.status_code == 409
    assert "Your answer was not taken" in answer.text
    assert "Approved by maria" in answer.text


async def test_a_question_that_is_open_in_the_client_offers_no_answer_here(site):
    entry = site.hold(route=Route.ELICITATION)
    page = await site.get(f"/approvals/{entry.approval_id}")
    assert "The question is open in claude-code" in page
    assert 'value="approve"' not in page


async def test_an_unknown_entry_is_not_found(site):
    assert "Not found" in await site.read("/approvals/run_0000000000000000", 404)


async def test_an_unreadable_ledger_is_said_and_other_pages_go_on(site, monkeypatch):
    class Gone:
        def __getattr__(self, name):
            def refuse(*args, **options):
                raise LedgerUnavailable("the disk is full: free some")

            return refuse

    monkeypatch.setitem(site.services.__dict__, "ledger", Gone())
    assert "the disk is full: free some" in await site.read("/approvals", 503)
    assert "Projects" in await site.read("/projects")


async def test_a_decision_on_an_entry_that_ended_meanwhile_changes_nothing(site):
    entry = site.hold()
    page = await site.get(f"/approvals/{entry.approval_id}")
    await asyncio.to_thread(site.services.ledger.end, entry.approval_id, State.TIMED_OUT, "nobody answered")
    token = page.split('name="csrf" value="')[1].split('"')[0]
    answer = await site.browser.post(f"/approvals/{entry.approval_id}", data={"csrf": token, "decision": "approve"})
    assert answer.status_code == 409
    assert site.services.ledger.get(entry.approval_id).state is State.TIMED_OUT


def test_a_filter_keeps_what_it_knows_and_writes_it_back():
    asked = Filter.of({"status": "nonsense", "q": " arm ", "tool": "a.b", "other": "x"})
    assert asked == Filter(text="arm", tool_id="a.b")
    assert asked.url() == "/approvals?tool=a.b&q=arm"
    assert replace(asked, status="all").url(before="run_1") == "/approvals?status=all&tool=a.b&q=arm&before=run_1"

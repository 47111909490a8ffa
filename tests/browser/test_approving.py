"""A person decides held calls from the dashboard."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
from browser_eyes import Eyes
from dashboard_server import AGENT, LIMIT_SECONDS, Running
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from metaforge.approvals.model import Approver, Route, State

NAUGHTY = "\"><script>document.title='owned'</script><img src=x onerror=document.title='owned'> 'quoted' 🚁 \u202eedoc"


class Agent:
    """A client over HTTP that calls a tool and waits for the answer, in a thread of its own."""

    def __init__(self, url: str, tool_id: str, arguments: dict[str, Any]) -> None:
        self.answer: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._call, args=(url + "/mcp", tool_id, arguments), daemon=True)
        self._thread.start()

    def _call(self, url: str, tool_id: str, arguments: dict[str, Any]) -> None:
        headers = {"accept": "application/json, text/event-stream"}
        with httpx.Client(timeout=LIMIT_SECONDS, headers=headers) as http:
            hello = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "agent", "version": "7"},
            }
            said = http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            http.headers.update(
                {"mcp-session-id": said.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
            )
            http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            call = {"name": tool_id, "arguments": arguments}
            self.answer = http.post(
                url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            ).json()

    def wait(self) -> dict[str, Any]:
        """Return the answer."""
        self._thread.join(LIMIT_SECONDS)
        assert self.answer, "the call was not answered"
        return self.answer


def waiting_row(page: Eyes) -> str:
    """Wait for an entry on the page and return the address it leads to."""
    return page.find("table.pick .row").get_attribute("href") or ""


def test_a_held_call_appears_without_loading_the_page_again_and_goes_on_when_approved(
    page: Eyes, server: Running
) -> None:
    page.open("/approvals").until_live()
    assert "Nothing waits" in page.text()
    agent = Agent(server.url, "project.create", {"name": "Camera mount"})
    waiting_row(page)
    shown = page.text()
    assert "Camera mount" in shown
    assert "agent" in shown
    assert "project.create" in shown
    assert re.search(r"\b\d:\d\d\b", page.text("td .left"))
    page.until(lambda: page.driver.title.startswith("(1) "))

    page.click("table.pick .row")
    assert "Camera mount" in page.text("#arguments")
    assert "What it would change" in page.text()
    page.click("#approve")
    page.until(lambda: "Approved by local:dashboard" in page.text(".steps"))
    answer = agent.wait()
    assert answer["result"]["structuredContent"]["name"] == "Camera mount"
    assert answer["result"]["structuredContent"]["approval"]["approved_by"] == "local:dashboard"
    page.until(lambda: "Completed" in page.text(".steps"))
    assert page.complaints() == []


def test_an_entry_is_on_the_page_soon_after_it_was_opened(
    page: Eyes, server: Running, record_property: Callable[[str, object], None]
) -> None:
    page.open("/approvals").until_live()
    page.run(
        """
        window.seen = {};
        new MutationObserver(() => document.querySelectorAll('tr[id^=row-]').forEach((row) => {
          window.seen[row.id.slice(4)] ??= Date.now() / 1000;
        })).observe(document.body, {childList: true, subtree: true});
        """
    )
    delays_ms = []
    for _ in range(10):
        opened = time.time()
        entry = server.hold()
        seen = page.until(lambda entry=entry: page.run("return window.seen[arguments[0]]", entry.approval_id))
        delays_ms.append(round((seen - opened) * 1000))
    delays_ms.sort()
    print(f"opened to shown: median {delays_ms[5]} ms, slowest {delays_ms[-1]} ms")
    record_property("opened_to_shown_ms", delays_ms)


def test_a_rejection_needs_a_reason_and_the_agent_reads_it(page: Eyes, server: Running) -> None:
    agent = Agent(server.url, "project.create", {"name": "Arm"})
    page.open("/approvals").until_live()
    page.driver.get(waiting_row(page))
    page.click("#reject")
    assert page.run("return document.querySelector('#reason').matches(':invalid')")
    page.type("#reason", "There is a project Arm already: open it.")
    page.click("#reject")
    page.until(lambda: "Rejected by local:dashboard" in page.text(".steps"))
    assert "open it" in page.text(".steps")
    refused = str(agent.wait())
    assert "There is a project Arm already: open it." in refused
    assert "rejected" in refused


def test_a_call_runs_with_the_arguments_that_a_person_changed(page: Eyes, server: Running) -> None:
    agent = Agent(server.url, "project.create", {"name": "Arm", "description": "Six axes"})
    page.open("/approvals").until_live()
    page.driver.get(waiting_row(page))
    page.click("#edit-summary")
    page.type("#edited", '{"name": "Robot arm", "description": "Six axes",}')
    page.click("#approve-edited")
    page.until(lambda: "line 1, column" in page.text("#fault"))
    page.type("#edited", '{"name": "Robot arm", "description": "Six axes"}')
    page.click("#approve-edited")
    page.until(lambda: "Approved with edits" in page.text(".steps"))
    assert agent.wait()["result"]["structuredContent"]["name"] == "Robot arm"
    page.until(lambda: "Completed" in page.text(".steps"))
    assert "Robot arm" in page.text("#edits ins")


def test_hidden_secrets_stay_hidden_and_are_kept_by_edits(page: Eyes, server: Running) -> None:
    entry = server.hold(arguments={"name": "Arm", "api_key": "s3cret-value"})
    page.open(f"/approvals/{entry.approval_id}")
    assert "s3cret" not in page.driver.page_source
    page.click("#edit-summary")
    page.type("#edited", '{"name": "Leg", "api_key": "[redacted]"}')
    page.click("#approve-edited")
    page.until(lambda: "Approved with edits" in page.text(".steps"))
    assert server.services.ledger.get(entry.approval_id).arguments == {"name": "Leg", "api_key": "s3cret-value"}


def test_everything_can_be_decided_by_the_keyboard_alone(page: Eyes, server: Running) -> None:
    first, second = server.hold(title="Older"), server.hold(title="Newer")
    page.open("/approvals").until_live()
    page.press("/")
    assert page.run("return document.activeElement.id") == "q"
    page.press("O", "l", "d", "e", "r", Keys.ENTER)
    page.until(lambda: len(page.all("table.pick .row")) == 1)
    page.tab_to(f"#open-{first.approval_id}")
    page.press(Keys.ENTER)
    page.until(lambda: page.run("return location.pathname") == f"/approvals/{first.approval_id}")
    page.tab_to("#approve")
    page.press(Keys.ENTER)
    page.until(lambda: "Approved by" in page.text(".steps"))

    page.open("/approvals").until_live()
    page.press("j")
    assert page.run("return document.activeElement.id") == f"open-{second.approval_id}"
    page.press(Keys.ENTER)
    page.until(lambda: page.run("return location.pathname") == f"/approvals/{second.approval_id}")
    page.tab_to("#reason")
    page.press("N", "o")
    page.tab_to("#reject")
    page.press(Keys.SPACE)
    page.until(lambda: "Rejected by" in page.text(".steps"))


def test_the_focus_is_seen_and_stays_where_it_is_when_the_list_is_renewed(page: Eyes, server: Running) -> None:
    first = server.hold()
    page.open("/approvals").until_live()
    row = page.tab_to(f"#open-{first.approval_id}")
    width = page.run("return getComputedStyle(arguments[0], '::after').outlineWidth", row)
    assert width == "2px"
    second = server.hold()
    page.find(f"#open-{second.approval_id}")
    assert page.run("return document.activeElement.id") == f"open-{first.approval_id}"


def test_what_is_typed_stays_while_other_entries_come_and_go(page: Eyes, server: Running) -> None:
    entry = server.hold()
    page.open(f"/approvals/{entry.approval_id}").until_live()
    page.type("#reason", "Half a sen")
    server.hold()
    page.until(lambda: page.text("#waiting") == "2")
    page.find("#reason").send_keys("tence")
    assert page.find("#reason").get_attribute("value") == "Half a sentence"


def test_an_answer_that_comes_second_is_told_what_the_first_was(page: Eyes, server: Running) -> None:
    entry = server.hold()
    page.without_scripts().open(f"/approvals/{entry.approval_id}")
    server.services.ledger.decide(entry.approval_id, "reject", Approver("maria", True, "cli"), reason="Too early")
    page.click("#approve")
    page.find("#fault")
    page.at(server.url).open(f"/approvals/{entry.approval_id}")
    assert "Rejected by maria" in page.text(".steps")
    assert server.services.ledger.get(entry.approval_id).state is State.REJECTED


def test_a_decision_made_elsewhere_shows_at_once(page: Eyes, server: Running) -> None:
    entry = server.hold()
    page.open(f"/approvals/{entry.approval_id}").until_live()
    server.services.ledger.decide(entry.approval_id, "approve", Approver("maria", True, "cli"))
    page.until(lambda: "Approved by maria" in page.text(".steps"))
    assert page.all("#approve") == []


def test_a_question_that_is_open_in_the_client_cannot_be_answered_here_until_it_is_opened(
    page: Eyes, server: Running
) -> None:
    entry = server.hold(route=Route.ELICITATION)
    page.open(f"/approvals/{entry.approval_id}").until_live()
    assert "open in claude-code" in page.text("#why-not")
    server.services.ledger.show_on_dashboard(entry.approval_id)
    page.find("#approve").click()
    page.until(lambda: "Approved by" in page.text(".steps"))


def test_names_with_quotes_emoji_scripts_and_turned_text_are_harmless_and_seen(page: Eyes, server: Running) -> None:
    caller = replace(AGENT, client_name=NAUGHTY, actor_id=NAUGHTY)
    change = {"now": {NAUGHTY: None}, "after": {NAUGHTY: {NAUGHTY: NAUGHTY}}, "warnings": [NAUGHTY]}
    entry = server.hold(
        title=NAUGHTY, summary=NAUGHTY, reason_held=NAUGHTY, caller=caller, arguments={NAUGHTY: NAUGHTY}, change=change
    )
    for path in ("/approvals", f"/approvals/{entry.approval_id}"):
        page.open(path).until_live()
        shown = page.text("body")
        assert "<script>document.title" in shown
        assert "🚁" in shown
        assert "\u202e" not in shown
        assert not page.driver.title.startswith("owned")
        assert page.all("main script, main img[src=x]") == []
        assert page.complaints() == []
    assert "\\u202eedoc" in page.text("#arguments")


def test_a_thousand_entries_are_shown_a_page_at_a_time_and_found_by_filters(page: Eyes, server: Running) -> None:
    for number in range(1000):
        tool_id = "twin.commit_geometry" if number % 10 == 0 else "project.create"
        server.hold(title=f"Change number {number}", tool_id=tool_id)
    page.open("/approvals").until_live()
    assert len(page.all("table.pick .row")) == 50
    assert "50 of 1000" in page.text(".pager")
    assert "Change number 999" in page.text()
    page.click("#older")
    page.until(lambda: "Change number 949" in page.text())
    assert "Change number 999" not in page.text()

    page.open("/approvals").until_live()
    page.type("#q", "number 123")
    page.until(lambda: len(page.all("table.pick .row")) == 1)
    assert "q=number+123" in page.driver.current_url
    page.open("/approvals").until_live()
    Select(page.find("select[name=tool]")).select_by_value("twin.commit_geometry")
    page.until(lambda: "50 of 100" in page.text(".pager"))
    server.hold(title="One more", tool_id="twin.commit_geometry")
    page.until(lambda: "One more" in page.text("#entries"))
    assert page.complaints() == []


def test_time_runs_down_and_the_end_is_told(page: Eyes, server: Running) -> None:
    entry = server.hold(window_seconds=65.0)
    page.open(f"/approvals/{entry.approval_id}").until_live()
    assert re.fullmatch(r"1:0\d", page.text("header .left"))
    page.until(lambda: page.text("header .left") < "1:04")
    server.services.ledger.end(entry.approval_id, State.TIMED_OUT, "nobody answered")
    page.until(lambda: "Timed out" in page.text(".steps"))
    assert page.all("#approve") == []

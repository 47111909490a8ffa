"""Real Claude Code asks its person about a write, over HTTP, in both eras; its host answers as the Agent SDK does."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from house import House
from scripted_model import Json, Say, Use, anthropic
from test_claude_code import ClaudeCode, claude, era, seen_by, words

from metaforge.approvals.model import State
from metaforge.approvals.opening import open_approvals
from metaforge.settings import Settings
from metaforge.store.database import Database

__all__ = ["claude", "era"]

CREATE = Use("mcp__metaforge__project_create", {"name": "Leg"})
WINDOW_SECONDS = 6
LIMIT_SECONDS = 120


class Desk:
    """Reads the ledger from another process."""

    def __init__(self, house: House) -> None:
        self._database = Database("", house.home)
        self._approvals = open_approvals(Settings.load(house.settings), self._database, house.home)

    def state(self) -> State:
        (entry,) = self._approvals.ledger.entries("all")
        return entry.state

    def wait_for(self, state: State) -> None:
        pause = threading.Event()
        for _ in range(LIMIT_SECONDS * 20):
            if self.state() is state:
                return
            pause.wait(0.05)
        raise AssertionError(f"the entry is {self.state()}, not {state}")

    def close(self) -> None:
        self._database.close()


class Host:
    """Runs Claude Code and answers what it asks its host."""

    def __init__(self, program: ClaudeCode, model_url: str, server: Json, **also: str) -> None:
        config = program.folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"metaforge": server}}))
        flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        flags += ["--permission-prompt-tool", "stdio", "--mcp-config", str(config), "--strict-mcp-config"]
        self._process = subprocess.Popen(
            [str(program.program), "-p", *flags, "--allowedTools", "mcp__metaforge"],
            env=program.environment(model_url, **also), cwd=program.folder / "project",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._watchdog = threading.Timer(LIMIT_SECONDS, self._process.kill)
        self._watchdog.start()
        self.asked: list[Json] = []
        self.withdrawn: list[Json] = []

    def run(self, answer: Callable[[Json], Json | None]) -> str:
        """Let it follow its prompt; `answer` gives what the person says, or None for nothing at all."""
        self._send({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}})
        prompt = {"role": "user", "content": "Please do it."}
        self._send({"type": "user", "session_id": "", "message": prompt, "parent_tool_use_id": None})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message["type"] == "control_request":
                self._answer(message, answer)
            elif message["type"] == "control_cancel_request":
                self.withdrawn.append(message)
            elif message["type"] == "result":
                return str(message["result"])
        raise AssertionError("Claude Code ended without a result")

    def close(self) -> None:
        self._watchdog.cancel()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _answer(self, message: Json, answer: Callable[[Json], Json | None]) -> None:
        request = message["request"]
        reply: Any = None
        if request["subtype"] == "can_use_tool":
            reply = {"behavior": "allow", "updatedInput": request.get("input", {})}
        elif request["subtype"] == "elicitation":
            self.asked.append(request)
            reply = answer(request)
        if reply is not None:
            response = {"subtype": "success", "request_id": message["request_id"], "response": reply}
            self._send({"type": "control_response", "response": response})

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@pytest.fixture
def holding(tmp_path: Path) -> House:
    return House(
        tmp_path, adapters="none", METAFORGE_APPROVAL_HOLD_SECONDS=str(WINDOW_SECONDS),
        METAFORGE_APPROVAL_HOLD_PROGRESS_SECONDS=str(WINDOW_SECONDS), METAFORGE_APPROVAL_RESCUE_SECONDS="3600",
    )  # fmt: skip


@pytest.fixture
def desk(holding: House) -> Iterator[Desk]:
    found = Desk(holding)
    yield found
    found.close()


@pytest.fixture
def ask(claude: ClaudeCode, holding: House, era: dict[str, str]) -> Callable[..., tuple[Host, str]]:
    """Let Claude Code call a write, answer its question, and return what the model was shown of the result."""

    def run(answer: Callable[[Json], Json | None]) -> tuple[Host, str]:
        with holding.listening() as url, anthropic([CREATE, Say("Done.")]) as model:
            host = Host(claude, model.url, {"type": "http", "url": url}, **era)
            try:
                assert host.run(answer) == "Done."
            finally:
                host.close()
            (result,) = seen_by(model)
            return host, words(result)

    return run


def test_accepting_the_form_runs_the_write_and_the_model_is_told_by_whom(ask: Any, desk: Desk) -> None:
    host, shown = ask(lambda request: {"action": "accept", "content": {"approve": True, "note": "go"}})
    assert len(host.asked) == 1
    assert "project.create" in host.asked[0]["message"]
    assert "approved by local:elicitation" in shown
    assert '"name":"Leg"' in shown.replace(" ", "")
    assert desk.state() is State.COMPLETED


def test_declining_the_form_runs_nothing_and_the_model_is_told_why(ask: Any, desk: Desk) -> None:
    _, shown = ask(lambda request: {"action": "decline"})
    assert "project.create was not run (rejected)" in shown
    assert desk.state() is State.REJECTED


def test_a_form_that_nobody_answers_is_taken_down_and_the_model_is_told(
    ask: Any, desk: Desk, era: dict[str, str]
) -> None:
    def nothing(request: Json) -> Json | None:
        if era:
            return None
        desk.wait_for(State.TIMED_OUT)  # the stateless era cannot take a form down: an answer comes too late
        return {"action": "accept", "content": {"approve": True}}

    host, shown = ask(nothing)
    assert "project.create was not run (timed_out)" in shown
    assert f"({WINDOW_SECONDS}s)" in shown
    assert len(host.withdrawn) == (1 if era else 0)
    assert desk.state() is State.TIMED_OUT

"""Real Claude Code, driven by a scripted model: what a person asks for, and what reaches the model in its next turn."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from house import STDIO, House
from scripted_model import Json, Say, ScriptedModel, Step, Use, anthropic, tool_results

ROOT = Path(__file__).resolve().parents[2]
SERVER = "metaforge"
RUN_SECONDS = 240


@dataclass(frozen=True)
class ClaudeCode:
    """The program, with a home folder that holds nothing of anybody's."""

    program: Path
    folder: Path

    def environment(self, model_url: str, **also: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": model_url,
            "ANTHROPIC_API_KEY": "sk-ant-not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            **also,
        }

    def run(self, model_url: str, *arguments: str, **also: str) -> str:
        ran = subprocess.run(
            [str(self.program), *arguments],
            env=self.environment(model_url, **also),
            cwd=self.folder / "project",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stdout

    def follow(self, steps: Sequence[Step], server: Json, *arguments: str, **also: str) -> ScriptedModel:
        """Let it answer one prompt with a model that follows the steps; return what the model was sent."""
        config = self.folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {SERVER: server}}))
        flags = ["--mcp-config", str(config), "--strict-mcp-config", "--output-format", "json", *arguments]
        with anthropic(steps) as model:
            said = self.run(model.url, "-p", "Please do it.", *flags, **also)
        last = steps[-1]
        assert isinstance(last, Say)
        assert json.loads(said.splitlines()[-1])["result"] == last.words
        return model


@pytest.fixture
def claude(package: Callable[[str], Path], tmp_path: Path) -> ClaudeCode:
    package("@anthropic-ai/claude-code")
    import npm

    found = sorted((npm.cache_folder() / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude"))
    if not found:
        pytest.skip("Claude Code has no native program for this platform")
    (tmp_path / "claude" / "home").mkdir(parents=True)
    (tmp_path / "claude" / "project").mkdir()
    return ClaudeCode(found[0], tmp_path / "claude")


@pytest.fixture(params=["handshake", "stateless"])
def era(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment that makes Claude Code speak one era of the protocol."""
    return {"MCP_PROTOCOL_NEGOTIATION": "legacy"} if request.param == "handshake" else {}


def over_stdio(house: House) -> Json:
    return {"command": sys.executable, "args": list(STDIO), "env": house.settings}


def seen_by(model: ScriptedModel) -> list[Json]:
    """Return the tool results that the model was shown, in the order of the calls."""
    return max((tool_results(body) for body in model.requests), key=len)


def blocks(result: Json, kind: str) -> list[Json]:
    content = result["content"]
    return [block for block in content if block["type"] == kind] if isinstance(content, list) else []


def words(result: Json) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "\n".join(block["text"] for block in blocks(result, "text"))


def structure(result: Json) -> Json:
    """Return the JSON object among the words that the model was shown."""
    for line in words(result).splitlines():
        if line.startswith("{"):
            found: Json = json.loads(line)
            return found
    raise AssertionError(f"no JSON reached the model: {words(result)[:1000]}")


BRACKET = Use(
    "mcp__metaforge__cadquery_create_parametric",
    {
        "shape_type": "box",
        "parameters": {"width": 50, "length": 30, "height": 10},
        "output_path": "out/bracket.step",
        "picture": True,
    },
)
STRESS = Use(
    "mcp__metaforge__calculix_run_fea",
    {
        "analysis_type": "static_stress",
        "step_file": "out/bracket.step",
        "material": "steel-316",
        "supports": [{"face": "bottom"}],
        "loads": [{"face": "top", "force_n": [0, 0, -1000]}],
        "picture": True,
    },
)


@pytest.mark.program("ccx", "cadquery", "gmsh")
def test_the_demos_two_prompts_give_the_model_numbers_pictures_and_files(
    claude: ClaudeCode, workshop: House, era: dict[str, str]
) -> None:
    steps = [BRACKET, STRESS, Say("The bracket holds.")]
    model = claude.follow(steps, over_stdio(workshop), "--allowedTools", f"mcp__{SERVER}", **era)
    bracket, stress = seen_by(model)
    assert not bracket.get("is_error"), words(bracket)
    part = structure(bracket)
    assert part["volume_mm3"] == pytest.approx(15_000, rel=1e-6)
    assert part["surface_area_mm2"] == pytest.approx(2 * (1500 + 500 + 300), rel=1e-6)
    assert part["cad_file"] == "out/bracket.step"
    assert (workshop.workspace / "out/bracket.step").stat().st_size > 1000
    assert blocks(bracket, "image"), "the picture of the part did not reach the model"

    assert not stress.get("is_error"), words(stress)
    found = structure(stress)
    # 1 kN on 50 x 30 mm is 0.667 MPa; the clamped edge raises it, and nothing here comes near ten times that.
    assert 0.667 < max(found["max_von_mises_mpa"].values()) < 6.67
    assert found["reactions_n"][2] == pytest.approx(1000, rel=0.01)
    assert blocks(stress, "image"), "the picture of the stresses did not reach the model"
    assert list(workshop.workspace.rglob("*.frd")), "the result file is not in the workspace"


def test_the_model_reads_the_instructions_and_finds_the_tools_by_name(
    claude: ClaudeCode, house: House, era: dict[str, str]
) -> None:
    steps = [Use("mcp__metaforge__fixtureproc_echo", {"text": "hi"}), Say("Done.")]
    allow = ["--allowedTools", f"mcp__{SERVER}"]
    model = claude.follow(steps, over_stdio(house), *allow, ENABLE_TOOL_SEARCH="false", **era)
    offered = [tool["name"] for body in model.requests for tool in body.get("tools") or []]
    assert "mcp__metaforge__fixtureproc_echo" in offered
    assert "N, mm, MPa" in json.dumps([body.get("system") for body in model.requests] + [model.requests[0]["messages"]])
    assert structure(seen_by(model)[0])["text"] == "hi"


def test_a_refusal_reaches_the_model_with_its_remedy(claude: ClaudeCode, house: House, era: dict[str, str]) -> None:
    steps = [Use("mcp__metaforge__fixtureproc_grow", {"size_bytes": -5}), Say("I see.")]
    model = claude.follow(steps, over_stdio(house), "--allowedTools", f"mcp__{SERVER}", **era)
    (refused,) = seen_by(model)
    assert refused["is_error"]
    assert "size_bytes" in words(refused)
    assert "-5" in words(refused)


def test_it_works_over_http_too(claude: ClaudeCode, house: House, era: dict[str, str]) -> None:
    steps = [Use("mcp__metaforge__fixtureproc_echo", {"text": "over http"}), Say("Done.")]
    with house.listening() as url:
        server = {"type": "http", "url": url}
        model = claude.follow(steps, server, "--allowedTools", f"mcp__{SERVER}", **era)
    assert structure(seen_by(model)[0])["text"] == "over http"


def test_the_person_in_front_of_it_can_answer_a_question(claude: ClaudeCode, house: House, era: dict[str, str]) -> None:
    answer = {"hookEventName": "Elicitation", "action": "accept", "content": {"username": "ada", "email": "a@b.org"}}
    hook = {"type": "command", "command": f"echo '{json.dumps({'hookSpecificOutput': answer})}'"}
    settings = claude.folder / "home" / ".claude"
    settings.mkdir()
    (settings / "settings.json").write_text(json.dumps({"hooks": {"Elicitation": [{"hooks": [hook]}]}}))
    steps = [Use("mcp__metaforge__test_elicitation", {"message": "Who are you?"}), Say("Hello.")]
    model = claude.follow(steps, over_stdio(house), "--allowedTools", f"mcp__{SERVER}", **era)
    assert "action=accept" in words(seen_by(model)[0])
    assert "ada" in words(seen_by(model)[0])


def test_the_repositorys_own_files_connect_it_and_let_reads_run_unasked(
    claude: ClaudeCode, house: House, era: dict[str, str]
) -> None:
    steps = [Use("mcp__metaforge__health_check", {}), Say("All is well.")]
    flags = ["--mcp-config", str(ROOT / ".mcp.json"), "--strict-mcp-config", "--output-format", "json"]
    also = {"METAFORGE_PYTHON": sys.executable, **house.settings, **era}
    allowed = ["--settings", str(ROOT / ".claude" / "settings.json")]
    with anthropic(steps) as model:
        claude.run(model.url, "-p", "Is it well?", *flags, *allowed, **also)
    (health,) = seen_by(model)
    assert not health.get("is_error"), words(health)
    assert structure(health)["tool_count"] > 0


def test_claude_mcp_list_says_connected_at_user_scope(claude: ClaudeCode, house: House) -> None:
    with anthropic([Say("unused")]) as model:
        variables = [word for pair in house.settings.items() for word in ("-e", "=".join(pair))]
        claude.run(model.url, "mcp", "add", "-s", "user", SERVER, *variables, "--", sys.executable, *STDIO)
        listed = claude.run(model.url, "mcp", "list")
    line = next(line for line in listed.splitlines() if line.startswith(f"{SERVER}:"))
    assert "Connected" in line


def test_claude_mcp_list_says_connected_over_http(claude: ClaudeCode, house: House) -> None:
    with house.listening() as url, anthropic([Say("unused")]) as model:
        claude.run(model.url, "mcp", "add", "-s", "user", "--transport", "http", SERVER, url)
        listed = claude.run(model.url, "mcp", "list")
    line = next(line for line in listed.splitlines() if line.startswith(f"{SERVER}:"))
    assert "Connected" in line

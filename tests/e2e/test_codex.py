"""Real Codex, driven by a scripted model behind the Responses API."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from house import STDIO, House
from scripted_model import Say, ScriptedModel, Step, Use, call_outputs, openai

RUN_SECONDS = 240


class Codex:
    """The program, with a home folder that holds nothing of anybody's."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CODEX_HOME": str(home / ".codex"),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "sk-not-a-key",
        }

    def run(self, *arguments: str) -> str:
        ran = subprocess.run(
            [str(self.program), *arguments],
            env=self.environment(),
            cwd=self.folder / "project",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stdout + ran.stderr

    def follow(self, steps: Sequence[Step], *flags: str) -> ScriptedModel:
        with openai(steps) as model:
            provider = f'{{name="scripted",base_url="{model.url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}'
            self.run(
                "exec", "--skip-git-repo-check",
                "-c", "model_provider=scripted",
                "-c", f"model_providers.scripted={provider}",
                "-c", "model=gpt-5",
                *flags, "Please do it.",
            )  # fmt: skip
        return model


@pytest.fixture
def codex(package: Callable[[str], Path], tmp_path: Path) -> Codex:
    package("@openai/codex")
    import npm

    found = sorted((npm.cache_folder() / "node_modules" / "@openai").glob("codex*/vendor/*/*/codex"))
    if not found:
        pytest.skip("Codex has no native program for this platform")
    (tmp_path / "codex" / "home" / ".codex").mkdir(parents=True)
    (tmp_path / "codex" / "project").mkdir()
    return Codex(found[0], tmp_path / "codex")


def add(codex: Codex, house: House) -> None:
    variables = [word for pair in house.settings.items() for word in ("--env", "=".join(pair))]
    codex.run("mcp", "add", "metaforge", *variables, "--", sys.executable, *STDIO)


def seen_by(model: ScriptedModel) -> list[str]:
    """Return what the model was shown of each call, as JSON text."""
    outputs = max((call_outputs(body) for body in model.requests), key=len)
    return [json.dumps(output["output"]) for output in outputs]


def test_codex_lists_the_server_that_was_added(codex: Codex, house: House) -> None:
    add(codex, house)
    assert "metaforge" in codex.run("mcp", "list")


def test_a_read_only_tool_runs_without_asking_anybody(codex: Codex, house: House) -> None:
    add(codex, house)
    model = codex.follow([Use("fixtureproc_echo", {"text": "hi"}, "mcp__metaforge"), Say("Done.")])
    (shown,) = seen_by(model)
    assert "hi" in shown
    assert "call_id" in shown


@pytest.mark.program("ccx", "cadquery", "gmsh")
def test_the_demos_two_prompts_give_the_model_numbers_and_files(codex: Codex, workshop: House) -> None:
    add(codex, workshop)
    bracket = {"shape_type": "box", "parameters": {"width": 50, "length": 30, "height": 10}}
    stress = {
        "analysis_type": "static_stress",
        "step_file": "out/bracket.step",
        "material": "steel-316",
        "supports": [{"face": "bottom"}],
        "loads": [{"face": "top", "force_n": [0, 0, -1000]}],
    }
    steps = [
        Use("cadquery_create_parametric", {**bracket, "output_path": "out/bracket.step"}, "mcp__metaforge"),
        Use("calculix_run_fea", stress, "mcp__metaforge"),
        Say("The bracket holds."),
    ]
    model = codex.follow(steps, "--dangerously-bypass-approvals-and-sandbox")
    part, stresses = seen_by(model)
    assert "volume_mm3" in part
    assert "15000" in part
    assert "max_von_mises_mpa" in stresses
    assert (workshop.workspace / "out/bracket.step").is_file()

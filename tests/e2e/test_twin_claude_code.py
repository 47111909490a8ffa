"""The design record by real Claude Code: a scripted model designs a bracket and is shown what became of its proof."""

import json
from typing import Any

import pytest
import twin_walk as walk
from house import House
from scripted_model import Json, Say, Step, Then, Use
from test_claude_code import SERVER, ClaudeCode, claude, era, over_stdio, seen_by, structure, words

__all__ = ["claude", "era"]

READ = "ReadMcpResourceTool"


def _use(step: walk.Step) -> Then:
    tool = f"mcp__{SERVER}__{step.tool.replace('.', '_')}"
    return Then(lambda results: Use(tool, step.arguments(_learnt(results))))


def _read(uri: Any) -> Then:
    return Then(lambda results: Use(READ, {"server": SERVER, "uri": uri(_learnt(results))}))


def _learnt(results: list[Json]) -> dict[str, Json]:
    """Return what the steps so far returned, as the model was shown it."""
    steps = zip(walk.STEPS, results, strict=False)
    return {step.name: structure(result) for step, result in steps if not step.refused}


def _resource(result: Json) -> str:
    assert not result.get("is_error"), words(result)
    (content,) = json.loads(words(result))["contents"]
    text: str = content["text"]
    return text


@pytest.mark.slow
@pytest.mark.program("ccx", "cadquery", "gmsh", "kglite", "graphglot")
def test_the_model_designs_proves_and_revises_a_bracket_and_is_told_what_is_suspect(
    claude: ClaudeCode, workshop: House, era: dict[str, str]
) -> None:
    steps: list[Step] = [
        *map(_use, walk.STEPS),
        _read(lambda seen: walk.item_uri(seen, "CAD-BRACKET@1")),
        _read(walk.solve_uri),
        _read(walk.prd_uri),
        Say("The proof has to be made again."),
    ]
    allow = ["--allowedTools", f"mcp__{SERVER},{READ}"]
    model = claude.follow(steps, over_stdio(workshop), *allow, **era)
    shown = seen_by(model)
    assert len(shown) == len(walk.STEPS) + 3
    for step, result in zip(walk.STEPS, shown, strict=False):
        assert bool(result.get("is_error")) == step.refused, (step.name, words(result))
    refusals = {step.name: words(result) for step, result in zip(walk.STEPS, shown, strict=False) if step.refused}
    item, solve, prd = map(_resource, shown[-3:])
    seen = _learnt(shown)
    walk.check_what_is_wanted(seen)
    walk.check_the_part_and_its_proof(seen)
    walk.check_what_the_revision_left_behind(seen, refusals["stale"])
    walk.check_the_queries(seen, refusals["unbound"], refusals["theirs"])
    walk.check_resources(seen, json.loads(item), json.loads(solve), prd)

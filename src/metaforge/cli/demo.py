"""`metaforge demo`: a bracket from nothing to stresses, asked of the server the way an agent asks.

Every number comes from the tools' results; only times are measured here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from metaforge.cli.client import ClientError, StdioClient
from metaforge.cli.screen import print_json, progress
from metaforge.settings import Settings

STEP_SECONDS = 600.0


@dataclass(frozen=True)
class Request:
    """One step of the demo: what a person would ask, and the tool call that answers it."""

    key: str
    title: str
    prompt: str
    tool: str
    arguments: dict[str, Any]


REQUESTS = (
    Request(
        "part",
        "Create the bracket",
        "create a 50 x 30 x 10 mm CAD bracket and save it as out/bracket.step",
        "cadquery.create_parametric",
        {
            "shape_type": "box",
            "parameters": {"width": 50, "length": 30, "height": 10},
            "output_path": "out/bracket.step",
            "material": "steel-316",
            "picture": True,
        },
    ),
    Request(
        "export",
        "Export for the web",
        "save it as GLB too",
        "cadquery.export_geometry",
        {"input_file": "out/bracket.step", "output_format": "glb", "output_path": "out/bracket.glb"},
    ),
    Request(
        "stress",
        "Mesh and solve",
        "run a stress analysis on out/bracket.step: steel-316, 1 kN on the top face along -z, fixed base",
        "calculix.run_fea",
        {
            "load_case": "1 kN down",
            "analysis_type": "static_stress",
            "step_file": "out/bracket.step",
            "material": "steel-316",
            "supports": [{"face": "bottom"}],
            "loads": [{"face": "top", "force_n": [0, 0, -1000]}],
            "output_path": "out/bracket-stress.frd",
            "picture": True,
        },
    ),
)


@dataclass
class Demo:
    """What the demo did and saw."""

    server: dict[str, Any] = field(default_factory=dict)
    tools_count: int = 0
    unavailable: list[dict[str, Any]] = field(default_factory=list)
    workspace: str = ""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    pictures: int = 0
    problem: str = ""
    failed_step: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        steps = [
            {"step": request.key, "tool": request.tool, "arguments": request.arguments,
             "seconds": self.seconds.get(request.key), "result": self.results.get(request.key)}
            for request in REQUESTS
        ]  # fmt: skip
        data: dict[str, Any] = {
            "ok": not self.problem,
            "server": self.server,
            "tools_count": self.tools_count,
            "steps": steps,
            "files": self.files,
            "pictures_count": self.pictures,
            "start_seconds": self.seconds.get("start"),
            "total_seconds": self.seconds.get("total"),
        }
        if self.problem:
            data |= {"problem": self.problem, "failed_step": self.failed_step}
        return data


def run(*, as_json: bool) -> int:
    """Run the demo and show it. Returns 1 when a step failed."""
    settings = Settings.from_environment()
    demo = watched(dict(settings.environment))
    if as_json:
        print_json(demo.as_json())
    else:
        from metaforge.cli.demo_report import show

        show(demo)
    return 1 if demo.problem else 0


def watched(environment: dict[str, str]) -> Demo:
    """Run the demo with a progress bar per step."""
    with progress() as bars:
        tasks = {request.key: bars.add_task(request.title, total=1.0, start=False, doing="") for request in REQUESTS}

        def moved(key: str, fraction: float, message: str) -> None:
            task = tasks[key]
            bars.start_task(task)
            bars.update(task, completed=fraction, doing=message)

        return perform(StdioClient(environment=environment), moved)


def perform(client: StdioClient, moved: Callable[[str, float, str], None]) -> Demo:
    """Ask the server everything, one request after another; a failure ends the demo and is told in it."""
    demo = Demo()
    started = time.perf_counter()
    try:
        with client:
            demo.failed_step = "start"
            demo.server = client.initialize().get("serverInfo", {})
            listed = client.request("tools/list", {}, within_seconds=60)
            demo.seconds["start"] = time.perf_counter() - started
            demo.tools_count = len(listed["tools"])
            demo.unavailable = (listed.get("_meta") or {}).get("unavailableAdapters", [])
            for request in REQUESTS:
                _ask(client, request, demo, moved)
        demo.failed_step = ""
    except ClientError as fault:
        demo.problem = str(fault)
    demo.seconds["total"] = time.perf_counter() - started
    return demo


def _ask(client: StdioClient, request: Request, demo: Demo, moved: Callable[[str, float, str], None]) -> None:
    demo.failed_step = request.key
    moved(request.key, 0.0, f"asking {request.tool}")
    started = time.perf_counter()
    result = client.call_tool(
        request.tool,
        request.arguments,
        within_seconds=STEP_SECONDS,
        moved=lambda fraction, message: moved(request.key, fraction, message),
    )
    demo.seconds[request.key] = time.perf_counter() - started
    moved(request.key, 1.0, "done")
    structured = dict(result["structuredContent"])
    demo.files += structured.get("files", [])
    demo.pictures += sum(block.get("type") == "image" for block in result.get("content", ()))
    demo.results[request.key] = structured

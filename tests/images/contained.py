"""An adapter in its image: started as the guide says, spoken to over stdin and stdout."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import build_images  # noqa: E402
import container_engine  # noqa: E402

sys.path.pop(0)

CLOSED = (
    "--network=none", "--read-only", "--memory=2g", "--memory-swap=2g", "--cpu-period=100000", "--cpu-quota=200000",
    "--pids-limit=100", "--security-opt=no-new-privileges", "--cap-drop=all", "--ipc=private", "--pull=never",
    "--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096", "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size=256m,mode=1777",
)  # fmt: skip
"""What every adapter must be content with."""
SECONDS = 240


def image_of(name: str) -> str:
    return build_images.tags_of(build_images.known_images()[name], build_images.Revision("", False), "localhost")[0]


class Contained:
    """One image, with a workspace it may read and an output folder it may write."""

    def __init__(self, engine: container_engine.Engine, name: str, folder: Path) -> None:
        self.engine, self.image = engine, image_of(name)
        self.workspace, self.output = folder / "workspace", folder / "output"
        self.workspace.mkdir()
        self.output.mkdir()
        self.output.chmod(0o777)

    def run(self, *words: str, said: str = "", entry: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
        """Run the image with everything closed."""
        own = ("--read-only-tmpfs=false", "--log-driver=none") if self.engine.name == "podman" else ()
        volumes = (f"--volume={self.workspace}:/workspace:ro", f"--volume={self.output}:/output:rw")
        command = self.engine.command(
            "run", "--rm", "--interactive", *CLOSED, *own, *volumes, *entry, self.image, *words
        )
        return subprocess.run(command, input=said, capture_output=True, text=True, timeout=SECONDS, check=False)

    def ask(self, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Send requests to the adapter, and return what it answered to each."""
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(requests)
        ]
        ran = self.run(said="\n".join(lines) + "\n")
        messages = [json.loads(line) for line in ran.stdout.splitlines()]
        answers = {message["id"]: message for message in messages if "id" in message}
        assert set(answers) == set(range(len(requests))), f"exit status {ran.returncode}: {ran.stderr[-2000:]}"
        return [answers[number] for number in range(len(requests))]

    def call(self, tool_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call one tool, and return its result."""
        (answer,) = self.ask(("tool/call", {"tool_id": tool_id, "arguments": arguments, "timeout_seconds": SECONDS}))
        assert "result" in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

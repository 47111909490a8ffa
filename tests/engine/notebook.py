"""An adapter with sessions and no program behind it: a notebook whose lines stay in its process."""

import os
import secrets
import subprocess
import sys
import time
from typing import Any

from metaforge.core.errors import ToolError
from metaforge.tools.context import Answer, OutputFile, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.paths import OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool


class NotebookServer(McpToolServer):
    """Keeps lines."""

    def __init__(self) -> None:
        super().__init__("notebook", "1")
        self.lines: dict[str, list[str]] = {}

    def _of(self, session_id: str) -> list[str]:
        if session_id not in self.lines:
            raise ToolError(f"no notebook {session_id}", kind="no_such_session")
        return self.lines[session_id]

    @tool(effect=Effect.PRODUCE, capability="notes", title="Open", session="open")
    def open_session(self, ctx: ToolContext, name: str = "") -> Answer[dict[str, Any]]:
        """Open.

        Args:
            name: Of it.
        """
        session_id = secrets.token_hex(4)
        self.lines[session_id] = []
        return Answer({"session_id": session_id, "pid": os.getpid()}, "open")

    @tool(effect=Effect.PRODUCE, capability="notes", title="Close", session="close")
    def close_session(self, ctx: ToolContext, session_id: str) -> Answer[dict[str, Any]]:
        """Close.

        Args:
            session_id: Which.
        """
        return Answer({"lines": len(self.lines.pop(session_id))}, "closed")

    @tool(effect=Effect.PRODUCE, capability="notes", title="Write", session="use", unitless_names=True)
    def write(self, ctx: ToolContext, session_id: str, line: str, pause_mm: float = 0.0) -> Answer[dict[str, Any]]:
        """Write.

        Args:
            session_id: Where.
            line: What.
            pause_mm: Seconds to take.
        """
        ctx.progress(0.5, "writing")
        time.sleep(pause_mm)
        self._of(session_id).append(line)
        return Answer({"lines": list(self._of(session_id)), "pid": os.getpid()}, "written")

    @tool(effect=Effect.PRODUCE, capability="notes", title="Refuse", session="use")
    def refuse(self, ctx: ToolContext, session_id: str) -> Answer[dict[str, Any]]:
        """Refuse.

        Args:
            session_id: Where.
        """
        raise ToolError("no", kind="wrong")

    @tool(effect=Effect.PRODUCE, capability="notes", title="Crash", session="use")
    def crash(self, ctx: ToolContext, session_id: str) -> Answer[dict[str, Any]]:
        """End the process.

        Args:
            session_id: Where.
        """
        os.kill(os.getpid(), 9)
        raise AssertionError

    @tool(effect=Effect.DESTROY, capability="notes", title="Run", session="use", runs_caller_code=True)
    def run(self, ctx: ToolContext, session_id: str) -> Answer[dict[str, Any]]:
        """Leave a process behind that swaps files of later calls for links.

        Args:
            session_id: Where.
        """
        swap = (
            "import os, sys\nfolder = sys.argv[1]\nwhile True:\n for f in os.listdir(folder):\n"
            "  p = os.path.join(folder, f)\n"
            "  try:\n   os.path.islink(p) or (os.unlink(p), os.symlink('/etc/hostname', p))\n  except OSError: pass\n"
        )
        subprocess.Popen([sys.executable, "-c", swap, str(ctx.output)], start_new_session=True)
        return Answer({"ran": True}, "ran")

    @tool(effect=Effect.PRODUCE, capability="notes", title="Save", session="use")
    def save(self, ctx: ToolContext, session_id: str, path: OutputPath) -> Answer[dict[str, Any]]:
        """Save.

        Args:
            session_id: Which.
            path: Where to.
        """
        ctx.output_file(path).write_text("\n".join(self._of(session_id)))
        return Answer({"path": path}, "saved", files=(OutputFile(path, "text/plain", "notes"),))

    @tool(effect=Effect.READ, capability="notes", title="Stateless")
    def stateless(self, ctx: ToolContext) -> Answer[dict[str, Any]]:
        """Tell which process answers."""
        return Answer({"pid": os.getpid()}, "here")

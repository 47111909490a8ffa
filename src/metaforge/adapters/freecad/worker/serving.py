"""Answer requests, one JSON object a line: `{"id", "do", "with"}` in, `{"id", "told"}` or `{"id", "refused"}` out.

An edit is told with what was measured before and after it, and stays open: the other side judges it, and says
`take_back` when it does not hold.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from . import seam
from .document import Document
from .edits import Edit
from .refusals import Refusal, words_of

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
Read = Callable[[Document, dict[str, Any]], dict[str, Any]]


class Server:
    """Holds the document of this process."""

    def __init__(self) -> None:
        from . import tables

        self.reads: dict[str, Read] = tables.READS
        self.edits = tables.EDITS
        self.document: Document | None = None

    def answer(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Do what one request asks."""
        if name == "open":
            if self.document is not None:
                self.document.close()
            self.document = Document(given["name"])
            return {"version": seam.version()}
        document = self.document
        if document is None:
            document = self.document = Document("scratch")
        if name == "take_back":
            document.take_back()
            return {}
        if name in self.reads:
            return self.reads[name](document, given)
        return self._edit(document, name, given)

    def _edit(self, document: Document, name: str, given: dict[str, Any]) -> dict[str, Any]:
        document.begin(name)
        edit = Edit(document)
        try:
            self.edits[name](edit, given)
            return edit.told()
        except BaseException:
            document.take_back()
            raise


def main() -> int:
    """Serve until the pipe closes."""
    reading, writing = os.fdopen(os.dup(0), "rb"), os.dup(1)
    # What a kernel prints must not reach the pipe.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    seam.load()
    # FreeCAD catches crashes and ends with an exit code of its own: the signal itself says more.
    for number in CRASHES:
        signal.signal(number, signal.SIG_DFL)
    server = Server()

    def send(message: dict[str, Any]) -> None:
        pending = memoryview(json.dumps(message).encode() + b"\n")
        while pending:
            pending = pending[os.write(writing, pending) :]

    send({"ready": seam.version(), "python": sys.version.split()[0]})
    for line in iter(reading.readline, b""):
        request = json.loads(line)
        send({"id": request["id"], **_reply(server, request)})
    return 0


def _reply(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"told": server.answer(request["do"], request["with"])}
    except Refusal as fault:
        refused = {
            "message": fault.message, "kind": fault.kind, "fix": fault.fix, "where": fault.where, "mode": fault.mode
        }  # fmt: skip
    except MemoryError:
        refused = {"message": "FreeCAD ran out of memory", "kind": "memory_limit", "mode": "limit"}
    except Exception as fault:  # noqa: BLE001 - the process boundary: FreeCAD raises what it likes
        traceback.print_exc(file=sys.stderr)
        refused = {"message": f"FreeCAD refused: {words_of(fault)}", "kind": "freecad_error", "mode": "design"}
    return {"refused": refused}

"""Arguments that a person typed instead of the agent's: read, and held to the tool's schema while that can help."""

import json
from typing import TYPE_CHECKING, Any

from metaforge.approvals.model import Entry
from metaforge.approvals.showing import restored
from metaforge.calls.arguments import ArgumentJudge
from metaforge.core.errors import InvalidArguments, Quarantined, UnknownTool

if TYPE_CHECKING:
    from metaforge.twin.measuring import Catalogue


class Edits:
    """Reads edited arguments.

    Args:
        catalogue: knows the tools of this server; an entry may be of another one's.
    """

    def __init__(self, catalogue: "Catalogue | None") -> None:
        self._catalogue = catalogue
        self._judge = ArgumentJudge()

    def read(self, text: str, entry: Entry) -> dict[str, Any]:
        """Return the arguments somebody typed for an entry.

        Raises:
            InvalidArguments: they are no JSON object, or not what the tool takes; the message says where.
        """
        typed = _object(text)
        if self._catalogue is None:
            return typed
        try:
            tool = self._catalogue.find(entry.request.tool_id)
            self._judge.judge(tool, dict(entry.request.arguments))
        except (UnknownTool, Quarantined, InvalidArguments):
            return typed  # whoever runs the call knows the tool better than this server
        self._judge.judge(tool, restored(typed, entry.request.arguments))
        return typed


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as fault:
        raise InvalidArguments(
            f"The arguments are no JSON: {fault.msg}, line {fault.lineno}, column {fault.colno}"
        ) from None
    except RecursionError:
        raise InvalidArguments("The arguments are nested too deeply") from None
    if not isinstance(found, dict):
        raise InvalidArguments("The arguments must be an object: { ... }")
    return found

"""One edit under way: what was measured before it, what it made, what is measured after it."""

from typing import Any

from .document import Document
from .measuring import facts_at


class Edit:
    """Given to the function that does an edit; it says what to measure and what came of it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.made: Any = None
        self.measured: Any = None
        self.more: dict[str, Any] = {}
        self._before: list[dict[str, Any]] = []

    def before(self, *things: Any) -> None:
        """Measure what the edit starts from."""
        for thing in things:
            facts = facts_at(self.document, thing)
            if facts is not None:
                self._before.append(facts)

    def result(self, made: Any, measured: Any = None, **more: Any) -> None:
        """Say what the edit made.

        Args:
            made: the new or changed object.
            measured: the object whose shape tells what changed; `made` itself by default.
            more: what else to tell.
        """
        self.made, self.measured, self.more = made, measured or made, more

    def told(self) -> dict[str, Any]:
        """Return what the other side judges."""
        made = self.made
        told: dict[str, Any] = dict(self.more)
        if made is not None:
            told |= {"obj_id": made.Name, "label": made.Label, "kind": made.TypeId}
            told["after"] = facts_at(self.document, self.measured)
        told["before"] = self._before
        return told

"""What a call leaves behind, and the MCP annotation hints that follow from it."""

from enum import StrEnum


class Effect(StrEnum):
    """Chosen by the tool's author, never guessed from its name."""

    READ = "read"
    """Changes nothing."""
    PRODUCE = "produce"
    """A new artefact in the workspace or a scratch session; never replaces other content."""
    WRITE = "write"
    """Adds to the design record: twin, project, flow."""
    DESTROY = "destroy"
    """Replaces or removes something."""


class HoldRule(StrEnum):
    """Whether a person is asked before a call runs."""

    BY_EFFECT = "by_effect"
    """Writes of remote callers are held."""
    NEVER = "never"
    """Bookkeeping of the caller's own activity: nobody is asked, whoever calls."""
    ALWAYS = "always"
    """A decision that is a person's alone: always asked, and the approver is never taken from arguments."""


def annotations(effect: Effect, *, idempotent: bool, title: str, open_world: bool = False) -> dict[str, object]:
    """Return the `annotations` object of `tools/list`: a title and all four hints, each decided on purpose.

    A read is idempotent by nature; every other tool says so itself. Nothing here talks to the world outside
    the machine unless its author says so.
    """
    return {
        "title": title,
        "readOnlyHint": effect is Effect.READ,
        "destructiveHint": effect is Effect.DESTROY,
        "idempotentHint": idempotent or effect is Effect.READ,
        "openWorldHint": open_world,
    }

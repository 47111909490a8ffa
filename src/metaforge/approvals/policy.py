"""Which calls wait for a person. No I/O.

In this order: a person's own decision is always held; what reads runs; bookkeeping, and what a person decides
elsewhere, runs; what the worker of an approved run may do runs; a local caller's writes run where they are exempt;
else the effect decides.
"""

from dataclasses import dataclass

from metaforge.settings import Settings
from metaforge.tools.context import Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool


@dataclass(frozen=True)
class Policy:
    """What is held on this server.

    Attributes:
        held: effects of remote callers' calls that wait for a person.
        exempt_local: whether a local caller's do not.
    """

    held: frozenset[Effect] = frozenset({Effect.WRITE, Effect.DESTROY})
    exempt_local: bool = True

    @classmethod
    def of(cls, settings: Settings) -> "Policy":
        """Return what the settings say."""
        return cls(frozenset(map(Effect, settings.approval_hold)), settings.exempt_local_writes)

    def holds(self, tool: Tool, effect: Effect, trust: Trust) -> bool:
        """Whether a call waits for a person.

        Args:
            tool: what is called.
            effect: of this call, which may be more than its tool's own.
            trust: how far the caller is known.
        """
        if tool.hold is HoldRule.ALWAYS:
            return True
        if effect not in self.held or tool.hold is HoldRule.NEVER:
            return False
        if trust is Trust.SERVICE:  # judged before, where its run was looked up
            return False
        return not (self.exempt_local and trust is Trust.LOCAL)

    def reason(self, tool: Tool, effect: Effect) -> str:
        """Say why a held call is held."""
        if tool.hold is HoldRule.ALWAYS:
            return "it is a decision that only a person may take"
        if effect is Effect.DESTROY:
            return "it would replace or remove existing content"
        if effect is Effect.WRITE:
            return "it would add to the design record"
        return "it would add files to the workspace"

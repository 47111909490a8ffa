"""Stage 3: find the tool a caller's name means, and whether it can run here."""

from metaforge.calls.call import Call, Proceed, replace
from metaforge.core.errors import ToolUnavailable
from metaforge.registry.profiles import PROFILES, refuse_outside
from metaforge.registry.registry import ToolRegistry
from metaforge.tools.context import Outcome
from metaforge.tools.effect import Effect


class Resolve:
    """Raises UnknownTool, Quarantined, ToolUnavailable or, where the caller is served a profile, OutsideProfile."""

    def __init__(self, registry: ToolRegistry) -> None:
        self.registry = registry

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        profile = call.caller.profile
        tool = self.registry.find(call.tool_id, PROFILES[profile].tools if profile else None)
        call.notes["tool"] = tool
        if profile:
            refuse_outside(tool.id, profile)
        if tool.needs and (told := self.registry.unavailable_reason(tool.id)):
            reason, install = told
            raise ToolUnavailable(
                f"{tool.id} cannot run here: {reason}. To mend it: {install}",
                tool_id=tool.id, reason=reason, install=install,
            )  # fmt: skip
        effect = Effect.DESTROY if call.arguments.get("overwrite") is True else tool.effect
        return await proceed(replace(call, tool=tool, effect=effect))

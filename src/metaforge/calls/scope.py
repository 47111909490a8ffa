"""Stage 5: which project and run a call is about, from its arguments or from what its client opened."""

from typing import Protocol

from metaforge.calls.call import Call, Proceed, replace
from metaforge.tools.context import Caller, Outcome


class Scopes(Protocol):
    """What clients have opened: `twin.scopes.ClientScopes`."""

    def project_of(self, caller: Caller) -> str: ...

    def run_of(self, caller: Caller) -> str: ...


class Scope:
    """Fills the call's project and run. A run never comes from arguments."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        named = call.arguments.get("project_id")
        project_id = named if isinstance(named, str) and named else ""
        project_id = project_id or call.project_id or self.scopes.project_of(call.caller)
        run_id = call.run_id or self.scopes.run_of(call.caller)
        if project_id or run_id:
            call.notes["project_id"], call.notes["run_id"] = project_id, run_id
            call = replace(call, project_id=project_id, run_id=run_id)
        return await proceed(call)

"""Stage 6: judge arguments and paths, before anybody is asked and before anything runs."""

from metaforge.calls.arguments import ArgumentJudge
from metaforge.calls.call import Call, Proceed, replace
from metaforge.calls.paths import BadPath, PathJudge, digest_large
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Outcome


class Validate:
    """Raises InvalidArguments naming every wrong field at once."""

    def __init__(self, arguments: ArgumentJudge, paths: PathJudge) -> None:
        self.arguments = arguments
        self.paths = paths

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        tool = call.resolved()
        arguments = self.arguments.judge(tool, call.arguments)
        arguments, inputs, problems = self.paths.judge(tool, arguments)
        if not problems and not all(each.sha256 for each in inputs):
            try:
                inputs = await digest_large(inputs)
            except BadPath as fault:
                problems = {"input": str(fault)}
        if problems:
            listed = "\n".join(f"- {name}: {text}" for name, text in problems.items())
            raise InvalidArguments(f"{tool.id} was not run: a path cannot be used.\n{listed}", fields=problems)
        if inputs:
            call.notes["inputs"] = inputs
        if arguments is not call.arguments:
            call = replace(call, arguments=arguments, inputs=inputs)
        return await proceed(call)

    async def judged(self, call: Call) -> Call:
        """Return a call with its arguments judged, for those that a person edited."""
        passed: list[Call] = []

        async def keep(judged: Call) -> Outcome:
            passed.append(judged)
            return Outcome({}, "")

        await self(call, keep)
        return passed[0]

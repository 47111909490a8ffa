"""What a held call would change: the design now against after, or the files it would replace."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from metaforge.approvals.held import HeldCall
from metaforge.core.ids import sha256_file
from metaforge.telemetry.redaction import redact
from metaforge.tools.context import Invocation, Outcome
from metaforge.tools.manifest import Tool
from metaforge.twin.rehearsal import Recording

PLACEHOLDER_APPROVER = "whoever approves this"
_MOST_ENTRIES = 60
_BOUNDS = ((2000, _MOST_ENTRIES, 8), (400, 30, 5), (100, 8, 3))
"""Longest text, most entries of one thing, deepest nesting: the first that make all of it fit, or the last."""
_LARGEST_BYTES = 128 * 1024


Rehearse = Callable[[Tool, dict[str, Any], Invocation, bool], Awaitable[tuple[Recording, Outcome] | None]]
"""Run a call of the design record for trial; None for tools that cannot be tried. The last says whether geometry is
measured and drawn."""


@dataclass(frozen=True)
class Preview:
    """What a call would do.

    Attributes:
        summary: in a few words, completing "It would: ".
        now: what is there, by what it is about; None where there is nothing.
        after: what would be there, by the same names.
        pictures: digests of pictures.
        warnings: what the tool would say besides.
        reads: digests of the files it reads, by path.
    """

    summary: str
    now: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    pictures: Sequence[str] = ()
    warnings: Sequence[str] = ()
    reads: Mapping[str, str] = field(default_factory=dict)

    def change(self) -> dict[str, Any]:
        """Return it as the ledger keeps it: bounded, without secrets, in numbers that JSON carries exactly."""
        told: dict[str, Any] = {"now": _fitting(self.now), "after": _fitting(self.after)}
        told["pictures"] = list(self.pictures)[:_MOST_ENTRIES]
        if self.warnings:
            told["warnings"] = bounded(list(self.warnings))
        if self.reads:
            told["reads"] = dict(self.reads)
        return told


class Previewer:
    """Makes previews.

    Args:
        rehearse: tries calls of the design record.
        outputs: which workspace paths a call's arguments name as output.
        workspace: where they lie.
    """

    def __init__(
        self, rehearse: Rehearse, outputs: Callable[[Tool, dict[str, Any]], tuple[str, ...]], workspace: Path
    ) -> None:
        self._rehearse = rehearse
        self._outputs = outputs
        self._workspace = workspace

    async def preview(self, call: HeldCall, *, again: bool = False) -> Preview:
        """Say what a call would do.

        Args:
            call: resolved, scoped and validated.
            again: whether to look only at what may have changed: geometry is not measured and drawn, files are read.

        Raises:
            MetaForgeError: the call would be refused; nobody needs to be asked.
        """
        tool = call.resolved()
        invocation = Invocation(
            call_id=call.id,
            caller=call.caller,
            timeout_seconds=tool.timeout_seconds,
            project_id=call.project_id,
            run_id=call.run_id,
            overwrite=call.arguments.get("overwrite") is True,
            approver=PLACEHOLDER_APPROVER,
        )
        reads = {each.path: each.sha256 for each in call.inputs}
        if again and reads:
            reads = await asyncio.to_thread(lambda: {path: self._digest(path) for path in reads})
        tried = await self._rehearse(tool, call.arguments, invocation, not again)
        if tried is not None:
            recording, outcome = tried
            return Preview(
                _words(recording.now, recording.after) or outcome.summary,
                recording.now,
                recording.after,
                recording.pictures,
                outcome.warnings,
                reads,
            )
        return await asyncio.to_thread(self._files, call, reads)

    def _files(self, call: HeldCall, reads: Mapping[str, str]) -> Preview:
        now = {path: self._file(path) for path in self._outputs(call.resolved(), call.arguments)}
        after = {path: {"replaced": True} if there else {"new": True} for path, there in now.items()}
        replaced = [f"replace {path} ({there['size_bytes']} bytes)" for path, there in now.items() if there]
        added = [f"write {path}" for path, there in now.items() if not there]
        return Preview("; ".join([*replaced, *added]), now, after, (), (), reads)

    def _digest(self, path: str) -> str:
        there = self._file(path)
        return there["sha256"] if there else "missing"

    def _file(self, path: str) -> dict[str, Any] | None:
        target = self._workspace / path
        try:
            return {"size_bytes": target.stat().st_size, "sha256": sha256_file(target)} if target.is_file() else None
        except OSError:
            return None


def _words(now: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Say in words what is written and what it replaces."""
    told = [_word(subject, now.get(subject), facts) for subject, facts in after.items()]
    return "; ".join(told[:6]) + (f"; and {len(told) - 6} more" if len(told) > 6 else "")


def _word(subject: str, before: Any, facts: Any) -> str:
    after = facts if isinstance(facts, Mapping) else {}
    if after.get("deleted"):
        return f"delete {subject}{_named(before)}"
    if isinstance(before, Mapping):
        if "ref" not in before:
            return f"change {subject}"
        return f"write {after.get('ref', subject)}{_named(after)} in place of {before['ref']}"
    if subject.startswith("new "):
        return f"add {subject.removeprefix('new ').partition(':')[0]}{_named(after)}"
    return f"write {after.get('ref', subject)}{_named(after)}"


def _named(facts: Any) -> str:
    return f" {facts['name']!r}" if isinstance(facts, Mapping) and facts.get("name") else ""


def bounded(value: Any, longest: int = 2000, most: int = _MOST_ENTRIES, deepest: int = 8) -> Any:
    """Return JSON data cut to what a person can read, without secrets, in numbers that JSON carries exactly.

    Args:
        value: the data.
        longest: characters of a text.
        most: entries of a list or an object.
        deepest: levels.
    """
    return _shortened(redact(_pruned(value, most, deepest)), longest)


def _fitting(value: Any) -> Any:
    """Return JSON data cut until all of it is small."""
    cut: Any = None
    for bounds in _BOUNDS:
        cut = bounded(value, *bounds)
        if len(orjson.dumps(cut)) <= _LARGEST_BYTES:
            break
    return cut


def _pruned(value: Any, most: int, deepest: int) -> Any:
    """Leave out what is too much or too deep, and write numbers so that JSON carries them exactly."""
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if deepest <= 0:
        return "..."
    if isinstance(value, Mapping):
        kept = {str(name): _pruned(each, most, deepest - 1) for name, each in islice(value.items(), most)}
        return kept if len(value) <= most else {**kept, "...": f"{len(value) - most} more"}
    if isinstance(value, list | tuple):
        listed = [_pruned(each, most, deepest - 1) for each in value[:most]]
        return listed if len(value) <= most else [*listed, f"... {len(value) - most} more"]
    return str(value)


def _shortened(value: Any, longest: int) -> Any:
    """Cut texts, once no part of a secret can stay behind."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]} ... ({len(value)} characters)"
    if isinstance(value, dict):
        return {name[:longest]: _shortened(each, longest) for name, each in value.items()}
    return [_shortened(each, longest) for each in value] if isinstance(value, list) else value

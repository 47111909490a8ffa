"""What a page shows of an entry: its arguments without secrets, what it would change, and how it came to its state."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metaforge.approvals.model import Entry, State, seconds_between
from metaforge.approvals.showing import shown_arguments, whole_arguments
from metaforge.twin.difference import ABSENT, FieldChange, differences
from metaforge.web.pages.words import duration, pretty, spoken

TONES = {
    State.AWAITING: "warn", State.APPROVED: "accent", State.RUNNING: "accent", State.COMPLETED: "good",
    State.REJECTED: "bad", State.TIMED_OUT: "none", State.CANCELED: "none", State.FAILED: "bad",
}  # fmt: skip
WORDS = {State.AWAITING: "waiting"}
SHAPES = ("step", "brep", "glb")
"""Formats of geometry that the 3-D view can show."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGEST_CHARS = 16


@dataclass(frozen=True)
class Step:
    """One thing that happened to an entry."""

    tone: str
    title: str
    at: str
    detail: str = ""


@dataclass(frozen=True)
class Change:
    """What a call would do to one thing: an item, a project, a file.

    Attributes:
        subject: what it is.
        what: new, changed, deleted or the same.
        fields: values now and after, as rows of a table.
        shapes: label and digest of its geometry now and after.
    """

    subject: str
    what: str
    fields: Sequence[Mapping[str, Any]]
    shapes: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class ShownEntry:
    """An entry as a template wants it."""

    arguments: Mapping[str, Any]
    hidden: bool
    """Whether secrets are not shown."""
    cut: bool
    """Whether something is too long to be shown."""
    edited: Mapping[str, Any] | None
    edits: Sequence[Mapping[str, Any]]
    """What a person changed in the arguments, as rows of a table."""
    changes: Sequence[Change]
    warnings: Sequence[str]
    pictures: Sequence[str]
    reads: Mapping[str, str]
    """Files it reads, with the digests of what they hold."""
    decidable: bool
    why_not: str
    steps: Sequence[Step]
    tone: str
    word: str

    @property
    def has_shapes(self) -> bool:
        """Whether there is geometry to look at."""
        return any(each.shapes for each in self.changes)


def shown_entry(entry: Entry) -> ShownEntry:
    """Return what to show of an entry."""
    asked, change = entry.request, entry.request.change
    arguments, whole = shown_arguments(asked.arguments), whole_arguments(asked.arguments)
    edited = shown_arguments(entry.arguments) if entry.edited else None
    why_not = _why_not(entry)
    return ShownEntry(
        arguments=arguments,
        hidden=whole != dict(asked.arguments),
        cut=whole != arguments,
        edited=edited,
        edits=field_rows(differences(arguments, edited)) if edited is not None else (),
        changes=_changes(_mapping(change.get("now")), _mapping(change.get("after"))),
        warnings=[str(each) for each in change.get("warnings") or ()],
        pictures=[each for each in change.get("pictures") or () if isinstance(each, str)],
        reads=_mapping(change.get("reads")),
        decidable=not why_not,
        why_not=why_not,
        steps=_steps(entry),
        tone=TONES[entry.state],
        word=word_of(entry.state),
    )


def _changes(now: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    told = []
    for subject in [*now, *(each for each in after if each not in now)]:
        before, then = now.get(subject), after.get(subject)
        fields = field_rows(differences(_facts(before), _facts(then)))
        shapes = [
            (f"{label} {facts.get('ref') or ''}".strip(), str(facts["content_hash"]))
            for label, facts in (("Now", _facts(before)), ("After", _facts(then)))
            if facts.get("format") in SHAPES and facts.get("content_hash")
        ]
        told.append(Change(subject, _what(before, then, bool(fields)), fields, shapes))
    return told


def _what(before: Any, after: Any, differs: bool) -> str:
    if before is None:
        return "new"
    if after is None or (isinstance(after, Mapping) and after.get("deleted")):
        return "deleted"
    return "changed" if differs else "the same"


def _facts(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else {"value": value}


def word_of(state: State) -> str:
    """Return a state as a person says it."""
    return WORDS.get(state, spoken(state))


def field_rows(changes: Iterable[FieldChange]) -> list[dict[str, Any]]:
    """Return differences as a template wants them: single values before those inside lists, which are many."""
    return [_field_row(each) for each in sorted(changes, key=lambda each: each.path.count("["))]


def _field_row(change: FieldChange) -> dict[str, Any]:
    before, after = _texts(change.before, change.after)
    return {
        "path": change.path,
        "what": change.what,
        "before": before,
        "after": after,
        "lines": change.text_lines() if change.is_text else None,
    }


def _texts(before: Any, after: Any) -> tuple[str | None, str | None]:
    """Return both sides as texts; numbers to seven digits where that is enough to tell them apart."""
    short = _rounded(before), _rounded(after)
    if short[0] != short[1]:
        return short
    return _text(before), _text(after)


def _rounded(value: Any) -> str | None:
    return f"{value:.7g}" if isinstance(value, float) else _text(value)


def _text(value: Any) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, str):
        return f"{value[:_DIGEST_CHARS]}…" if _DIGEST.fullmatch(value) else value
    return pretty(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _why_not(entry: Entry) -> str:
    if entry.state is State.AWAITING and entry.on_dashboard:
        return ""
    if entry.state is State.AWAITING:
        client = entry.request.caller.client_name or "the client"
        return f"The question is open in {client}. It can be answered here too as soon as nobody answers it there."
    return f"This is {word_of(entry.state)}: nothing is left to decide."


def _steps(entry: Entry) -> list[Step]:
    asked, decision = entry.request, entry.decision
    client = asked.caller.client_name
    steps = [
        Step("accent", f"Asked by {asked.caller.actor_id}" + (f" with {client}" if client else ""), asked.created_at)
    ]
    if decision is not None:
        waited = duration(seconds_between(asked.created_at, decision.decided_at))
        approved = decision.decision == "approve"
        verb = "Approved with edits" if entry.edited else "Approved" if approved else "Rejected"
        by = decision.approver
        known = "" if by.verified else " (identity not verified)"
        behalf = f" for {by.on_behalf_of}" if by.on_behalf_of else ""
        title = f"{verb} by {by.name}{known}{behalf} after {waited}, on {_surface(by.surface)}"
        steps.append(Step("good" if approved else "bad", title, decision.decided_at, decision.reason))
    if entry.state in (State.RUNNING, State.COMPLETED, State.FAILED, State.TIMED_OUT, State.CANCELED):
        steps.append(Step(TONES[entry.state], word_of(entry.state).capitalize(), entry.updated_at, entry.ended_reason))
    return steps


def _surface(surface: str) -> str:
    return {
        "elicitation": "the client", "dashboard": "the dashboard", "cli": "the command line", "agent": "an agent's call"
    }.get(surface, surface)  # fmt: skip

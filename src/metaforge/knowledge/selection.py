"""Which parts in the documents meet limits: judged by quoted values, unit-aware, and never by a guess."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from metaforge.core.errors import ToolError
from metaforge.knowledge.extraction import PartFacts, Property, extract, parts_of
from metaforge.knowledge.library import Library

Operator = Literal["<=", "<", ">=", ">", "==", "!="]
Verdict = Literal["pass", "fail", "unknown"]

_ORDER = {"pass": 0, "unknown": 1, "fail": 2}
_WRITTEN = {"\u2126": "ohm", "\u03a9": "ohm", "°C": "degC", "\u00b5": "u", "\u03bc": "u", "%": "percent", "\u2212": "-"}


@dataclass(frozen=True)
class Limit:
    """What a property must be."""

    property: str
    operator: Operator
    value: float | str
    unit: str = ""


@dataclass(frozen=True)
class Check:
    """How a part stands against a limit."""

    limit: Limit
    verdict: Verdict
    why: str
    found: Property


@dataclass(frozen=True)
class Suggestion:
    """A part, and how it stands."""

    mpn: str
    facts: PartFacts
    checks: list[Check]
    similarity: float

    @property
    def verdict(self) -> Verdict:
        verdicts: list[Verdict] = [each.verdict for each in self.checks]
        return max(verdicts, key=_ORDER.__getitem__, default="unknown")


@dataclass(frozen=True)
class Selection:
    """The parts that meet the limits first, then those of which not everything is known, then those that fail."""

    suggestions: list[Suggestion]
    candidates_evaluated: int
    total_search_hits: int
    notes: tuple[str, ...] = ()


def select(
    library: Library,
    project_id: str,
    query: str,
    limits: Sequence[Limit],
    *,
    top_k: int,
    candidate_limit: int,
    aliases: Mapping[str, Sequence[str]],
) -> Selection:
    """Return parts that documents about components name, judged by limits.

    Args:
        query: what the part is for.
        candidate_limit: how many parts are judged at most.
    """
    for limit in limits:
        _check_unit(limit)
    found = library.search(project_id=project_id, query=query, top_k=candidate_limit, knowledge_type="component")
    named: dict[str, tuple[str, float]] = {}
    for hit in found.hits:
        for mpn in parts_of(hit.text, hit.heading, hit.kind, hit.context, hit.metadata):
            named.setdefault(mpn.lower(), (mpn, hit.similarity))
    names = [limit.property for limit in limits]
    judged = []
    for mpn, similarity in list(named.values())[:candidate_limit]:
        facts = extract(library, project_id, mpn, names, aliases)
        checks = [_judge(limit, value) for limit, value in zip(limits, facts.properties, strict=True)]
        judged.append(Suggestion(mpn, facts, checks, similarity))
    judged.sort(key=lambda each: (_ORDER[each.verdict], sum(_ORDER[check.verdict] for check in each.checks),
                                  -each.similarity, each.mpn))  # fmt: skip
    return Selection(judged[:top_k], len(judged), len(found.hits), found.notes)


def _judge(limit: Limit, found: Property) -> Check:
    best = found.best
    if best is None:
        return Check(limit, "unknown", "no document gives it", found)
    if found.also:
        return Check(limit, "unknown", f"documents disagree: {best.value} and {found.also[0].value}", found)
    if not best.value:
        return Check(limit, "unknown", "its row holds several values; name min, typ or max", found)
    if isinstance(limit.value, str):
        return _judge_text(limit, found, best.value)
    said = _number(best.value)
    if said is None:
        return Check(limit, "unknown", f"{best.value!r} is no single number", found)
    try:
        value = _converted(said, best.unit, limit.unit)
    except ValueError as fault:
        return Check(limit, "unknown", str(fault), found)
    good = _holds(value, limit.operator, limit.value)
    told = f"{value:.6g} {limit.unit}".strip()
    wanted = f"{limit.operator} {limit.value:g} {limit.unit}".strip()
    return Check(limit, "pass" if good else "fail", f"it is {told}, wanted is {wanted}", found)


def _judge_text(limit: Limit, found: Property, value: str) -> Check:
    if limit.operator not in ("==", "!="):
        return Check(limit, "unknown", f"texts are compared by == or !=, not by {limit.operator}", found)
    same = " ".join(value.lower().split()) == " ".join(str(limit.value).lower().split())
    good = same is (limit.operator == "==")
    return Check(limit, "pass" if good else "fail", f"{value!r} {limit.operator} {limit.value!r}", found)


def _holds(value: float, operator: Operator, limit: float) -> bool:
    equal = abs(value - limit) <= 1e-9 * max(abs(value), abs(limit))
    return {
        "<=": value < limit or equal, "<": value < limit and not equal, ">=": value > limit or equal,
        ">": value > limit and not equal, "==": equal, "!=": not equal,
    }[operator]  # fmt: skip


def _number(text: str) -> float | None:
    plain = text.strip().replace("\u2212", "-")
    if not re.fullmatch(r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?", plain):
        return None
    if "," in plain:
        head, _, tail = plain.rpartition(",")
        # 1,500 is fifteen hundred in one country and one and a half in another: not to be guessed.
        if len(tail) == 3 or "." in plain or "," in head:
            return None
        plain = f"{head}.{tail}"
    try:
        return float(plain)
    except ValueError:
        return None


def _converted(value: float, unit: str, wanted: str) -> float:
    if unit.strip() == wanted.strip():
        return value
    if not unit or not wanted:
        raise ValueError(f"the document says {value:g} {unit or 'without a unit'}, the limit {wanted or 'has none'}")
    registry = _units()
    try:
        return float(registry.Quantity(value, _written(unit)).to(_written(wanted)).magnitude)
    except Exception as fault:  # noqa: BLE001 - the library raises whatever a text provokes in its parser
        raise ValueError(f"{value:g} {unit} cannot be told in {wanted}: {type(fault).__name__}") from None


def _check_unit(limit: Limit) -> None:
    if not limit.unit or isinstance(limit.value, str):
        return
    try:
        _units().Unit(_written(limit.unit))
    except Exception:  # noqa: BLE001 - as above
        raise ToolError(
            f"{limit.property}: there is no unit {limit.unit!r}",
            kind="unknown_unit", fix="write it as V, mA, mm, degC, kg, MPa, ohm",
        ) from None  # fmt: skip


def _written(unit: str) -> str:
    for found, plain in _WRITTEN.items():
        unit = unit.replace(found, plain)
    return unit


@lru_cache(maxsize=1)
def _units() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)

"""An adapter's answer as the Outcome that goes back through the pipeline."""

from typing import Any

from metaforge.core.build import build
from metaforge.tools.context import Artefact, ImageContent, Outcome, ProgramVersion
from metaforge.tools.manifest import Tool


def outcome_of(
    tool: Tool,
    answer: dict[str, Any],
    files: tuple[Artefact, ...] = (),
    images: tuple[ImageContent, ...] = (),
    meta: dict[str, Any] | None = None,
) -> Outcome:
    """Return the Outcome of a `tool/call` result.

    Args:
        answer: the `result` object, from an adapter of any make: only `data` is needed.
    """
    data, programs = answer.get("data"), answer.get("programs")
    return build(
        Outcome,
        data=data if isinstance(data, dict) else {},
        summary=str(answer.get("summary") or f"{tool.name}: done."),
        warnings=tuple(answer.get("warnings") or ()),
        next_step=str(answer.get("next_step") or ""),
        files=files,
        images=images,
        programs=tuple(ProgramVersion(str(n), str(v)) for n, v in programs.items()) if programs else (),
        meta=meta or {},
    )

"""What a client is told of the server, once: only of tools that it is served."""

import re
from collections.abc import Container

from metaforge.registry.profiles import Profile

_GENERAL = """\
MetaForge runs real engineering tools. Units are N, mm, MPa, t, s; every number's name ends in its unit; \
temperatures are in degrees Celsius; axes are right-handed with +z up ("top" is the +z side). Paths are relative to \
the workspace. Files come back as resource links and with absolute paths. Read `warnings` and `next_step` in every \
result before you rely on a number.\
"""
_RECIPES = (
    (
        "A part: cadquery.create_parametric",
        "then cadquery.get_properties to see its faces",
        "then calculix.run_fea with supports and loads on faces",
    ),
    (
        "The design record: project.open",
        "or project.create",
        "twin.record_constraint_set for every requirement value",
        "twin.commit_geometry for a part",
        "twin.record_evidence citing the call_id of the analysis",
    ),
)
"""Each a first step and what may follow; steps whose tools are not served are left out."""
_RULES = """\
KEY@n is an exact revision; a revised item makes older evidence suspect. health.check tells what is missing and how \
to mend it. A write may wait for a person; if it is refused, ask them rather than trying again. Every write takes \
idempotency_key: sent again under it, it is not done again.\
"""
_BRIEF = """\
Arguments are listed in short: {a*, b: kind = default (about)} is what an object holds, * marks what is required; \
output_path is the file to write, by default one in out/ or beside the input; overwrite replaces a file with other \
content; picture also draws the result; project_id names another project than the opened one; supersedes is the node \
that is replaced.\
"""
_TOOL = re.compile(r"\b[a-z]+\.[a-z_]+\b")


def instructions(profile: Profile | None = None) -> str:
    """Return the text for a client that is served a profile, or every tool."""
    told = [_GENERAL, *(_recipe(steps, profile.tools if profile else None) for steps in _RECIPES), _RULES]
    if profile is not None:
        told += [_BRIEF, f"Served is the profile {profile.name}; calls to other tools are refused."]
    return " ".join(filter(None, told))


def _recipe(steps: tuple[str, ...], served: Container[str] | None) -> str:
    kept = [step for step in steps if served is None or all(tool_id in served for tool_id in _TOOL.findall(step))]
    return ", ".join(kept) + "." if steps[0] in kept else ""

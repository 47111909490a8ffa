"""Profiles: the tools of one kind of work, few enough for a model to keep them all in mind.

A profile is what a client is served and what it may call. Tools are named one by one, so that a new tool enters a
profile only on purpose; their order in a listing is that of the registry.
"""

from dataclasses import dataclass
from functools import cached_property

from metaforge.core.errors import InvalidParams, ToolUnavailable

MOST_TOOLS_COUNT = 40
MOST_TOKENS = 8000
CORE_TOKENS = 5000
BYTES_PER_TOKEN = 4
"""A list's tokens are the bytes of its compact JSON by this."""


class UnknownProfile(InvalidParams):
    """`data`: code unknown_profile, profile, available."""


def _ids(adapter_id: str, names: str) -> tuple[str, ...]:
    return tuple(f"{adapter_id}.{name}" for name in names.split())


@dataclass(frozen=True)
class Profile:
    """A named set of tools."""

    name: str
    about: str
    own: tuple[str, ...]
    """What it holds beside the tools that every profile holds."""

    @property
    def ordered(self) -> tuple[str, ...]:
        """The ids of all its tools."""
        return (*EVERYWHERE, *self.own)

    @cached_property
    def tools(self) -> frozenset[str]:
        """The same, to look them up."""
        return frozenset(self.ordered)


EVERYWHERE = (
    *_ids("health", "check"),
    *_ids("project", "open create"),
    *_ids("twin", "get_node record_decision record_evidence constraint_violations"),
    *_ids("knowledge", "search"),
)
"""What every kind of work needs: where am I, what is asked for, what documents say, putting a result on record."""
_RECORD = (
    *_ids("project", "list get"),
    *_ids("session", "start log_event complete"),
    *_ids("twin", "find_by_property thread_for"),
)
"""More of the design record, for profiles with room for it."""

_CORE = Profile(
    "core",
    "The design record: projects, requirements, decisions, evidence, traceability.",
    (
        *(each for each in _RECORD if each != "session.log_event"),
        *_ids("project", "update"),
        *_ids("knowledge", "ingest"),
        *_ids("constraint", "validate"),
        *_ids(
            "twin",
            "query_cypher record_claim record_constraint_set record_engineering_entity record_document trace_matrix",
        ),
    ),
)
_MECHANICAL = Profile(
    "mechanical",
    "Parts and assemblies: CAD by dimensions, by script and in FreeCAD sessions, and a stress check.",
    (
        *_ids("cadquery", "create_parametric execute_script create_assembly get_properties export_geometry"),
        *_ids("calculix", "run_fea"),
        *_ids(
            "freecad",
            "open_session close_session create_primitive create_body create_sketch pad_sketch pocket_sketch fillet "
            "chamfer shell_solid linear_pattern boolean transform_object measure describe_model import_step "
            "export_model",
        ),
        *_ids("twin", "commit_geometry stage_work_product_file"),
    ),
)
_SIMULATION = Profile(
    "simulation",
    "Stress, vibration, heat and circuits, from part or netlist to evidence.",
    (
        *_RECORD,
        *_ids("calculix", "run_fea run_thermal validate_mesh extract_results"),
        *_ids("cadquery", "create_parametric get_properties"),
        *_ids("freecad", "generate_mesh"),
        *_ids("spice", "run_simulation"),
        *_ids("twin", "commit_geometry stage_work_product_file record_claim"),
    ),
)
_ELECTRONICS = Profile(
    "electronics",
    "Schematics, boards and circuits: checks, fabrication files, simulation, bought parts, a box around it.",
    (
        *_RECORD,
        *_ids(
            "kicad",
            "run_erc run_drc export_bom export_netlist get_pin_mapping export_gerber render generate_schematic "
            "auto_route",
        ),
        *_ids("spice", "run_simulation"),
        *_ids("cadquery", "generate_enclosure"),
        *_ids("constraint", "validate"),
        *_ids("knowledge", "ingest populate_bom"),
        *_ids("twin", "record_component_selection record_constraint_set stage_work_product_file"),
    ),
)
_ROBOTICS = Profile(
    "robotics",
    "Moving assemblies: parts, joints, masses and inertias.",
    (
        *_RECORD,
        *_ids("cadquery", "create_parametric execute_script create_assembly get_properties export_geometry"),
        *_ids(
            "freecad",
            "open_session close_session import_step create_primitive boolean transform_object create_assembly "
            "add_part_to_assembly add_assembly_joint list_joints measure export_model",
        ),
        *_ids("twin", "commit_geometry stage_work_product_file"),
    ),
)

PROFILES = {each.name: each for each in (_CORE, _MECHANICAL, _SIMULATION, _ELECTRONICS, _ROBOTICS)}


def find_profile(name: str, asked_by: str = "profile") -> Profile:
    """Return the profile of a name.

    Args:
        asked_by: what named it, for the message: `--profile`, `METAFORGE_PROFILE`.

    Raises:
        UnknownProfile: there is none of this name; the message lists those there are.
    """
    profile = PROFILES.get(name)
    if profile is not None:
        return profile
    import difflib

    near = difflib.get_close_matches(name, PROFILES, n=1)
    meant = f". Did you mean: {near[0]}" if near else ""
    raise UnknownProfile(
        f"{asked_by} {name[:80]!r}: there is no such profile; there are: {', '.join(PROFILES)}{meant}",
        code="unknown_profile", profile=name[:80], available=list(PROFILES),
    )  # fmt: skip


def profiles_with(tool_id: str) -> list[str]:
    """Return the names of the profiles that hold a tool."""
    return [profile.name for profile in PROFILES.values() if tool_id in profile.tools]


def choose_profile(asked: str, served: str) -> str:
    """Return the profile of a connection.

    Args:
        asked: what the connection's address names; empty for none.
        served: what the server was started with, which binds every connection; empty for none.

    Raises:
        UnknownProfile: there is none of this name, or the server serves another one only.
    """
    if not asked:
        return served
    find_profile(asked, "?profile=")
    if served and asked != served:
        raise UnknownProfile(
            f"?profile= {asked!r}: this server was started with the profile {served} and serves no other; "
            f"leave ?profile= out, or start it with --profile {asked}",
            code="unknown_profile", profile=asked, available=[served],
        )  # fmt: skip
    return asked


class OutsideProfile(ToolUnavailable):
    """`data`: tool_id, reason, profile, profiles (those that hold the tool)."""


def refuse_outside(tool_id: str, profile: str) -> None:
    """Refuse a tool that is not in the profile a caller is served.

    Raises:
        OutsideProfile: it is not; the message says where it is served.
    """
    if tool_id in PROFILES[profile].tools:
        return
    others = profiles_with(tool_id)
    where = f"it is in: {', '.join(others)}" if others else "no profile holds it"
    choice = f"with --profile {others[0]} or without a profile" if others else "without a profile"
    address = f"/mcp?profile={others[0]} or /mcp" if others else "/mcp"
    raise OutsideProfile(
        f"{tool_id} was not run: it is not in the profile {profile}, which is all that this connection is served; "
        f"{where}. To have it, a person starts the server {choice}, or connects to {address}",
        tool_id=tool_id, reason="outside_profile", profile=profile, profiles=others,
    )  # fmt: skip

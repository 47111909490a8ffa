"""What the tools answer. None means: not part of this answer.

Class docstrings are read by models in every `tools/list`: they are short on purpose.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Place:
    """From the page's upper left corner, y downwards."""

    what: str
    position_mm: list[float]


@dataclass(frozen=True)
class ViolationTold:
    """blocking: an error that nobody has accepted in the project."""

    type: str
    severity: str
    blocking: bool
    description: str
    items: list[Place]
    sheet: str | None = None
    excluded: str | None = None
    fix: str | None = None


@dataclass(frozen=True)
class RulesUsed:
    """What the check went by; without a project file KiCad's own defaults."""

    project_file: str | None
    ignored_checks: list[str]
    accepted_count: int
    limits_mm: dict[str, float] | None = None
    custom_rules_file: str | None = None
    custom_rules_count: int | None = None
    custom_rules_loaded: bool | None = None


@dataclass(frozen=True)
class ErcAnswer:
    """passed: nothing blocks. Counts leave out what the project accepts (excluded)."""

    schematic_file: str
    passed: bool
    total_violations: int
    errors: int
    warnings: int
    excluded: int
    by_type: dict[str, int]
    violations: list[ViolationTold]
    sheets_count: int
    rules: RulesUsed


@dataclass(frozen=True)
class DrcAnswer:
    """passed: nothing blocks. errors and warnings count rule violations, unconnected items and parity together."""

    pcb_file: str
    passed: bool
    total_violations: int
    unconnected_items: int
    parity_issues: int
    schematic_parity: str
    """tested, or why not."""
    errors: int
    warnings: int
    excluded: int
    by_type: dict[str, int]
    violations: list[ViolationTold]
    rules: RulesUsed


@dataclass(frozen=True)
class BomLine:
    """Parts that are bought as one."""

    references: list[str]
    value: str
    footprint: str
    quantity: int
    dnp: bool
    fields: dict[str, str] | None = None


@dataclass(frozen=True)
class BomAnswer:
    """total_components: parts to be fitted or listed; unique_parts: lines."""

    output_file: str
    format: str
    total_components: int
    unique_parts: int
    dnp_count: int
    lines: list[BomLine]


@dataclass(frozen=True)
class NetlistAnswer:
    """total_nets: those of single pins too."""

    output_file: str
    format: str
    total_nets: int
    total_components: int
    without_model: list[str] | None = None
    includes: list[str] | None = None


@dataclass(frozen=True)
class PinTold:
    """net is None where nothing is connected."""

    pin: str
    name: str
    type: str
    net: str | None = None


@dataclass(frozen=True)
class ComponentPins:
    """A part with its pins."""

    reference: str
    value: str
    footprint: str
    pins: list[PinTold]


@dataclass(frozen=True)
class PinMapping:
    """Totals are of the whole answer, also where the list is cut."""

    schematic_file: str
    total_components: int
    total_pins: int
    unconnected_pins: int
    components: list[ComponentPins]


@dataclass(frozen=True)
class FabricationAnswer:
    """size_mm: of the board's outline."""

    output_dir: str
    total_files: int
    files_generated: list[str]
    layers_exported: list[str]
    size_mm: list[float]
    holes_count: int
    placed_count: int | None = None
    step_file: str | None = None


@dataclass(frozen=True)
class RenderAnswer:
    """What was drawn."""

    picture_file: str
    pages_count: int | None = None
    shown_mm: list[float] = field(default_factory=list)
    """Left, top, right, bottom of what is shown."""


@dataclass(frozen=True)
class GeneratedSchematic:
    """Read back by KiCad: its netlist is the one asked for."""

    output_file: str
    total_components: int
    total_nets: int
    passed: bool
    errors: int
    warnings: int
    violations: list[ViolationTold]
    power_flags: list[str]
    """Nets that were told to be supplied."""
    unconnected_pins: list[str]
    own_symbols: list[str]
    """Parts drawn as a box, because no library has their symbol."""


@dataclass(frozen=True)
class RoutedBoard:
    """connections: between pads. passed: routed whole, and the rules hold."""

    output_file: str
    passed: bool
    connections_count: int
    routed_count: int
    unrouted_count: int
    track_length_mm: float
    vias_count: int
    errors_before: int
    errors: int
    warnings: int
    violations: list[ViolationTold]
    router: str

"""Supports and loads in the short form: one node set and one number, each an argument of its own."""

from metaforge.adapters.calculix.arguments import HeatLoad, Load, Support, Vector
from metaforge.core.errors import InvalidArguments


def fixed(node_set: str | None) -> list[Support]:
    """Return the support of a node set held in x, y and z."""
    return [Support(node_set=node_set)] if node_set else []


def forced(node_set: str | None, force_n: Vector | None) -> list[Load]:
    """Return the load of a total force in N on a node set."""
    _refuse_half("load_node_set", node_set, "load_force_n", force_n)
    return [Load(node_set=node_set, force_n=force_n)] if node_set and force_n is not None else []


def heated(node_set: str | None, power_w: float | None) -> list[HeatLoad]:
    """Return the load of a power in W put into a node set."""
    _refuse_half("heat_source_node_set", node_set, "power_dissipation_w", power_w)
    return [HeatLoad(node_set=node_set, power_w=power_w)] if node_set and power_w is not None else []


def sunk(node_set: str | None, temperature_c: float | None) -> list[HeatLoad]:
    """Return the load of a node set held at a temperature in deg C."""
    _refuse_half("sink_node_set", node_set, "sink_temp_c", temperature_c)
    return [HeatLoad(node_set=node_set, temperature_c=temperature_c)] if node_set and temperature_c is not None else []


def _refuse_half(name: str, value: object, other_name: str, other: object) -> None:
    if (value is None) != (other is None):
        missing, given = (name, other_name) if value is None else (other_name, name)
        raise InvalidArguments(f"{given} needs {missing}", fields={missing: "required with " + given})

"""`boundary_conditions`: heat by place, the older form of `loads`."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from metaforge.adapters.calculix.arguments import HeatLoad
from metaforge.adapters.calculix.shorthand import heated, sunk
from metaforge.core.errors import InvalidArguments

EXPECTED = '{"<face or node set>": {"temperature_c": 20}} with temperature_c, power_w, heat_flux_w_m2 or film_w_m2k'


def read_conditions(given: Mapping[str, Any], node_sets: Collection[str]) -> list[HeatLoad]:
    """Return the loads that an object of conditions by place means.

    Args:
        given: by face, surface or node set: a temperature in deg C, or an object with one quantity of a load. The
            arguments heat_source_node_set, power_dissipation_w, sink_node_set and sink_temp_c may stand in it too.
        node_sets: names of the mesh's node sets; what is none of them is a face.

    Raises:
        InvalidArguments: a condition that is none; each is named.
    """
    rest = dict(given)
    loads: list[HeatLoad] = []
    wrong: dict[str, str] = {}
    try:
        loads += heated(rest.pop("heat_source_node_set", None), rest.pop("power_dissipation_w", None))
        loads += sunk(rest.pop("sink_node_set", None), rest.pop("sink_temp_c", None))
    except ValidationError as fault:
        wrong["boundary_conditions"] = _told(fault)
    for place, condition in rest.items():
        is_temperature = isinstance(condition, int | float) and not isinstance(condition, bool)
        fields = {"temperature_c": condition} if is_temperature else condition
        if isinstance(fields, Mapping):
            named = "node_set" if place in node_sets else "face"
            _add(loads, wrong, place, fields if _is_placed(fields) else {named: place, **fields})
        else:
            wrong[f"boundary_conditions.{place}"] = f"is no condition: {EXPECTED}"
    if wrong:
        listed = "; ".join(f"{name}: {text}" for name, text in wrong.items())
        raise InvalidArguments(f"boundary_conditions cannot be read. {listed}", fields=wrong)
    return loads


def _is_placed(fields: Mapping[str, Any]) -> bool:
    return "face" in fields or "node_set" in fields


def _add(loads: list[HeatLoad], wrong: dict[str, str], name: str, fields: Mapping[str, Any]) -> None:
    try:
        loads.append(HeatLoad.model_validate(fields))
    except ValidationError as fault:
        wrong[f"boundary_conditions.{name}"] = f"{_told(fault)}; expected {EXPECTED}"


def _told(fault: ValidationError) -> str:
    return ", ".join(f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in fault.errors())

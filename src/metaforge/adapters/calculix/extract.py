"""Summarise a result file that is already there."""

import numpy as np

from metaforge.adapters.calculix.answers import (
    Accuracy,
    DisplacementSummary,
    ExtractedResults,
    NodeResult,
    ResultMetadata,
    StressSummary,
    TemperatureSummary,
)
from metaforge.adapters.calculix.fields import (
    Field,
    magnitude_field,
    number,
    point,
    result_mesh,
    scalar_field,
    stress_field,
)
from metaforge.engineering.mesh import Mesh
from metaforge.formats.frd import Results, UnreadableResults
from metaforge.tools.context import Answer

SUSPICIOUS_RATIO = 10.0
"""A peak more than ten times the median is rarely the part's own stress: a corner, a support, a bad element."""
MOST_NODES = 1000


def summarise(results: Results, name: str, include_node_data: bool) -> Answer[ExtractedResults]:
    """Return what a result file says at its last increment.

    Raises:
        UnreadableResults: it holds a mesh but no results.
    """
    mesh = result_mesh(results)
    stress = stress_field(results, mesh)
    moved_block, heat_block = results.last("DISP"), results.last("NDTEMP")
    moved = magnitude_field(moved_block, mesh) if moved_block is not None else None
    heat = scalar_field(heat_block, mesh) if heat_block is not None else None
    if stress is None and moved is None and heat is None:
        found = ", ".join(dict.fromkeys(block.name for block in results.blocks)) or "none"
        raise UnreadableResults(
            f"{name} holds {len(results.node_ids)} nodes and no complete stress, displacement or temperature block "
            f"(blocks: {found}): the solver stopped before it wrote results",
            kind="no_results",
            fix="run the analysis again and look at its errors",
        )
    vector = moved_block.values if moved_block is not None else np.empty((0, 3))
    data = ExtractedResults(
        node_count=len(results.node_ids),
        metadata=_metadata(results),
        stress=_stress(stress) if stress is not None else None,
        displacement=_displacement(moved, moved_block.node_ids, vector)
        if moved is not None and moved_block is not None
        else None,
        temperature=_temperature(heat) if heat is not None else None,
        node_data=_node_data(results, mesh, stress, heat) if include_node_data else None,
        node_data_omitted=max(0, len(results.node_ids) - MOST_NODES) if include_node_data else None,
    )
    warnings = [] if not results.truncated else [f"{name} ends early: the last complete increment was read"]
    if data.stress is not None and data.stress.accuracy.suspicious:
        warnings.append(data.stress.accuracy.reason)
    return Answer(
        data, summary=_summary(data), warnings=tuple(warnings), programs={"ccx": results.version or "unknown"}
    )


def _metadata(results: Results) -> ResultMetadata:
    return ResultMetadata(
        blocks=list(dict.fromkeys(block.name for block in results.blocks)),
        increments=len({(block.step, block.value) for block in results.blocks}),
        complete=not results.truncated,
        solver_version=results.version,
        element_count=sum(len(ids) for ids, _ in results.elements.values()),
    )


def _stress(field: Field) -> StressSummary:
    row = field.largest()
    median = float(np.median(field.values))
    ratio = float(field.values[row]) / median if median > 0 else None
    suspicious = ratio is not None and ratio > SUSPICIOUS_RATIO
    reason = (
        f"the peak is {ratio:.3g} times the median stress: a support, a sharp corner, a point load or a bad element"
        if suspicious
        else f"the peak is within {SUSPICIOUS_RATIO:g} times the median stress"
    )
    return StressSummary(
        nodes=len(field.values),
        max_mpa=number(field.values[row]),
        min_mpa=number(field.values.min()),
        avg_mpa=number(field.values.mean()),
        max_at_mm=field.at(row),
        max_node=int(field.node_ids[row]),
        accuracy=Accuracy(suspicious, reason, None if ratio is None else float(f"{ratio:.3g}")),
    )


def _displacement(
    field: Field,
    ids: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    vectors: "np.ndarray[tuple[int, int], np.dtype[np.float64]]",
) -> DisplacementSummary:
    row = field.largest()
    node = int(field.node_ids[row])
    vector = vectors[int(np.flatnonzero(ids == node)[0]), :3]
    return DisplacementSummary(len(field.values), number(field.values[row]), field.at(row), node, point(vector))


def _temperature(field: Field) -> TemperatureSummary:
    row = field.largest()
    return TemperatureSummary(len(field.values), number(field.values.min()), number(field.values[row]), field.at(row))


def _node_data(results: Results, mesh: Mesh, stress: Field | None, heat: Field | None) -> list[NodeResult]:
    """Return values per node: the highest stressed or hottest first, at most MOST_NODES."""
    lead = stress or heat
    ids = mesh.node_ids if lead is None else lead.node_ids[np.argsort(-lead.values, kind="stable")]
    block = results.last("DISP")
    moved = dict(zip(block.node_ids.tolist(), block.values[:, :3], strict=True)) if block is not None else {}
    stresses = dict(zip(stress.node_ids.tolist(), stress.values.tolist(), strict=True)) if stress else {}
    heats = dict(zip(heat.node_ids.tolist(), heat.values.tolist(), strict=True)) if heat else {}
    chosen = ids[:MOST_NODES]
    places = mesh.points_mm(chosen)
    return [
        NodeResult(
            node=int(node),
            at_mm=point(place),
            von_mises_mpa=number(stresses[node]) if node in stresses else None,
            displacement_mm=point(moved[node]) if node in moved else None,
            temperature_c=number(heats[node]) if node in heats else None,
        )
        for node, place in zip(chosen.tolist(), places, strict=True)
    ]


def _summary(data: ExtractedResults) -> str:
    parts = [f"{data.node_count} nodes"]
    if data.stress is not None:
        at = ", ".join(f"{value:.4g}" for value in data.stress.max_at_mm)
        parts.append(f"max von Mises {data.stress.max_mpa:.4g} MPa at [{at}] mm")
        if data.stress.accuracy.suspicious:
            parts.append(f"suspicious: {data.stress.accuracy.max_to_median_ratio:.3g} times the median")
    if data.displacement is not None:
        parts.append(f"max displacement {data.displacement.max_mm:.4g} mm")
    if data.temperature is not None:
        parts.append(f"temperature {data.temperature.min_c:.5g} to {data.temperature.max_c:.5g} deg C")
    return "; ".join(parts) + "."

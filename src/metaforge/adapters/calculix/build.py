"""Turn what a caller said into a problem: faces into nodes, forces into nodal loads, names into materials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metaforge.adapters.calculix.answers import LoadEcho, SupportEcho
from metaforge.adapters.calculix.arguments import HeatLoad, Load, Place, Support
from metaforge.adapters.calculix.fields import number, point
from metaforge.adapters.calculix.load_checks import load_warnings, refuse_impossible_temperatures
from metaforge.adapters.calculix.preparation import look_up, refuse_missing_properties
from metaforge.adapters.calculix.problem import (
    MW_MM2_PER_W_M2,
    MW_PER_W,
    T_MM3_PER_KG_M3,
    TEMPERATURE_DOF,
    Applied,
    Film,
    Fixed,
    Problem,
    Transient,
)
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.boundary import boundary_faces
from metaforge.engineering.consistent_loads import area_shares, mass_shares, pressure_forces
from metaforge.engineering.faces import describe, select
from metaforge.engineering.materials import Material
from metaforge.engineering.mesh import Floats, Ids, Mesh
from metaforge.engineering.restraint import Held, loose_bodies
from metaforge.engineering.surface_geometry import face_areas_mm2, face_nodes

_AXES = "xyz"
MM_PER_M = 1000.0


@dataclass(frozen=True)
class Wanted:
    """A problem as the caller put it."""

    analysis: str
    supports: Sequence[Support]
    loads: Sequence[HeatLoad]
    mode_count: int = 3
    transient: Transient | None = None
    initial_temperature_c: float = 20.0


@dataclass(frozen=True)
class Built:
    """A problem and how the caller's words were understood."""

    problem: Problem
    supports: list[SupportEcho]
    loads: list[LoadEcho]
    warnings: list[str]
    rigid_body_modes: int
    point_load_nodes: Ids


def build_problem(mesh: Mesh, materials: Mapping[str, Material], wanted: Wanted) -> Built:
    """Build a problem.

    Args:
        mesh: solid elements whose sections are the keys of `materials`.
        wanted: supports, loads and analysis.

    Raises:
        InvalidArguments: a place that does not exist, a property that is missing.
        ToolError: nothing holds the part, or heat has nowhere to go.
    """
    refuse_missing_properties(
        materials,
        wanted.analysis,
        transient=wanted.transient is not None,
        accelerated=any(load.given() == ["acceleration_m_s2"] for load in wanted.loads),
        heated=any(load.temperature_c is not None for load in wanted.loads),
    )
    refuse_impossible_temperatures(wanted.loads, wanted.initial_temperature_c)
    builder = _Builder(mesh, materials, wanted)
    for support in wanted.supports:
        builder.add_support(support)
    for load in wanted.loads:
        builder.add_load(load)
    return builder.finish()


class _Builder:
    def __init__(self, mesh: Mesh, materials: Mapping[str, Material], wanted: Wanted) -> None:
        self.mesh, self.materials, self.wanted = mesh, dict(materials), wanted
        self.thermal = wanted.analysis == "thermal"
        self.fixed: list[Fixed] = []
        self.applied: list[Applied] = []
        self.films: list[Film] = []
        self.temperature_c: float | None = None
        self.reference_c = wanted.initial_temperature_c
        self.support_echoes: list[SupportEcho] = []
        self.load_echoes: list[LoadEcho] = []
        self.warnings: list[str] = []
        self.point_nodes: list[Ids] = []

    def add_support(self, support: Support) -> None:
        nodes, faces = self._nodes(support)
        if support.within_box_mm is not None:
            low, high = np.array(support.within_box_mm[:3]), np.array(support.within_box_mm[3:])
            points = self.mesh.points_mm(nodes)
            nodes = nodes[((points >= low - 1e-6) & (points <= high + 1e-6)).all(axis=1)]
            if not len(nodes):
                raise InvalidArguments(
                    f"No node of {support.described()} lies in within_box_mm {list(support.within_box_mm)}",
                    fields={"supports.within_box_mm": "xmin, ymin, zmin, xmax, ymax, zmax around nodes of the face"},
                )
        values = _held_values(support)
        if self.thermal:
            return
        self.fixed.append(Fixed(f"support: {support.described()}", nodes, values))
        held = [_AXES[dof - 1] if value == 0 else f"{_AXES[dof - 1]} = {value:g} mm" for dof, value in values.items()]
        self.support_echoes.append(SupportEcho(support.described(), faces, len(nodes), held))

    def add_load(self, load: HeatLoad) -> None:
        if isinstance(load, Load) and load.force_n is not None:
            self._force(load, load.force_n)
        elif isinstance(load, Load) and load.pressure_mpa is not None:
            self._pressure(load, load.pressure_mpa)
        elif isinstance(load, Load) and load.acceleration_m_s2 is not None:
            self._acceleration(load, load.acceleration_m_s2)
        elif load.temperature_c is not None:
            self._temperature(load, load.temperature_c)
        else:
            self._heat(load)

    def _force(self, load: Load, force_n: list[float]) -> None:
        self._only("mechanical", load)
        nodes, shares, faces, area = self._shares(load)
        self._apply(load, faces, "force, spread evenly", nodes, shares[:, None] * np.array(force_n), area)

    def _pressure(self, load: Load, pressure_mpa: float) -> None:
        self._only("mechanical", load)
        faces, names = self._faces(load)
        nodes, forces = pressure_forces(self.mesh, faces, pressure_mpa)
        area = float(face_areas_mm2(self.mesh, faces).sum())
        self._apply(load, names, f"pressure {pressure_mpa:g} MPa against the face", nodes, forces, area)

    def _acceleration(self, load: Load, acceleration_m_s2: list[float]) -> None:
        self._only("mechanical", load)
        density = {name: (m.density_kg_m3 or 0.0) * T_MM3_PER_KG_M3 for name, m in self.materials.items()}
        nodes, mass = mass_shares(self.mesh, density)
        values = mass[:, None] * np.array(acceleration_m_s2) * MM_PER_M
        self._apply(load, [], f"acceleration of {mass.sum() * 1000:.4g} kg", nodes, values, None)

    def _apply(
        self, load: HeatLoad, faces: list[str], kind: str, nodes: Ids, values: Floats, area: float | None
    ) -> None:
        applied = Applied(f"load: {kind} on {load.described()}", nodes, values)
        self.applied.append(applied)
        rounded = None if area is None else number(area)
        if values.shape[1] == 3:
            echo = LoadEcho(load.described(), faces, kind, rounded, total_n=point(applied.total))
        else:
            echo = LoadEcho(load.described(), faces, kind, rounded, total_w=number(applied.total[0] / MW_PER_W))
        self.load_echoes.append(echo)

    def _temperature(self, load: HeatLoad, temperature_c: float) -> None:
        if not self.thermal:
            if load.face is not None or load.node_set is not None:
                raise InvalidArguments(
                    "A static analysis takes one temperature for the whole part: leave out face and node_set, or use "
                    "calculix.run_thermal for temperatures of faces",
                    fields={"loads.temperature_c": "without face"},
                )
            self.temperature_c = temperature_c
            self.reference_c = load.reference_temperature_c if isinstance(load, Load) else self.reference_c
            kind = f"temperature {temperature_c:g} deg C, stress-free at {self.reference_c:g} deg C"
            self.load_echoes.append(LoadEcho("the whole part", [], kind))
            return
        if load.face is None and load.node_set is None:
            raise InvalidArguments(
                "A thermal analysis needs the face that temperature_c holds", fields={"loads.face": "a face"}
            )
        nodes, faces = self._nodes(load)
        self.fixed.append(Fixed(f"temperature: {load.described()}", nodes, {TEMPERATURE_DOF: temperature_c}))
        self.load_echoes.append(LoadEcho(load.described(), faces, f"held at {temperature_c:g} deg C"))

    def _heat(self, load: HeatLoad) -> None:
        self._only("thermal", load)
        if load.film_w_m2k is not None and load.ambient_c is not None:
            faces, names = self._faces(load)
            self.films.append(Film(load.described(), faces, load.film_w_m2k, load.ambient_c))
            kind = f"convection {load.film_w_m2k:g} W/(m2 K) to {load.ambient_c:g} deg C"
            cooled = number(face_areas_mm2(self.mesh, faces).sum())
            self.load_echoes.append(LoadEcho(load.described(), names, kind, cooled))
        elif load.heat_flux_w_m2 is not None:
            faces, names = self._faces(load)
            nodes, areas = area_shares(self.mesh, faces)
            heat = (areas * load.heat_flux_w_m2 * MW_MM2_PER_W_M2)[:, None]
            self._apply(load, names, f"heat flux {load.heat_flux_w_m2:g} W/m2", nodes, heat, float(areas.sum()))
        elif load.power_w is not None:
            nodes, shares, names, area = self._shares(load)
            power = (shares * load.power_w * MW_PER_W)[:, None]
            self._apply(load, names, "power, spread evenly", nodes, power, area)

    def _only(self, wanted: str, load: HeatLoad) -> None:
        if (wanted == "thermal") != self.thermal:
            given = ", ".join(load.given())
            use = "calculix.run_thermal or analysis_type thermal" if wanted == "thermal" else "static_stress"
            raise InvalidArguments(
                f"A load with {given} does not belong into a {self.wanted.analysis} analysis: use {use}",
                fields={"loads": f"no {given} here"},
            )

    def _nodes(self, place: Place) -> tuple[Ids, list[str]]:
        if place.node_set is not None:
            return self._node_set(place.node_set), []
        faces, names = self._faces(place)
        groups = [nodes.ravel() for _, nodes in face_nodes(self.mesh, faces)]
        return np.unique(np.concatenate(groups)), names

    def _node_set(self, name: str) -> Ids:
        known = {each.lower(): each for each in self.mesh.node_sets}
        if name.lower() not in known and name.lower() in {each.lower() for each in self.mesh.surfaces}:
            return self._nodes(Place(face=name))[0]
        return look_up(self.mesh.node_sets, name, "node set")

    def _faces(self, place: Place) -> tuple[Ids, list[str]]:
        if place.node_set is not None:
            faces = self._faces_of_nodes(self._node_set(place.node_set))
            if not len(faces):
                raise InvalidArguments(
                    f"Node set {place.node_set} covers no whole element face: a pressure or a flux needs faces",
                    fields={"face": "a face, or a node set with all nodes of a face"},
                )
            return faces, []
        names = select(self.mesh.surfaces, place.face, mesh=self.mesh)
        return np.vstack([self.mesh.surfaces[name].faces for name in names]), names

    def _shares(self, load: HeatLoad) -> tuple[Ids, Floats, list[str], float | None]:
        """Return nodes and the share of a total that each gets: by area where there are faces, else evenly."""
        if load.node_set is None:
            faces, names = self._faces(load)
            nodes, areas = area_shares(self.mesh, faces)
            return nodes, areas / areas.sum(), names, float(areas.sum())
        nodes = self._node_set(load.node_set)
        faces = self._faces_of_nodes(nodes)
        if len(faces):
            covered, areas = area_shares(self.mesh, faces)
            if len(covered) == len(nodes):
                return covered, areas / areas.sum(), [], float(areas.sum())
        if len(nodes) <= 3:
            self.point_nodes.append(nodes)
        return nodes, np.full(len(nodes), 1.0 / len(nodes)), [], None

    def _faces_of_nodes(self, nodes: Ids) -> Ids:
        skin = boundary_faces(self.mesh)
        inside = np.zeros(len(skin), dtype=np.bool_)
        for rows, members in face_nodes(self.mesh, skin):
            inside[rows] = np.isin(members, nodes).all(axis=1)
        return np.asarray(skin[inside])

    def finish(self) -> Built:
        problem = Problem(
            self.wanted.analysis, self.mesh, self.materials, tuple(self.fixed), tuple(self.applied), tuple(self.films),
            self.temperature_c, self.reference_c, self.wanted.mode_count, self.wanted.transient,
        )  # fmt: skip
        self._refuse_load_without_support_faces()
        rigid = 0 if self.thermal else self._rigid_body_modes()
        if self.thermal and self.wanted.transient is None:
            self._refuse_no_sink()
        self.warnings += load_warnings(problem, self.wanted.loads, self.load_echoes)
        points = np.unique(np.concatenate(self.point_nodes)) if self.point_nodes else np.empty(0, np.int64)
        return Built(problem, self.support_echoes, self.load_echoes, self.warnings, rigid, points)

    def _refuse_load_without_support_faces(self) -> None:
        if self.wanted.analysis in ("static_stress", "buckling") and not self.load_echoes:
            moved = any(any(fixed.values.values()) for fixed in self.fixed)
            if not moved:
                raise InvalidArguments(
                    "No load: give loads, such as {face: top, force_n: [0, 0, -1000]}; the part has\n"
                    + describe(self.mesh.surfaces),
                    fields={"loads": "at least one"},
                )

    def _rigid_body_modes(self) -> int:
        held = [Held(fixed.nodes, tuple(fixed.values)) for fixed in self.fixed]
        loose = loose_bodies(self.mesh, held)
        count = sum(len(body.motions) for body in loose)
        if not count or self.wanted.analysis == "modal":
            return count
        body = loose[0]
        faces = describe(self.mesh.surfaces) if self.mesh.surfaces else ""
        raise ToolError(
            f"The model is not restrained ({count} rigid-body mode{'s' if count > 1 else ''}): "
            f"{'the part' if len(loose) == 1 else f'a body of {body.node_count} nodes'} is free in "
            f"{', '.join(body.motions)}",
            kind="not_restrained",
            where=f"around [{', '.join(f'{v:.4g}' for v in body.centroid_mm)}] mm",
            fix="add to supports, such as {face: bottom}" + (f"; faces:\n{faces}" if faces else ""),
            rigid_body_modes=count,
        )

    def _refuse_no_sink(self) -> None:
        if not self.fixed and not self.films:
            raise ToolError(
                "No temperature is held and no face is cooled: heat has nowhere to go, and there is no steady state",
                kind="no_heat_sink",
                fix="add a load with temperature_c, or with film_w_m2k and ambient_c, on a face",
            )


def _held_values(support: Support) -> dict[int, float]:
    if support.displacement_mm is not None:
        return {_AXES.index(axis) + 1: value for axis, value in sorted(support.displacement_mm.items())}
    directions = support.directions if support.directions is not None else ["x", "y", "z"]
    return {_AXES.index(axis) + 1: 0.0 for axis in directions}

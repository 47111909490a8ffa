"""Are these numbers in N-mm-MPa-t-s? Compare them with the materials engineers use, and name the likely slip.

Solvers take any number: a modulus in Pa or a density in kg/m3 gives an answer without a word.
"""

import math
from dataclasses import dataclass

STEEL_MODULUS_MPA = 210_000.0
STEEL_DENSITY_T_MM3 = 7.85e-9


FASTEST_SOUND_M_S = 20_000.0
GPA_LOOKALIKES = (10.0, 450.0)
"""Moduli of metals, glass and composites as they read in GPa."""
LIGHTEST_METAL_T_MM3 = 1.6e-9
STIFFEST_RUBBER_RATIO = 0.36
"""Solids as soft as that are polymers and rubbers, with a Poisson's ratio above 0.4; metals lie below 0.36."""


@dataclass(frozen=True)
class Range:
    """What real solids have, from foam to diamond, and the slips that lead out of it."""

    name: str
    unit: str
    low: float
    high: float
    reference: float
    reference_name: str
    slips: tuple[tuple[float, str], ...]
    """Factor by which the slip multiplies a right value, and what was probably given."""

    def check(self, value: float, where: str) -> str | None:
        """Return a warning, or None when the value is plausible."""
        if self.low <= value <= self.high:
            return None
        ratio = value / self.reference
        text = f"{where}{self.name} = {value:g} {self.unit} is {_ratio(ratio)} {self.reference_name}"
        likely = [
            (abs(math.log10(value / factor / self.reference)), factor, slip)
            for factor, slip in self.slips
            if self.low <= value / factor <= self.high
        ]
        if likely:
            _, factor, slip = min(likely)
            return f"{text}: {slip} ({value / factor:g} {self.unit})"
        return f"{text}: outside what solids have ({self.low:g} to {self.high:g} {self.unit})"


MODULUS = Range(
    "E", "MPa", 0.01, 1.3e6, STEEL_MODULUS_MPA, "steel",
    ((1e6, "was it given in Pa? CalculiX decks in mm and N take MPa"), (1e3, "was it given in kPa?"),
     (1e-3, "was it given in GPa?"), (1e-6, "was it given in TPa?")),
)  # fmt: skip
DENSITY = Range(
    "density", "t/mm3", 5e-12, 2.5e-8, STEEL_DENSITY_T_MM3, "steel",
    ((1e12, "was it given in kg/m3? In N-mm-MPa it is t/mm3"), (1e9, "was it given in g/cm3 or t/m3?"),
     (1e3, "was it given in kg/mm3? In N-mm-MPa it is t/mm3")),
)  # fmt: skip
CONDUCTIVITY = Range(
    "conductivity", "W/(m K)", 0.005, 5500.0, 50.0, "steel",
    ((1e-3, "was it given in W/(mm K)? mW/(mm K) equals W/(m K)"), (1e3, "was it given in mW/(m K)?")),
)  # fmt: skip
EXPANSION = Range(
    "thermal expansion", "1/K", 1e-8, 4e-4, 1.2e-5, "steel", ((1e6, "was it given in 1e-6/K?"),)
)  # fmt: skip


def check_material(
    *,
    youngs_modulus_mpa: float | None = None,
    poissons_ratio: float | None = None,
    density_t_mm3: float | None = None,
    conductivity_w_mk: float | None = None,
    expansion_per_k: float | None = None,
    named: str = "",
) -> list[str]:
    """Return a warning for every property that looks like a wrong unit.

    A deck in metres (E in Pa with kg/m3) is consistent: its modulus and density are judged together.
    """
    where = f"Material {named}: " if named else ""
    if _is_si(youngs_modulus_mpa, density_t_mm3):
        return [
            f"{where}E = {youngs_modulus_mpa:g} with density {density_t_mm3:g} is consistent SI (m, N, Pa, kg): "
            "results are then in m and Pa, 1e-6 of a MPa; fields named _mm and _mpa hold them as they are"
        ]
    found: list[str | None] = [
        each.check(value, where)
        for each, value in (
            (MODULUS, youngs_modulus_mpa),
            (DENSITY, density_t_mm3),
            (CONDUCTIVITY, conductivity_w_mk),
            (EXPANSION, expansion_per_k),
        )
        if value is not None
    ]
    if poissons_ratio is not None and not 0.0 <= poissons_ratio < 0.495:
        found.append(
            f"{where}Poisson's ratio {poissons_ratio:g} is outside 0 to 0.495: near 0.5 displacement elements lock"
        )
    warnings = [warning for warning in found if warning]
    # Each alone may be right: foam is as light as steel in g/cm3, and rubber as soft as steel in GPa.
    return warnings or _check_together(youngs_modulus_mpa, poissons_ratio, density_t_mm3, where)


def _check_together(
    modulus: float | None, poissons_ratio: float | None, density: float | None, where: str
) -> list[str]:
    if modulus is None:
        return []
    if density is not None and density > 0:
        speed_m_s = math.sqrt(modulus / density) / 1000
        if speed_m_s > FASTEST_SOUND_M_S:
            return [
                f"{where}E = {modulus:g} MPa with density {density * 1e12:g} kg/m3 is a speed of sound of "
                f"{speed_m_s:.3g} m/s, and diamond has 18000: was the density given in g/cm3 or t/m3, or E in kPa?"
            ]
    dense = density is not None and density > LIGHTEST_METAL_T_MM3
    stiff_kind = density is None and poissons_ratio is not None and poissons_ratio <= STIFFEST_RUBBER_RATIO
    if GPA_LOOKALIKES[0] <= modulus <= GPA_LOOKALIKES[1] and (dense or stiff_kind):
        beside = f"density {density * 1e12:g} kg/m3" if density and dense else f"Poisson's ratio {poissons_ratio:g}"
        return [f"{where}E = {modulus:g} MPa with {beside} is as soft as polyethylene: was it given in GPa?"]
    return []


def check_size(size_mm: float) -> list[str]:
    """Return a warning when a model's largest dimension suggests another length unit."""
    if size_mm <= 0:
        return []
    if size_mm < 0.5:
        return [f"The model is {size_mm:g} mm across: was it drawn in m? Multiply its coordinates by 1000"]
    if size_mm > 1e5:
        return [f"The model is {size_mm / 1000:g} m across: was it drawn in µm, or exported in the wrong unit?"]
    return []


def _is_si(modulus: float | None, density: float | None) -> bool:
    return modulus is not None and density is not None and 1e8 <= modulus <= 1.3e12 and 5.0 <= density <= 25000.0


def _ratio(ratio: float) -> str:
    """Say a ratio the way people read it: 10^6 x, 0.001 x."""
    if ratio >= 1000 or 0 < ratio <= 1e-3:
        mantissa, _, exponent = f"{ratio:.1e}".partition("e")
        times = "" if abs(float(mantissa) - 1) < 0.05 else f"{float(mantissa):g} x "
        return f"{times}10^{int(exponent)} x"
    return f"{ratio:.3g} x"

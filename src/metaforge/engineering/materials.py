"""Materials by name: room-temperature properties with their sources, and what a caller gives on top.

Values are typical ones for first sizing; a certificate or a test of the real batch goes before them. Units:
MPa, kg/m3, W/(m K), J/(kg K), 1/K.
"""

import difflib
from dataclasses import dataclass, fields, replace

from metaforge.core.errors import InvalidArguments


@dataclass(frozen=True)
class Material:
    """An isotropic material; None where a property is not known."""

    name: str
    youngs_modulus_mpa: float | None = None
    poissons_ratio: float | None = None
    density_kg_m3: float | None = None
    yield_strength_mpa: float | None = None
    thermal_conductivity_w_mk: float | None = None
    specific_heat_j_kgk: float | None = None
    expansion_per_k: float | None = None
    kind: str = ""
    """Its family: `steel`, `cast iron`, `aluminium`, `magnesium`, `titanium`, `copper`, `polymer`, `composite` or
    `glass`; empty when the numbers are a caller's own."""
    source: str = ""


_EN = "EN 10088-1:2014 annex E"
_EC3 = (
    "EN 1993-1-1:2005 3.2.6; density, conductivity and specific heat at 20 deg C EN 1993-1-2:2005 3.2.2 and 3.4.1; "
    "yield EN 10025-2:2019 up to 16 mm"
)
_ASM1 = "ASM Metals Handbook vol. 1, 10th ed."
_ASM2 = "ASM Metals Handbook vol. 2, 10th ed."
_MMPDS = "MIL-HDBK-5J (2003)"
_AA = "conductivity and expansion at 20-100 deg C Aluminum Standards and Data (Aluminum Association)"
_CDA = "Copper Development Association data sheet"
_AUSTENITIC = "annealed, expansion 0-100 deg C, conductivity at 100 deg C"

TABLE = {
    each.name: each
    for each in (
        Material("steel-316", 193000, 0.29, 8000, 205, 16.2, 500, 1.60e-5, "steel",
                 f"{_ASM1}, AISI 316 {_AUSTENITIC}; yield ASTM A240 minimum 205 MPa"),
        Material("steel-316l", 193000, 0.29, 8000, 170, 16.2, 500, 1.60e-5, "steel",
                 f"{_ASM1}, AISI 316L {_AUSTENITIC}; yield ASTM A240 minimum 170 MPa"),
        Material("steel-304", 193000, 0.29, 8000, 205, 16.2, 500, 1.72e-5, "steel",
                 f"{_ASM1}, AISI 304 {_AUSTENITIC}; yield ASTM A240 minimum 205 MPa"),
        Material("steel-1.4301", 200000, 0.30, 7900, 210, 15.0, 500, 1.60e-5, "steel",
                 f"{_EN}; yield EN 10088-2 hot rolled"),
        Material("steel-1018", 205000, 0.29, 7870, 370, 51.9, 486, 1.15e-5, "steel",
                 f"{_ASM1}, AISI 1018: conductivity at 0 deg C, specific heat 50-100 deg C; "
                 "yield cold drawn, rounds of 20 to 32 mm"),
        Material("steel-4140", 205000, 0.29, 7850, 655, 42.6, 473, 1.23e-5, "steel",
                 f"{_ASM1}, AISI 4140 normalised at 870 deg C, round of 25 mm; conductivity at 100 deg C"),
        Material("steel-s235", 210000, 0.30, 7850, 235, 53.3, 440, 1.20e-5, "steel", _EC3),
        Material("steel-s355", 210000, 0.30, 7850, 355, 53.3, 440, 1.20e-5, "steel", _EC3),
        Material("aluminium-6061-t6", 68300, 0.33, 2710, 241, 167, 896, 2.36e-5, "aluminium",
                 f"{_MMPDS} table 3.6.2.0; yield ASTM B209 minimum 241 MPa; specific heat {_ASM2}; {_AA}"),
        Material("aluminium-6082-t6", 70000, 0.33, 2700, 250, 172, 896, 2.34e-5, "aluminium",
                 "modulus, density and yield (profiles up to 5 mm) EN 1999-1-1:2007 3.2.5 and table 3.2b; the rest "
                 "typical of EN AW-6082 data sheets, conductivity 170 to 220"),
        Material("aluminium-7075-t6", 71000, 0.33, 2796, 462, 130, 960, 2.36e-5, "aluminium",
                 f"{_MMPDS} table 3.7.6.0; yield ASTM B209 sheet; {_AA}"),
        Material("aluminium-2024-t3", 72400, 0.33, 2768, 290, 121, 875, 2.32e-5, "aluminium",
                 f"{_MMPDS} table 3.2.3.0; yield ASTM B209 sheet; specific heat {_ASM2}; {_AA}"),
        Material("titanium-ti6al4v", 110300, 0.31, 4430, 827, 6.7, 526, 8.6e-6, "titanium",
                 f"{_MMPDS} table 5.4.1.0, annealed; conductivity, specific heat and expansion 20-100 deg C {_ASM2}"),
        Material("copper-c11000", 117000, 0.33, 8940, 69, 388, 385, 1.70e-5, "copper", f"{_ASM2}, C11000 annealed"),
        Material("brass-c36000", 97000, 0.31, 8490, 124, 115, 380, 2.05e-5, "copper",
                 f"{_CDA}, C36000 annealed: Poisson's ratio from a shear modulus of 37 GPa, expansion 20-300 deg C"),
        Material("bronze-c93200", 100000, 0.34, 8910, 125, 58.2, 377, 1.80e-5, "copper",
                 f"{_CDA}, C93200 as sand cast: expansion 20-100 deg C, yield at 0.5 % extension"),
        Material("magnesium-az31b", 45000, 0.35, 1770, 145, 96, 1000, 2.6e-5, "magnesium", f"{_ASM2}, AZ31B-O"),
        Material("cast-iron-gjl250", 110000, 0.26, 7200, None, 48.5, 460, 1.17e-5, "cast iron",
                 "EN 1561:2011 annex A: modulus 103 to 118 GPa, conductivity at 100 deg C, expansion 20-200 deg C "
                 "(brittle: no yield, tensile strength 250 MPa)"),
        Material("abs", 2300, 0.35, 1050, 43, 0.17, 1400, 9.0e-5, "polymer",
                 "typical data sheets of injection-moulded grades (ISO 527); printed parts are weaker across layers"),
        Material("pla", 3600, 0.36, 1240, 60, 0.13, 1800, 6.8e-5, "polymer",
                 "modulus, density and yield NatureWorks Ingeo 4043D data sheet, the rest typical of PLA; printed "
                 "parts are weaker across layers"),
        Material("petg", 2100, 0.38, 1270, 50, 0.20, 1200, 6.8e-5, "polymer",
                 "modulus, density and yield Eastman Eastar GN071 data sheet, the rest typical of PETG; printed parts "
                 "are weaker across layers"),
        Material("polycarbonate", 2400, 0.37, 1200, 66, 0.20, 1200, 6.5e-5, "polymer",
                 "Covestro Makrolon 2805 data sheet, ISO 527"),
        Material("pa66", 3100, 0.39, 1140, 82, 0.24, 1700, 8.0e-5, "polymer",
                 "typical of data sheets of dry moulded grades (ISO 527); about half the stiffness when moist"),
        Material("pom", 2850, 0.37, 1410, 64, 0.31, 1470, 1.1e-4, "polymer", "Celanese Hostaform C 9021 data sheet"),
        Material("peek", 4000, 0.38, 1300, 98, 0.32, 2200, 4.5e-5, "polymer",
                 "Victrex PEEK 450G data sheet, expansion along the flow below 143 deg C"),
        Material("fr4", 22000, 0.15, 1850, None, 0.30, 1100, 1.5e-5, "composite",
                 "IPC-4101/21 laminate, in-plane typical; treated as isotropic"),
        Material("glass", 70000, 0.20, 2500, None, 1.0, 720, 9.0e-6, "glass",
                 "EN 572-1:2012 soda lime silicate glass (brittle: no yield)"),
    )
}  # fmt: skip

_ALIASES = {
    "316": "steel-316", "ss316": "steel-316", "aisi316": "steel-316", "stainless316": "steel-316",
    "stainlesssteel316": "steel-316", "14401": "steel-316", "316l": "steel-316l", "ss316l": "steel-316l",
    "14404": "steel-316l", "304": "steel-304", "ss304": "steel-304", "aisi304": "steel-304",
    "stainlesssteel": "steel-304", "stainless": "steel-304", "14301": "steel-1.4301", "1018": "steel-1018",
    "aisi1018": "steel-1018", "mildsteel": "steel-s235", "steel": "steel-s235", "structuralsteel": "steel-s235",
    "s235": "steel-s235", "s235jr": "steel-s235", "s355": "steel-s355", "4140": "steel-4140",
    "6061": "aluminium-6061-t6", "6061t6": "aluminium-6061-t6", "al6061": "aluminium-6061-t6",
    "al6061t6": "aluminium-6061-t6", "aluminum6061": "aluminium-6061-t6", "aluminum6061t6": "aluminium-6061-t6",
    "aluminium6061": "aluminium-6061-t6", "aluminium": "aluminium-6061-t6", "aluminum": "aluminium-6061-t6",
    "6082": "aluminium-6082-t6", "6082t6": "aluminium-6082-t6", "7075": "aluminium-7075-t6",
    "7075t6": "aluminium-7075-t6", "al7075": "aluminium-7075-t6", "al7075t6": "aluminium-7075-t6",
    "aluminum7075t6": "aluminium-7075-t6", "aluminium7075": "aluminium-7075-t6", "2024": "aluminium-2024-t3",
    "2024t3": "aluminium-2024-t3", "ti6al4v": "titanium-ti6al4v", "titanium": "titanium-ti6al4v",
    "grade5": "titanium-ti6al4v", "titaniumgrade5": "titanium-ti6al4v", "copper": "copper-c11000",
    "brass": "brass-c36000", "bronze": "bronze-c93200", "magnesium": "magnesium-az31b", "az31b": "magnesium-az31b",
    "castiron": "cast-iron-gjl250", "gjl250": "cast-iron-gjl250", "pc": "polycarbonate", "nylon": "pa66",
    "nylon66": "pa66", "delrin": "pom", "acetal": "pom",
}  # fmt: skip


def find_material(name: str) -> Material:
    """Return the material of that name or alias; capitals, blanks, dashes and dots do not matter.

    Raises:
        InvalidArguments: there is none; the nearest names are given.
    """
    key = _key(name)
    if key in _ALIASES:
        return TABLE[_ALIASES[key]]
    by_key = {_key(each): each for each in TABLE}
    if key in by_key:
        return TABLE[by_key[key]]
    near = difflib.get_close_matches(key, [*by_key, *_ALIASES], n=6, cutoff=0.5)
    named = list(dict.fromkeys(by_key.get(each) or _ALIASES[each] for each in near))[:3]
    known = f"did you mean {' or '.join(named)}?" if named else f"known: {', '.join(TABLE)}."
    raise InvalidArguments(
        f"No material {name!r} in the table; {known} Any other needs its own numbers "
        "(youngs_modulus_mpa, poissons_ratio, ...)",
        fields={"material.name": f"one of {', '.join(TABLE)}"},
        did_you_mean=named,
    )


def _key(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def with_overrides(base: Material, **given: float | None) -> Material:
    """Return a material with the given properties replaced; the source says so."""
    changes = {name: value for name, value in given.items() if value is not None}
    known = {each.name for each in fields(Material)}
    if unknown := set(changes) - known:
        raise TypeError(f"no such property: {sorted(unknown)}")
    if not changes:
        return base
    note = f"{base.source}; " if base.source else ""
    return replace(base, **changes, source=f"{note}given by the caller: {', '.join(sorted(changes))}")  # type: ignore[arg-type]

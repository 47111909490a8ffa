"""The adapters that ship with MetaForge, by id. Nothing is imported until one is needed."""

CATALOG: dict[str, str] = {
    "cadquery": "metaforge.adapters.cadquery.server:CadQueryServer",
    "calculix": "metaforge.adapters.calculix.server:CalculixServer",
    "freecad": "metaforge.adapters.freecad.server:FreecadServer",
    "health": "metaforge.adapters.health.server:HealthServer",
    "fixture": "metaforge.adapters.fixture.server:FixtureServer",
    "fixtureproc": "metaforge.adapters.fixtureproc.server:FixtureProcServer",
}

OPTIONAL = frozenset({"fixture", "fixtureproc"})
"""Loaded only when an environment variable asks for them."""

ALWAYS = frozenset({"health"})
"""Loaded whatever METAFORGE_ADAPTERS says."""

"""The adapters that ship with MetaForge, by id. Nothing is imported until one is needed."""

CATALOG: dict[str, str] = {
    "cadquery": "metaforge.adapters.cadquery.server:CadQueryServer",
    "calculix": "metaforge.adapters.calculix.server:CalculixServer",
    "freecad": "metaforge.adapters.freecad.server:FreecadServer",
    "kicad": "metaforge.adapters.kicad.server:KicadServer",
    "spice": "metaforge.adapters.spice.server:SpiceServer",
    "health": "metaforge.adapters.health.server:HealthServer",
    "twin": "metaforge.adapters.twin.server:TwinServer",
    "project": "metaforge.adapters.project.server:ProjectServer",
    "session": "metaforge.adapters.session.server:SessionServer",
    "knowledge": "metaforge.adapters.knowledge.server:KnowledgeServer",
    "constraint": "metaforge.adapters.constraint.server:ConstraintServer",
    "fixture": "metaforge.adapters.fixture.server:FixtureServer",
    "fixtureproc": "metaforge.adapters.fixtureproc.server:FixtureProcServer",
}

OPTIONAL = frozenset({"fixture", "fixtureproc"})
"""Loaded only when an environment variable asks for them."""

TWIN_ADAPTERS = frozenset({"twin", "project", "session", "constraint"})
"""Served inside the server, over its design record."""

ALWAYS = frozenset({"health"}) | TWIN_ADAPTERS
"""Loaded whatever METAFORGE_ADAPTERS says."""

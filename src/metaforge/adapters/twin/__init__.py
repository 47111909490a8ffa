"""Tools on the design record: items, requirements, evidence, geometry, decisions."""

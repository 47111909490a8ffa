"""CadQuery: parts, assemblies and enclosures from the Open CASCADE kernel."""

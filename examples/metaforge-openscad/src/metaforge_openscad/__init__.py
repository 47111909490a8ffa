"""The OpenSCAD adapter for MetaForge."""

"""What runs inside FreeCAD's own Python: one live document behind a pipe. Standard library and FreeCAD only."""

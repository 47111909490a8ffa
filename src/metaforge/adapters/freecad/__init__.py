"""Meshing with gmsh under the documented `freecad` names."""

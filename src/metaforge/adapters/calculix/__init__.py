"""Finite element analysis with CalculiX: stress, modes, buckling and heat."""

"""Tools that judge designs by their requirements."""

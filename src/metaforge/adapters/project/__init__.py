"""Tools on projects."""

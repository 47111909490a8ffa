"""Tools on work sessions."""

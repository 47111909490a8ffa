"""What documents say, as tools."""

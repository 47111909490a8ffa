"""The Model Context Protocol, both eras and the legacy dialect, without any I/O."""

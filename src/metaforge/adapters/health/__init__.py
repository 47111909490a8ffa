"""The server's own health, as a tool."""

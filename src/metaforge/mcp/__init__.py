"""The Model Context Protocol served over stdio and HTTP."""

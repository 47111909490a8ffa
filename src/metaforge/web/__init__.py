"""The gateway over HTTP for people and programs: `/v1`, `/metrics`, the dashboard's pages, one process with `/mcp`."""

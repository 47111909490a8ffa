"""Who is calling: loopback, API key, OAuth token, service key or browser session, judged once for mcp and web."""

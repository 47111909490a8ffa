"""The dashboard: server-rendered pages that work without scripts, and live with a few lines of them."""

from metaforge.web.pages.routing import routes

__all__ = ["routes"]

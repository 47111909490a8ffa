"""`metaforge dashboard`: open the dashboard of the running server."""

import webbrowser

from metaforge.cli.screen import console
from metaforge.cli.viewer import has_desktop
from metaforge.settings import Settings

DEFAULT_URL = "http://127.0.0.1:8000"
ANSWER_SECONDS = 5.0


def show(*, print_only: bool) -> int:
    """Open the dashboard, or print its address where there is no desktop. Returns the exit status."""
    settings = Settings.from_environment()
    url = settings.dashboard_url or settings.public_url.rstrip("/") or DEFAULT_URL
    if not answers(url):
        console(stderr=True).print(
            f"Nothing answers at {url}. Start it: metaforge serve. Elsewhere? Set METAFORGE_DASHBOARD_URL", style="red"
        )
        return 1
    console().print(url)
    if not print_only and has_desktop(settings):
        webbrowser.open(url)
    return 0


def answers(url: str) -> bool:
    """Whether a MetaForge server is at an address."""
    import httpx

    try:
        told = httpx.get(f"{url}/health", timeout=ANSWER_SECONDS).json()
    except (httpx.HTTPError, ValueError):
        return False
    return isinstance(told, dict) and "adapters" in told

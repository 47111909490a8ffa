"""`metaforge adapters`: which there are and what each needs."""

from typing import Any

from metaforge.app import App
from metaforge.cli.local import with_app
from metaforge.cli.screen import console, print_json
from metaforge.mcp.service import ClientInfo


def show(*, as_json: bool) -> int:
    """List the adapters as health measures them. Returns the exit status."""

    async def work(app: App) -> dict[str, Any]:
        return await app.health(ClientInfo(name="metaforge-cli"))

    rows: list[dict[str, Any]] = with_app(work)["adapters"]
    if as_json:
        print_json({"adapters": rows})
        return 0
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("adapter", "version", "tools", "state", ""):
        table.add_column(title, no_wrap=bool(title))
    for row in rows:
        trouble = "; to add: ".join(filter(None, (row.get("error"), row.get("install"))))
        style = "" if row["reachable"] else "yellow"
        table.add_row(
            row["adapter_id"], row["version"], str(row["tools_registered"]), row["state"], trouble, style=style
        )
    console().print(table)
    return 0

"""`metaforge open`: show a part or picture on a desktop, or as one self-contained page where there is none."""

import base64
import html
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from importlib import resources
from pathlib import Path

from metaforge import __version__
from metaforge.app import App
from metaforge.cli.local import CALLER
from metaforge.cli.screen import console
from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.core.ids import new_call_id, sha256_file
from metaforge.settings import Settings

PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
CONVERTED = frozenset({".step", ".stp"})
SHOWN = ("STEP", "GLB", "PNG", "SVG")


def show(file: Path, *, print_only: bool) -> int:
    """Show a file. Returns the exit status."""
    errors = console(stderr=True)
    if not file.is_file():
        errors.print(f"{file} is not a file: the current folder is {Path.cwd()}", style="red")
        return 1
    settings = Settings.from_environment()
    try:
        page = make_page(file.resolve(), settings)
    except MetaForgeError as fault:
        errors.print(fault.text() if isinstance(fault, ToolError) else fault.message, style="red")
        return 1
    if page is None:
        errors.print(f"{file.name}: {', '.join(SHOWN)} can be shown, {file.suffix or 'this'} cannot", style="red")
        return 1
    out = console()
    if print_only or not has_desktop(settings):
        out.print(str(page))
        if not print_only:
            out.print("There is no desktop here. The page needs nothing else: copy it to one and open it in a browser.")
        return 0
    out.print(f"Opening {page}")
    return 0 if webbrowser.open(page.as_uri()) else _open_by_program(page)


def has_desktop(settings: Settings) -> bool:
    """Return whether a window can be shown."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(settings.environment.get("DISPLAY") or settings.environment.get("WAYLAND_DISPLAY"))


def _open_by_program(page: Path) -> int:
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None:
        console(stderr=True).print(f"no browser was found; open {page} yourself", style="yellow")
        return 1
    return subprocess.run([opener, str(page)], check=False).returncode


def make_page(file: Path, settings: Settings) -> Path | None:
    """Write a page that shows the file and needs nothing else; None when the kind is not known.

    Raises:
        MetaForgeError: a STEP file that cannot be converted.
    """
    kind = file.suffix.lower()
    if kind in PICTURES:
        body = _picture(file, PICTURES[kind])
    elif kind == ".glb":
        body = _model(file.read_bytes())
    elif kind in CONVERTED:
        body = _model(to_glb(file, settings))
    else:
        return None
    folder = settings.home_path / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{file.stem}-{sha256_file(file)[:8]}.html"
    template = (resources.files("metaforge.cli") / "page.html").read_text()
    page.write_text(template.replace("@TITLE@", html.escape(file.name)).replace("@BODY@", body))
    return page


def _picture(file: Path, media_type: str) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{html.escape(file.name)}" src="data:{media_type};base64,{data}">'


def _model(glb: bytes) -> str:
    script = (resources.files("metaforge.cli") / "page.js").read_text()
    data = base64.b64encode(glb).decode()
    return (
        '<canvas></canvas><p class="hint">drag: turn &middot; shift-drag: move &middot; wheel: zoom &middot; '
        f"double-click: reset</p>\n<script>const GLB = '{data}';\n{script}</script>"
    )


def to_glb(file: Path, settings: Settings) -> bytes:
    """Convert a STEP file through the same tool that agents use, in a workspace of its own.

    Raises:
        MetaForgeError: the file is refused, or the tool is not there.
    """
    import asyncio
    from dataclasses import replace

    async def convert(workspace: Path) -> bytes:
        shutil.copyfile(file, workspace / "part.step")
        app = App(replace(settings, workspace=workspace, prestart=False), over_stdio=True)
        try:
            await app.call_tool(
                "cadquery.export_geometry",
                {"input_file": "part.step", "output_format": "glb", "output_path": "part.glb"},
                call_id=new_call_id(),
                caller=CALLER,
            )
        finally:
            await app.close()
        return (workspace / "part.glb").read_bytes()

    with tempfile.TemporaryDirectory(prefix=f"metaforge-{__version__}-") as folder:
        return asyncio.run(convert(Path(folder)))

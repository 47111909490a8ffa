"""`metaforge doctor`: what is there, what is missing, and the one command that mends each."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from metaforge.app import App
from metaforge.cli import system
from metaforge.cli.local import with_app
from metaforge.cli.screen import command_name, console, print_json
from metaforge.core.errors import MetaForgeError
from metaforge.mcp.service import ClientInfo
from metaforge.settings import Settings
from metaforge.store.mirrored import MirroredBlobs

MODULE_SECONDS = 60.0
VERSION_SECONDS = 10.0
LEAST_FREE_MB = 500

NAMESPACE_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Kernel switches that keep bubblewrap from working for a plain user: the forbidding value and the allowing one."""

MODULES = (
    ("cadquery", "import cadquery; print(cadquery.__version__)", "cadquery.* tools"),
    ("gmsh", "import gmsh; print(gmsh.__version__)", "freecad.generate_mesh and calculix.run_fea on STEP files"),
)
"""Modules that load shared libraries: found is not enough, they are imported in a process of their own."""

AGENTS = (
    ("claude", "Claude Code", "npm install -g @anthropic-ai/claude-code"),
    ("codex", "Codex", "npm install -g @openai/codex"),
)


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    MISSING = "missing"
    """Needed, and not there or not working: exit status 1."""
    NOTE = "note"
    """Good to know; everything needed works without it."""


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    area: str
    name: str
    state: State
    detail: str
    fix: str = ""


def report(*, as_json: bool) -> int:
    """Run every check and show it. Returns 1 when something needed is missing, else 0."""
    checks = [*python_checks(), *system_checks(), *module_checks(), *application_checks(), *agent_checks()]
    missing = [check for check in checks if check.state is State.MISSING]
    if as_json:
        print_json({"ok": not missing, "checks": [asdict(check) for check in checks]})
    else:
        _show(checks, missing)
    return 1 if missing else 0


def python_checks() -> Iterable[Check]:
    """Check the interpreter and its environment."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "Python", State.OK, f"{version} ({sys.executable})")
    if sys.prefix == sys.base_prefix:
        yield Check(
            "python", "environment", State.NOTE, "no virtual environment: packages go into the system's Python",
            "python3 -m venv .venv",
        )  # fmt: skip
    else:
        yield Check("python", "environment", State.OK, sys.prefix)


def system_checks() -> Iterable[Check]:
    """Check programs, with their versions, and shared libraries."""
    needs = (*system.system_needs(), *system.MORE_PROGRAMS)
    search_path = Settings.from_environment().environment.get("PATH")
    missing = system.missing_needs(
        needs, lambda name: shutil.which(name, path=search_path) or system.find_program(name)
    )
    manager, is_root = system.package_manager(), system.is_root()
    for need in needs:
        if need in missing:
            state = State.MISSING if need.required else State.NOTE
            fix = system.install_command([need], manager, is_root=is_root)
            yield Check("programs", need.name, state, f"not found: {need.why}", fix)
        elif not need.is_library:
            yield _program_check(need, search_path)
    libraries = [need for need in needs if need.is_library]
    if libraries and not any(need in missing for need in libraries):
        yield Check("programs", "libraries", State.OK, f"all {len(libraries)} that the wheels load")


def _program_check(need: system.SystemNeed, search_path: str | None) -> Check:
    from metaforge.registry.probe import Probe
    from metaforge.tools.manifest import Need

    finding = Probe(search_path).measure(Need("program", need.name, apt=need.apt, minimum=need.minimum))
    if finding.found:
        return Check("programs", need.name, State.OK, f"{finding.version} ({finding.location})")
    fix = f"reinstall it: {system.install_command([need], system.package_manager(), is_root=system.is_root())}"
    return Check("programs", need.name, State.MISSING if need.required else State.NOTE, finding.problem, fix)


def module_checks() -> Iterable[Check]:
    """Import the engineering modules, each in a process of its own, all at once."""
    running = [
        (
            name,
            use,
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True),
        )
        for name, code, use in MODULES
    ]
    for name, use, process in running:
        try:
            said, complained = process.communicate(timeout=MODULE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said, complained = "", f"importing it took more than {MODULE_SECONDS:g} s"
            process.communicate()
        if process.returncode == 0:
            yield Check("modules", name, State.OK, said.strip().splitlines()[-1])
            continue
        last = (complained.strip().splitlines() or ["no message"])[-1]
        yield Check("modules", name, State.MISSING, f"{last}; needed by {use}", _module_fix(last))


def _module_fix(message: str) -> str:
    for need in system.LIBRARIES:
        if need.name in message:
            return system.install_command([need], system.package_manager(), is_root=system.is_root())
    return f"{sys.executable} -m pip install 'metaforge[cadquery]'"


def application_checks() -> Iterable[Check]:
    """Check settings, folders, the store, the sandbox and every adapter through the application itself."""
    try:
        return with_app(_application_checks)
    except MetaForgeError as fault:
        return [Check("server", "settings", State.MISSING, fault.message, "correct that variable")]


async def _application_checks(app: App) -> list[Check]:
    checks = [
        _folder_check("workspace", app.workspace, "METAFORGE_WORKSPACE"),
        _folder_check("home", app.home, "METAFORGE_HOME"),
        _database_check(app),
        *object_store_checks(app),
        _embedder_check(),
    ]
    health = await app.health(ClientInfo(name="metaforge-doctor"))
    checks.append(_sandbox_check(health["sandbox"]))
    checks += [Check("server", "note", State.NOTE, problem) for problem in health.get("problems", ())]
    if any("image" in (row.get("detail") or {}) for row in health["adapters"]):
        checks.append(container_check(app.settings))
    for row in health["adapters"]:
        checks += [_adapter_check(row), *adapter_notes(row)]
    return [*checks, *schema_checks(health)]


def _folder_check(name: str, folder: Path, variable: str) -> Check:
    import os

    if not os.access(folder, os.W_OK):
        return Check("server", name, State.MISSING, f"{folder} cannot be written", f"{variable}=/a/folder/you/own")
    free_mb = shutil.disk_usage(folder).free // 1_000_000
    if free_mb < LEAST_FREE_MB:
        detail = f"{folder} has {free_mb} MB free; meshes and results need {LEAST_FREE_MB} MB"
        return Check("server", name, State.MISSING, detail, f"free some space, or set {variable}")
    return Check("server", name, State.OK, str(folder))


def _database_check(app: App) -> Check:
    try:
        app.database.prepare()
    except (OSError, MetaForgeError) as fault:
        return Check("server", "database", State.MISSING, str(fault), "set METAFORGE_HOME to a local folder you own")
    return Check("server", "database", State.OK, app.database.name)


def object_store_checks(app: App) -> Iterable[Check]:
    """Write, read and remove an object where METAFORGE_BLOB_URL names a store."""
    if not app.settings.blob_url:
        return
    try:
        app.blobs.prepare()
    except (OSError, MetaForgeError) as fault:
        fix = fault.data.get("install", "") if isinstance(fault, MetaForgeError) else ""
        yield Check(
            "server", "object store", State.MISSING, str(fault), fix or "correct METAFORGE_BLOB_URL, or unset it"
        )
    else:
        yield Check("server", "object store", State.OK, "an object was written, read back and removed")
        if isinstance(app.blobs, MirroredBlobs) and not app.blobs.is_complete:
            yield Check(
                "server", "files kept before", State.NOTE,
                "files kept here before METAFORGE_BLOB_URL was set may not be in the store",
                f"{command_name()} blobs --send",
            )  # fmt: skip


def _embedder_check() -> Check:
    from metaforge.knowledge import embedder

    found = embedder.find_embedder()
    if found is None:
        told = f"knowledge is searched by words only: {', '.join(embedder.missing_packages())} not installed"
        return Check("server", "knowledge", State.NOTE, told, embedder.INSTALL)
    try:
        embedder.check_files(found)
    except embedder.EmbedderUnavailable as fault:
        return Check("server", "knowledge", State.NOTE, f"searched by words only: {fault}", embedder.INSTALL)
    return Check("server", "knowledge", State.OK, f"searched by meaning and by words, with {found.model_id}")


def _sandbox_check(sandbox: dict[str, Any]) -> Check:
    network = "with" if sandbox.get("network") else "no"
    filtered = "with" if sandbox.get("system_call_filter") else "no"
    memory = sandbox.get("memory_limit", "nothing")
    told = f"{sandbox['kind']}, {network} network, {filtered} system-call filter, memory held by {memory}"
    if sandbox["kind"] == "bubblewrap":
        return Check("server", "sandbox", State.OK, told)
    fix = sandbox.get("install") or namespace_fix()
    return Check("server", "sandbox", State.NOTE, f"{told}; {sandbox.get('detail', '')}", fix)


def container_check(settings: Settings) -> Check:
    """Check the engine that runs adapters in containers, and say what holds them."""
    from metaforge.engine.container_engine import describe

    told = describe(settings)
    if not told["engine"]:
        return Check("server", "containers", State.MISSING, told["error"], told["install"])
    runtime = f", {told['runtime']}" if told.get("runtime") else ""
    root = " without root" if told["rootless"] else ""
    named = f"{told['engine']} {told['version']}{root}, cgroup {told['cgroup']}{runtime}"
    if told["limits"] == "kernel":
        return Check("server", "containers", State.OK, f"{named}: the kernel holds every limit")
    return Check(
        "server", "containers", State.NOTE,
        f"{named}: memory is watched, processes are counted, and CPU is not divided among containers",
        "start the machine with cgroup v2 alone: systemd.unified_cgroup_hierarchy=1",
    )  # fmt: skip


def namespace_fix(kernel: Path = Path("/proc/sys")) -> str:
    """Return the command that lets this user make namespaces, where a kernel switch forbids it; else nothing."""
    for switch, forbids, value in NAMESPACE_SWITCHES:
        try:
            found = (kernel / switch).read_text().strip()
        except OSError:
            continue
        if found == forbids:
            return f"sudo sysctl -w {switch.replace('/', '.')}={value}"
    return ""


def _adapter_check(row: dict[str, Any]) -> Check:
    tools = row["tools_registered"]
    image = (row.get("detail") or {}).get("image", "")
    told = f"{row['state']}, {tools} tool{'' if tools == 1 else 's'}{image and f', in containers of {image}'}"
    if row["reachable"]:
        return Check("adapters", row["adapter_id"], State.OK, told)
    return Check("adapters", row["adapter_id"], State.MISSING, row.get("error", "down"), row.get("install", ""))


def adapter_notes(row: dict[str, Any]) -> Iterable[Check]:
    """Tell what an adapter does that it should not, and which of its addresses are away."""
    detail = row.get("detail") or {}
    if junk := detail.get("stdout_junk"):
        yield Check("adapters", row["adapter_id"], State.NOTE, f"prints where only messages belong: {junk}")
    for address in detail.get("addresses", ()):
        if error := address.get("error"):
            yield Check("adapters", row["adapter_id"], State.NOTE, error)


def schema_checks(health: dict[str, Any]) -> Iterable[Check]:
    """Name the tools that are left out or were mended because of their schemas."""
    for entry in health.get("quarantined", ()):
        tools = ", ".join(entry["tools"])
        fix = f"the adapter {entry['adapter_id']} must mend its manifest"
        yield Check("adapters", entry["adapter_id"], State.NOTE, f"{tools} left out, {entry['reason']}", fix)
    for tool_id, notes in health.get("mended_schemas", {}).items():
        yield Check("adapters", tool_id.partition(".")[0], State.NOTE, f"{tool_id}: {'; '.join(notes)}")


def agent_checks(which: Callable[[str], str | None] = shutil.which) -> Iterable[Check]:
    """Look for the agents' own programs."""
    for program, name, install in AGENTS:
        location = which(program)
        if location is None:
            yield Check("agents", name, State.NOTE, "not on PATH; only needed to work through it", install)
            continue
        try:
            ran = subprocess.run(
                [location, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as fault:
            yield Check("agents", name, State.NOTE, f"{location} does not run: {fault}", install)
            continue
        yield Check("agents", name, State.OK, f"{ran.stdout.strip() or 'no version told'} ({location})")


def _show(checks: list[Check], missing: list[Check]) -> None:
    marks = {State.OK: ("ok", "green"), State.MISSING: ("MISSING", "bold red"), State.NOTE: ("note", "yellow")}
    out = console()
    width = max(len(check.name) for check in checks)
    area = ""
    for check in checks:
        if check.area != area:
            area = check.area
            out.print(f"\n{area.capitalize()}", style="bold")
        word, style = marks[check.state]
        out.print(f"  {word:<8}", style=style, end="")
        out.print(f"{check.name:<{width}}  {check.detail}")
        if check.fix and check.state is not State.OK:
            out.print(f"  {'':<8}{'':<{width}}  to mend: {check.fix}", style="cyan")
    if missing:
        names = ", ".join(check.name for check in missing)
        out.print(f"\n{len(missing)} missing: {names}", style="bold red")
    else:
        out.print("\nEverything needed is there.", style="bold green")

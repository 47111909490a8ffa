"""The probes, the runners they are tried in, and which limit each runner claims to hold."""

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "probes.md"
HELD, OPEN = "held", "not held"


@dataclass(frozen=True)
class Column:
    """A runner and the user that the server runs as."""

    name: str
    runner: str
    """`bubblewrap` or `rlimits`, as METAFORGE_SANDBOX takes it, or `container`."""
    as_root: bool


@dataclass(frozen=True)
class Probe:
    """One attempt, and the columns in which nothing stops it."""

    name: str
    limit: str
    tries: str
    opens: tuple[str, ...] = ()
    """Columns that do not claim to hold it."""


COLUMNS = (
    Column("bubblewrap, root", "bubblewrap", True),
    Column("bubblewrap, user", "bubblewrap", False),
    Column("container, root", "container", True),
    Column("container, user", "container", False),
    Column("rlimits, root", "rlimits", True),
    Column("rlimits, user", "rlimits", False),
)
PLAIN = ("rlimits, root", "rlimits, user")
PLAIN_ROOT = ("rlimits, root",)

PROBES = (
    Probe("network", "network", "connect to this machine, send to another one, abstract sockets, socket files", PLAIN),
    Probe("read_outside", "reading", "the server's files, accounts, a link out, /proc/1/root, disks", PLAIN),
    Probe("write_outside", "writing", "the workspace, the server's files, a link out, programs, settings", PLAIN),
    Probe("fork_bomb", "processes", "5,000 processes that stay"),
    Probe("thread_bomb", "processes", "5,000 threads", PLAIN),
    Probe("memory", "memory", "1.5 GB in one process of a tool that may use 512 MB"),
    Probe("memory_of_many", "memory", "1.5 GB in twelve processes of it"),
    Probe("memory_of_files", "memory", "6 GB of files in /dev/shm, /tmp, /dev and /", PLAIN),
    Probe("cpu", "CPU time", "20 s of a script that may use 1 s, ignoring its signal, raising its limit", PLAIN_ROOT),
    Probe("disk", "disk", "400 MB in files of a script that may write 16 MB"),
    Probe("file_size", "file size", "2 GB in one file, ignoring the signal"),
    Probe(
        "privileges", "privileges", "being or becoming root, capabilities (but to read the workspace), devices", PLAIN
    ),
    Probe("namespaces", "nested namespaces", "user, mount and network namespaces, a mount", PLAIN),
    Probe("kernel_interfaces", "keyctl, bpf, userfaultfd", "add_key, keyctl, bpf, userfaultfd", PLAIN),
    Probe("ptrace", "ptrace", "attach to another process, to its parent, to a child", PLAIN),
    Probe("proc", "/proc", "see other processes, read the server's variables, write kernel settings", PLAIN),
    Probe("signals", "signals", "end another process of this machine", PLAIN),
    Probe("descriptors", "descriptors", "use what the server left open"),
    Probe("outlive", "surviving its own kill", "three daemons and a call that ignore every signal they can"),
)


def expected(probe: Probe, column: Column) -> str:
    """Return what a runner claims."""
    return OPEN if column.name in probe.opens else HELD


def page() -> str:
    """Return docs/probes.md."""
    head = " | ".join(column.name for column in COLUMNS)
    lines = [
        "<!-- Written by tests/probes from its table: `make probes ARGS=--write-page`. -->",
        "# Each limit, and the probe that tries to break it",
        "",
        "Every row is a tool that does its best to get past one limit. `make probes` runs each of them in each runner,",
        "with the server run by root and by an ordinary user, and fails where a limit that is claimed here does not",
        "hold. What is *not held* is not claimed: plain limits (`METAFORGE_SANDBOX=rlimits`, or no bubblewrap) cannot",
        "hold it. `metaforge doctor` says which runner this machine has.",
        "",
        "Containers (`METAFORGE_RUNNER=container`) are podman's here; *user* is podman without root. Where it has no",
        "control groups for a user (cgroup v1), memory is held by the server's watchdog, processes by their own limit,",
        "and nothing divides the CPU among containers. docker is not among the columns: tried once with 20.10 run by",
        "root, it held every limit but ptrace, since its own filter lets a container's processes trace each other.",
        "",
        f"| limit | the probe tries | {head} |",
        "|---" * (2 + len(COLUMNS)) + "|",
    ]
    for probe in PROBES:
        cells = " | ".join(expected(probe, column) for column in COLUMNS)
        lines.append(f"| {probe.limit} | {probe.tries} | {cells} |")
    lines += [
        "",
        "With plain limits a caller's own script can do what the user who runs the server can do: run the server as a",
        "user of its own there, and never as root.",
    ]
    return "\n".join(lines) + "\n"

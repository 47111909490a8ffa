"""An adapter whose every tool tries to get past one limit, and says how far it came.

A tool that got nowhere answers with `held` and what stopped it; one that got through says what it did. Limits that end
a call are told by the call's own error.
"""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.paths import OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

READ = {"effect": Effect.READ, "capability": "probe", "title": "Probe"}
CODE = {"effect": Effect.PRODUCE, "capability": "probe", "title": "Probe", "runs_caller_code": True}
MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
CAP_DAC_READ_SEARCH = 1 << 2
"""A box that root starts keeps this one: it reads what is private in the workspace, and sees nothing else."""
CORE_PATTERN = "/proc/sys/kernel/core_pattern"
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
SYSTEM_CALLS = {
    "x86_64": {"add_key": 248, "keyctl": 250, "bpf": 321, "userfaultfd": 323},
    "aarch64": {"add_key": 217, "keyctl": 219, "bpf": 280, "userfaultfd": 282},
}


@dataclass(frozen=True)
class Verdict:
    """How far a probe came."""

    held: bool
    told: str


def verdict(ways: dict[str, str]) -> Answer[Verdict]:
    """Answer with what each way came to: an empty text where it was stopped."""
    through = [f"{name}: {text}" for name, text in ways.items() if text]
    told = "; ".join(through) if through else f"refused: {', '.join(ways)}"
    return Answer(Verdict(not through, told), summary=told)


def tried(action: Callable[[], object]) -> str:
    """Return what an action did, or nothing when the system stopped it."""
    try:
        done = action()
    except (OSError, ValueError):
        return ""
    return str(done or "done")


def reached(action: Callable[[], str]) -> str:
    """Return what an action reached, or nothing when the system stopped it or it reached something else."""
    with contextlib.suppress(OSError):
        return action()
    return ""


def called(name: str, *arguments: object) -> str:
    """Return what a system call did, or nothing when it was refused."""
    number = SYSTEM_CALLS[os.uname().machine][name]
    ctypes.set_errno(0)
    result = LIBC.syscall(number, *arguments)
    return "" if result < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS) else f"returned {result}"


class ProberServer(McpToolServer):
    def __init__(self) -> None:
        super().__init__("prober", "1.0.0")

    @tool(**READ)
    def network(self, ctx: ToolContext, port: int, abstract: str, path: str) -> Answer[Verdict]:
        """Reach a server of this machine, the world, and sockets of other kinds."""

        def tcp(address: tuple[str, int]) -> str:
            with socket.create_connection(address, timeout=2):
                return "connected"

        def unix(name: str) -> str:
            with socket.socket(socket.AF_UNIX) as made:
                made.connect(name)
                return "connected"

        def datagram() -> str:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
                made.sendto(b"x", ("192.0.2.1", 9))
                return "sent"

        return verdict({
            "this machine": tried(lambda: tcp(("127.0.0.1", port))),
            "another machine, by datagram": tried(datagram),
            "an abstract socket": tried(lambda: unix("\0" + abstract)),
            "a socket file": tried(lambda: unix(path)),
        })  # fmt: skip

    @tool(**READ)
    def read_outside(self, ctx: ToolContext, secret: str, link: str, accounts: int) -> Answer[Verdict]:
        """Read what is none of its business."""

        def machines_accounts() -> str:
            # An image has accounts of its own, in a file of its own.
            found = os.stat("/etc/passwd")
            return "read" if found.st_ino == accounts and Path("/etc/passwd").read_text() else ""

        return verdict({
            "the server's own files": tried(lambda: Path(secret).read_text()),
            "the machine's accounts": reached(machines_accounts),
            "a link in the workspace": tried(lambda: (ctx.workspace / link).read_text()),
            "the server's folder through /proc": tried(lambda: Path(f"/proc/1/root{secret}").read_text()),
            "disks": tried(lambda: Path("/dev/vda").open("rb").read(1) and "read"),
            "kernel messages": tried(lambda: os.read(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), 10) and "read"),
        })  # fmt: skip

    @tool(**READ)
    def write_outside(self, ctx: ToolContext, folder: str) -> Answer[Verdict]:
        """Write where it must not."""

        def write(path: str | Path) -> Callable[[], str]:
            return lambda: f"{Path(path).write_text('written')} characters"

        def through_link() -> str:
            link = ctx.output / "link"
            link.symlink_to(folder)
            return f"{(link / 'through.txt').write_text('written')} characters"

        return verdict({
            "the workspace": tried(write(ctx.workspace / "written.txt")),
            "the server's own files": tried(write(f"{folder}/written.txt")),
            "a link out of the output folder": tried(through_link),
            "programs": tried(write("/usr/bin/metaforge-probe")),
            "settings of the system": tried(write("/etc/metaforge-probe")),
            "this Python": tried(write(Path(os.__file__).parent / "metaforge_probe.py")),
        })  # fmt: skip

    @tool(**READ)
    def fork_bomb(self, ctx: ToolContext) -> Answer[Verdict]:
        """Start processes until it fails; every one of them stays."""
        born = 0
        try:
            while born < 5000:
                if os.fork() == 0:
                    time.sleep(3600)
                born += 1
        except OSError as fault:
            return Answer(
                Verdict(born < 300, f"{born} processes, then {errno.errorcode[fault.errno or 0]}"), summary=""
            )
        return Answer(Verdict(False, f"{born} processes"), summary="")

    @tool(**READ)
    def thread_bomb(self, ctx: ToolContext) -> Answer[Verdict]:
        """Start threads until it fails."""
        import threading

        hold, started = threading.Event(), 0
        threading.stack_size(64 * 1024)
        try:
            while started < 5000:
                threading.Thread(target=hold.wait, daemon=True).start()
                started += 1
        except (RuntimeError, MemoryError) as fault:
            told = f"{started} threads, then {fault}"
            hold.set()
            return Answer(Verdict(started < 300, told), summary="")
        hold.set()
        return Answer(Verdict(False, f"{started} threads"), summary="")

    @tool(**READ, max_memory_mb=512)
    def memory(self, ctx: ToolContext) -> Answer[Verdict]:
        """Use three times the memory it may, bit by bit."""
        kept = []
        for _ in range(96):
            kept.append(os.urandom(16) * MIB)
            time.sleep(0.01)
        return Answer(Verdict(False, f"{len(kept) * 16} MB"), summary="")

    @tool(**READ, max_memory_mb=512)
    def memory_of_many(self, ctx: ToolContext) -> Answer[Verdict]:
        """Use three times the memory it may, in twelve processes of 128 MB."""
        children = []
        for _ in range(12):
            child = os.fork()
            if child == 0:
                kept = os.urandom(16) * (8 * MIB)
                time.sleep(30)
                os._exit(len(kept) % 2)
            children.append(child)
            time.sleep(0.3)
        time.sleep(1)
        alive = sum(os.waitpid(child, os.WNOHANG)[0] == 0 for child in children)
        return Answer(Verdict(alive * 128 <= 512, f"{alive * 128} MB in {alive} processes that live"), summary="")

    @tool(**READ, max_memory_mb=512)
    def memory_of_files(self, ctx: ToolContext) -> Answer[Verdict]:
        """Fill the memory with files wherever they lie in it, 100 MB each."""
        written = 0
        for folder in ("/dev/shm", "/tmp", "/dev", "/"):
            with contextlib.suppress(OSError):
                for number in range(15):
                    with (Path(folder) / f"fill-{number}").open("wb") as stream:
                        for _ in range(100):
                            written += stream.write(bytes(MIB)) // MIB
        return Answer(Verdict(written < 600, f"{written} MB written"), summary="")

    @tool(**CODE, max_cpu_seconds=1)
    def cpu(self, ctx: ToolContext, output_path: OutputPath = "out/a.txt") -> Answer[Verdict]:
        """Use CPU time, ignoring the signal that says it is over, and raising the limit."""
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until = time.process_time() + 20
        while time.process_time() < until:
            pass
        return Answer(Verdict(False, "20 s of CPU time"), summary="")

    @tool(**CODE, max_disk_mb=16)
    def disk(self, ctx: ToolContext, output_path: OutputPath = "out/a.txt") -> Answer[Verdict]:
        """Write many files of a megabyte."""
        for number in range(400):
            (ctx.output / f"{number}.bin").write_bytes(bytes(MIB))
            time.sleep(0.005)
        return Answer(Verdict(False, "400 MB in files"), summary="")

    @tool(**READ, max_disk_mb=16)
    def file_size(self, ctx: ToolContext) -> Answer[Verdict]:
        """Write one file that is too large."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        written = 0
        try:
            with (ctx.output / "large.bin").open("wb", buffering=0) as stream:
                while written < 2000:
                    written += stream.write(bytes(MIB)) // MIB
        except OSError as fault:
            return Answer(
                Verdict(written <= 600, f"{written} MB, then {errno.errorcode[fault.errno or 0]}"), summary=""
            )
        return Answer(Verdict(False, f"{written} MB"), summary="")

    @tool(**READ)
    def privileges(self, ctx: ToolContext) -> Answer[Verdict]:
        """Become root, keep capabilities, gain some by a program, or make a device."""
        status = Path("/proc/self/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        return verdict({
            "being root": "" if os.geteuid() else "it is",
            "becoming root": "" if os.geteuid() == 0 else tried(lambda: os.setuid(0) or "became"),
            "capabilities": "" if int(fields["CapEff"], 16) & ~CAP_DAC_READ_SEARCH == 0 else fields["CapEff"],
            "capabilities to come": "" if int(fields["CapBnd"], 16) == 0 or fields["NoNewPrivs"] == "1" else "may gain",
            "a device": tried(lambda: os.mknod(ctx.output / "dev", 0o600 | 0o060000, os.makedev(254, 0)) or "made"),
            "giving a file away": tried(lambda: _give_away(ctx.output / "mine")),
        })  # fmt: skip

    @tool(**READ)
    def namespaces(self, ctx: ToolContext) -> Answer[Verdict]:
        """Make a namespace inside, in which it would be root."""
        ways = {}
        kinds = {"user": CLONE_NEWUSER, "mount": CLONE_NEWNS, "user and network": CLONE_NEWUSER | CLONE_NEWNET}
        for name, flag in kinds.items():
            child = os.fork()
            if child == 0:
                os._exit(0 if LIBC.unshare(flag) == 0 else 1)
            ways[name] = "" if os.waitpid(child, 0)[1] else "made"
        ways["mount"] = ways["mount"] or ("" if LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None) else "mounted")
        return verdict(ways)

    @tool(**READ)
    def kernel_interfaces(self, ctx: ToolContext) -> Answer[Verdict]:
        """Use interfaces of the kernel that have a long record of faults."""
        return verdict({
            "add_key": called("add_key", b"user", b"probe", b"x", 1, -4),
            "keyctl": called("keyctl", 0, -3, 1),
            "bpf": called("bpf", 5, ctypes.create_string_buffer(128), 128),
            "userfaultfd": called("userfaultfd", 0),
        })  # fmt: skip

    @tool(**READ)
    def ptrace(self, ctx: ToolContext, victim: int) -> Answer[Verdict]:
        """Take hold of another process, and of one of its own."""
        ways = {"another process": _attach(victim), "its parent": _attach(os.getppid())}
        child = os.fork()
        if child == 0:
            time.sleep(10)
            os._exit(0)
        ways["a child of its own"] = _attach(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return verdict(ways)

    @tool(**READ)
    def proc(self, ctx: ToolContext, victim: int, marker: str) -> Answer[Verdict]:
        """Look at other processes, and at the server's secrets through them."""

        def secrets() -> str:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    with contextlib.suppress(OSError):
                        if marker.encode() in (entry / "environ").read_bytes():
                            return "read"
            return ""

        others = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return verdict({
            "other processes": "" if len(others) <= 4 else f"{len(others)} seen",
            "that process": tried(lambda: Path(f"/proc/{victim}/cmdline").read_text()) if len(others) > 4 else "",
            "the server's variables": secrets(),
            "its own variables": "" if marker not in str(os.environ) else "handed on",
            "kernel settings": tried(lambda: os.close(os.open(CORE_PATTERN, os.O_WRONLY)) or "opened"),
        })  # fmt: skip

    @tool(**READ)
    def signals(self, ctx: ToolContext, victim: int) -> Answer[Verdict]:
        """End another process of this machine."""
        return verdict({"another process": tried(lambda: os.kill(victim, signal.SIGTERM) or "sent")})

    @tool(**READ)
    def descriptors(self, ctx: ToolContext) -> Answer[Verdict]:
        """Find descriptors that it was left by mistake."""
        left = {}
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{name}")
                if not target.startswith(("/dev/null", "pipe:", "/proc/", "anon_inode:")) and not _is_own_pair(
                    int(name)
                ):
                    left[f"descriptor {name}"] = target
        return verdict(left or {"descriptors": ""})

    @tool(**READ)
    def outlive(self, ctx: ToolContext, marker: str) -> Answer[Verdict]:
        """Leave processes behind that belong to nobody, ignore SIGTERM and come back; never answer."""
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                    signal.signal(number, signal.SIG_IGN)
                if os.fork() == 0:
                    os.execv(sys.executable, [sys.executable, "-c", f"import time; time.sleep(3600)  # {marker}"])
                os._exit(0)
        time.sleep(1)
        ctx.progress(0.5, "left them")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(0.05)


def _is_own_pair(descriptor: int) -> bool:
    """Whether a descriptor is one end of a pair without a name, as this process's own event loop has."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as made:
            return made.family == socket.AF_UNIX and not made.getsockname()
    except OSError:
        return False


def _attach(pid: int) -> str:
    if LIBC.ptrace(PTRACE_ATTACH, pid, None, None):
        return ""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return "attached"


def _give_away(path: Path) -> str:
    path.write_text("x")
    os.chown(path, os.getuid() + 1, -1)
    return "given"

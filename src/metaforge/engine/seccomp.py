"""A system-call filter for boxes, assembled here: no C library is needed to make one.

A box's own namespaces already hide files, network and processes. The filter closes ways around them: new user
namespaces (which would give back every capability inside them), handles that open files by number, kernel keys, and
kernel interfaces with a long record of faults that no engineering tool uses.
"""

import errno
import os
import struct

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
CLONE_NEWUSER = 0x10000000
_X86_64_AUDIT = 0xC000003E

# Numbers are the kernel's, per architecture; from 424 on they are the same everywhere.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
}  # fmt: skip
_X86_64 = _COMMON | {
    "ptrace": 101, "syslog": 103, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "perf_event_open": 298, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = _COMMON | {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "acct": 89, "kexec_load": 104, "init_module": 105,
    "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "add_key": 217, "request_key": 218,
    "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "name_to_handle_at": 264,
    "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "finit_module": 273,
    "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
_ARCHITECTURES = {
    # machine: (AUDIT_ARCH, refused, clone, unshare)
    "x86_64": (_X86_64_AUDIT, _X86_64, 56, 272),
    "aarch64": (0xC00000B7, _AARCH64, 220, 97),
}
_CLONE3 = 435


def refused_calls() -> frozenset[str]:
    """Return the names of the calls that boxes are refused, whatever the machine."""
    return frozenset(_X86_64) | frozenset(_AARCH64)


def program(machine: str = "") -> bytes | None:
    """Return the filter as BPF instructions, or None for a machine whose system calls are not listed here."""
    known = _ARCHITECTURES.get(machine or os.uname().machine)
    if known is None:
        return None
    architecture, refused, clone, unshare = known
    refuse = _REFUSE | errno.EPERM
    # clone3 passes its flags in memory, where a filter cannot look: "no such call" makes libc fall back to clone.
    missing = _REFUSE | errno.ENOSYS
    code = [
        _step(_LOAD_WORD, _AT_ARCHITECTURE),
        _step(_JUMP_EQUAL, architecture, 1, 0),
        _step(_RETURN, missing),
        _step(_LOAD_WORD, _AT_NUMBER),
    ]
    if architecture == _X86_64_AUDIT:
        code += [_step(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _step(_RETURN, missing)]
    code += [_step(_JUMP_EQUAL, _CLONE3, 0, 1), _step(_RETURN, missing)]
    for number in sorted(refused.values()):
        code += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, refuse)]
    for number in (clone, unshare):
        code += [
            _step(_JUMP_EQUAL, number, 0, 4),
            _step(_LOAD_WORD, _AT_FIRST_ARGUMENT),
            _step(_JUMP_ANY_BIT, CLONE_NEWUSER, 0, 1),
            _step(_RETURN, refuse),
            _step(_RETURN, _ALLOW),
        ]
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def descriptor() -> int | None:
    """Return an open descriptor from which bubblewrap reads the filter; the caller closes it."""
    code = program()
    if code is None:
        return None
    opened = os.memfd_create("seccomp", 0)
    os.write(opened, code)
    os.lseek(opened, 0, os.SEEK_SET)
    return opened

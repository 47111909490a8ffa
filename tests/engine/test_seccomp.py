"""The system-call filter, run by a small interpreter for both machines it knows."""

import errno
import struct

import pytest

from metaforge.engine import seccomp

ALLOW, REFUSED, NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003
NEW_USER = 0x10000000


def decide(program: bytes, architecture: int, number: int, first: int = 0) -> int:
    """Run classic BPF over the seccomp data of one call."""
    steps = list(struct.iter_unpack("=HBBI", program))
    data = {0: number, 4: architecture, 16: first}
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                accumulator = data[value]
            case 0x06:
                return value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false


@pytest.mark.parametrize(
    ("number", "first", "decision"),
    [
        (0, 0, ALLOW),  # read
        (59, 0, ALLOW),  # execve
        (101, 0, REFUSED),  # ptrace
        (250, 0, REFUSED),  # keyctl
        (304, 0, REFUSED),  # open_by_handle_at
        (321, 0, REFUSED),  # bpf
        (425, 0, REFUSED),  # io_uring_setup
        (56, 0x11, ALLOW),  # clone, as fork does
        (56, NEW_USER | 0x11, REFUSED),
        (272, 0x20000, ALLOW),  # unshare without a user namespace
        (272, NEW_USER, REFUSED),
        (435, 0, NO_SUCH_CALL),  # clone3
        (0x40000000, 0, NO_SUCH_CALL),  # the x32 way to the same calls
    ],
)
def test_calls_on_x86_64(number, first, decision):
    assert decide(seccomp.program("x86_64"), X86_64, number, first) == decision


@pytest.mark.parametrize(
    ("number", "first", "decision"),
    [
        (63, 0, ALLOW),  # read
        (221, 0, ALLOW),  # execve
        (117, 0, REFUSED),  # ptrace
        (265, 0, REFUSED),  # open_by_handle_at
        (280, 0, REFUSED),  # bpf
        (220, 0x11, ALLOW),  # clone
        (220, NEW_USER, REFUSED),
        (97, NEW_USER, REFUSED),  # unshare
        (435, 0, NO_SUCH_CALL),
    ],
)
def test_calls_on_aarch64(number, first, decision):
    assert decide(seccomp.program("aarch64"), AARCH64, number, first) == decision


def test_calls_of_another_architecture_do_not_exist():
    assert decide(seccomp.program("x86_64"), I386, 0) == NO_SUCH_CALL


def test_an_unknown_machine_has_no_filter():
    assert seccomp.program("riscv64") is None

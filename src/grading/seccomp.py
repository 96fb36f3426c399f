"""The system calls that a sandbox refuses, as the small program that the kernel runs for each.

Beside what namespaces and limits do: new namespaces, memory that no limit counts, other processes,
the kernel's own doors. The format is that of seccomp(2), SECCOMP_SET_MODE_FILTER.
"""

from __future__ import annotations

import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {  # name: on x86_64, on aarch64
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "shmget": (29, 194), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_by_handle_at": (304, 265),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
}  # fmt: skip
CLONE, CLONE3 = (56, 220), 435
NEW_USER = 0x10000000
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
LOAD, EQUAL, ABOVE, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def program(machine: str = "") -> bytes:
    """The filter for this machine, b"" for one that is not known here.

    >>> len(program("x86_64")) % 8, program("z80")
    (0, b'')
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return b""
    k = list(ARCHITECTURES).index(machine)
    refused = [pair[k] for pair in NUMBERS.values()]
    lines: list[tuple[int, int, int, int]] = [
        (LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),
    ]  # fmt: skip
    if machine == "x86_64":  # the x32 calls have other numbers
        lines += [(ABOVE, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]
    for number in refused:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    lines += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ENOSYS)]  # its flags lie where we cannot look
    lines += [(EQUAL, 0, 3, CLONE[k]), (LOAD, 0, 0, 16), (BITS, 0, 1, NEW_USER)]
    lines += [(RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)

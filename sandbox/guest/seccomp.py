"""A system call filter of our own, on top of whatever the engine installs.

It denies (EPERM) what no honest program calls and what has been a way out of containers or a
mailbox between programs: tracing, namespaces and mounts, io_uring, keyrings, bpf, System V IPC
and message queues, modules, clocks. `clone3` answers ENOSYS, because its flags cannot be
inspected; the C library then falls back to `clone`, whose namespace flags are denied. Sockets are
limited to the unix family: a closed TCP connection stays in /proc/net/tcp for the next program to
read, and AF_VSOCK is not even confined by a network namespace. The action of SIGCHLD cannot be
changed: where it is ignored, the CPU time of children is counted nowhere. Priority and processor
can be changed for the caller alone: the template has the same effective user. Programs for another
architecture or the x32 ABI are killed or denied.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_FILTER_MODE = 2

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_X32_BIT = 0x40000000
# CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}, and CLONE_PARENT: the time of a process whose
# parent is not the test would be charged to nobody.
_CLONE_FLAGS = 0x7E028080
_AF_UNIX = 1
_SIGCHLD = 17

# name -> (x86_64, aarch64); None where the architecture has no such call
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "personality": (135, 92),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
}

# Allowed for the caller itself, that is with a first argument of 0
_OWN_ONLY: dict[str, tuple[int, int]] = {
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
# The same, of a second argument after one that says what it names: a process
_OWN_PROCESS_ONLY: dict[str, tuple[int, int, int]] = {
    "setpriority": (141, 140, 0),
    "ioprio_set": (251, 30, 1),
}

# machine -> (AUDIT_ARCH, column of _DENIED, clone, clone3, socket, rt_sigaction)
_MACHINES = {
    "x86_64": (0xC000003E, 0, 56, 435, 41, 13),
    "aarch64": (0xC00000B7, 1, 220, 435, 198, 134),
}

# BPF opcodes
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1 = (
    0,
    4,
    16,
    24,
)  # offsets in struct seccomp_data (little endian)


def _op(code: int, value: int, on_true: int = 0, on_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, on_true, on_false, value)


def build(machine: str) -> bytes:
    """Return the filter as an array of `struct sock_filter`.

    Raises:
        RuntimeError: there is no table for `machine`.
    """
    if machine not in _MACHINES:
        known = ", ".join(_MACHINES)
        raise RuntimeError(f"no system call table for {machine}; there are tables for {known}")
    arch, column, clone, clone3, socket, sigaction = _MACHINES[machine]
    deny = _op(_RETURN, _ERRNO | errno.EPERM)
    code = [_op(_LOAD, _ARCH), _op(_EQUAL, arch, 1), _op(_RETURN, _KILL_PROCESS)]
    code += [_op(_LOAD, _NUMBER), _op(_AT_LEAST, _X32_BIT, 0, 1), deny]
    code += [_op(_EQUAL, clone3, 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    for number in (known[column] for known in _DENIED.values()):
        if number is not None:
            code += [_op(_EQUAL, number, 0, 1), deny]
    allow = _op(_RETURN, _ALLOW)
    for own in _OWN_ONLY.values():
        code += [_op(_EQUAL, own[column], 0, 4), _op(_LOAD, _ARGUMENT_0)]
        code += [_op(_EQUAL, 0, 0, 1), allow, deny]
    for *numbers, kind in _OWN_PROCESS_ONLY.values():
        code += [_op(_EQUAL, numbers[column], 0, 6), _op(_LOAD, _ARGUMENT_0)]
        code += [_op(_EQUAL, kind, 0, 3), _op(_LOAD, _ARGUMENT_1)]
        code += [_op(_EQUAL, 0, 0, 1), allow, deny]
    code += [_op(_EQUAL, clone, 0, 4), _op(_LOAD, _ARGUMENT_0)]
    code += [_op(_ANY_BIT, _CLONE_FLAGS, 0, 1), deny, _op(_RETURN, _ALLOW)]
    # Reading how SIGCHLD is handled is free; a new action is any address but null.
    code += [_op(_EQUAL, sigaction, 0, 8)]
    code += [_op(_LOAD, _ARGUMENT_0), _op(_EQUAL, _SIGCHLD, 0, 4)]
    code += [_op(_LOAD, _ARGUMENT_1), _op(_EQUAL, 0, 0, 3)]
    code += [_op(_LOAD, _ARGUMENT_1 + 4), _op(_EQUAL, 0, 0, 1), _op(_RETURN, _ALLOW), deny]
    code += [_op(_EQUAL, socket, 0, 3), _op(_LOAD, _ARGUMENT_0), _op(_EQUAL, _AF_UNIX, 1)]
    code += [_op(_RETURN, _ERRNO | errno.EAFNOSUPPORT), _op(_RETURN, _ALLOW)]
    return b"".join(code)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _prctl(option: int, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *arguments, *(ctypes.c_ulong(0),) * (4 - len(arguments))) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}) failed")


def hide() -> None:
    """Make this process non-dumpable: no other user's process may look into it."""
    _prctl(PR_SET_DUMPABLE, ctypes.c_ulong(0))


def hidden_by_change_of_user() -> bool:
    """Whether a process that has changed its user is non-dumpable for it, as is usual."""
    try:
        with open("/proc/sys/fs/suid_dumpable") as file:
            return file.read().strip() == "0"
    except OSError:
        return False


def install() -> None:
    """Filter the system calls of this process and of all that it will start.

    Raises:
        OSError: the kernel refused.
        RuntimeError: this architecture has no table.
    """
    code = build(os.uname().machine)
    program = _Program(len(code) // 8, code)
    _prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))
    _prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.byref(program))

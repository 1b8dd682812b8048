"""What an attack is, and the head that all hostile programs share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.base import Guarantee
from sandbox.guest import wire
from sandbox.types import Checker, Limits, Status

AC, WA, RE = Status.ACCEPTED, Status.WRONG_ANSWER, Status.RUNTIME_ERROR
TLE, MLE = Status.TIME_LIMIT_EXCEEDED, Status.MEMORY_LIMIT_EXCEEDED
OLE, CE = Status.OUTPUT_LIMIT_EXCEEDED, Status.COMPILE_ERROR

WORKER_MEMORY_MB = 576
"""Of a worker that attacks run in: little, so that attacks on it are short."""
LIMITS = Limits(cpu_s=0.5, memory_mb=256, output_bytes=1 << 16)
WAITING = Limits(cpu_s=0.5, wall_s=2.0, memory_mb=256, output_bytes=1 << 16)
"""For programs that only the clock ends."""
CROWDED = Limits(cpu_s=0.5, wall_s=2.0, memory_mb=256, output_bytes=1 << 16, processes=8)
"""For programs whose processes all burn time, each up to the limit."""
PATIENT = Limits(cpu_s=10.0, memory_mb=256, output_bytes=1 << 16)
"""For attacks that are work."""

EXPECTED = "the answer that no guest is ever told"
SUM_INPUT = "20 22\n"

FORGED = wire.pack_result(
    wire.Facts(
        stage=b"R", status=0, cpu_s=0.0, wall_s=0.0, max_rss_kb=1,
        overflow=False, timed_out=False, finished=False, oom=False, clean=True,
    ),
    EXPECTED[:10].encode(),
    b"",
)  # fmt: skip

HEAD = (
    f"""
import os, resource, signal, socket, sys, time
FORGED = {FORGED!r}
"""
    + """
PROCESSES = [int(name) for name in os.listdir("/proc") if name.isdigit()]
OTHERS = [pid for pid in PROCESSES if pid != os.getpid()]

def attempt(action, *arguments):
    try:
        action(*arguments)
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "succeeded"

def read(path, what=""):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return what

def write(path, text):
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())

def entries(path):
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []

# name: number on x86_64, on aarch64
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "unshare": (272, 97), "mount": (165, 40), "umount2": (166, 39), "chroot": (161, 51),
    "pivot_root": (155, 41), "setns": (308, 268), "keyctl": (250, 219), "add_key": (248, 217),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "init_module": (175, 105), "finit_module": (313, 273),
    "clone": (56, 220), "clone3": (435, 435), "shmget": (29, 194), "semget": (64, 190),
    "msgget": (68, 186), "mq_open": (240, 180), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fsopen": (430, 430), "open_tree": (428, 428),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272), "syslog": (103, 116), "reboot": (169, 142),
    "swapon": (167, 224), "sethostname": (170, 161), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "kexec_load": (246, 104),
    "personality": (135, 92), "memfd_secret": (447, 447), "acct": (163, 89),
    "seccomp": (317, 277), "prlimit64": (302, 261), "ioprio_set": (251, 30),
    "rt_sigqueueinfo": (129, 138), "tkill": (200, 130), "tgkill": (234, 131),
}

def libc():
    import ctypes
    return ctypes, ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    ctypes, library = libc()
    ctypes.set_errno(0)
    number = NUMBERS[name][os.uname().machine == "aarch64"]
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if library.syscall(number, *values) >= 0:
        return "succeeded"
    return os.strerror(ctypes.get_errno())

def prctl(*arguments):
    ctypes, library = libc()
    return library.prctl(*(ctypes.c_ulong(each) for each in arguments))

def daemon(work):
    # Forked twice, so that it outlives the program as no one's child.
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            work(lambda: os.write(theirs, b"."))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(theirs)
    os.read(ours, 1)
    os.close(ours)

def socket_names():
    lines = [line.split() for line in read("/proc/net/unix").splitlines()[1:]]
    return [words[7] for words in lines if len(words) > 7]

def is_of_the_kernel(name):
    # As sockets get that no one has named, and that pass credentials.
    return len(name) == 6 and name[0] == "@" and set(name[1:]) <= set("0123456789abcdef")

def place():
    # All by which one run could notice another.
    status = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines())
    wanted = ("Umask", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Seccomp", "CapEff", "CapBnd")
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource)
              if name.startswith("RLIMIT_") and name[7:] not in ("CPU", "AS", "FSIZE", "NPROC")}
    return {
        "process": {name: status[name].strip() for name in wanted},
        "limits": limits,
        "priority": (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0),
                     sorted(os.sched_getaffinity(0)), read("/proc/self/oom_score_adj").strip()),
        "timers": signal.getitimer(signal.ITIMER_REAL),
        "folder": os.getcwd(),
        "descriptors": [fd for fd in entries("/proc/self/fd") if int(fd) < 3],
        "environment": dict(os.environ),
        "processes": len(PROCESSES),
        "mine": sum(os.stat(f"/proc/{pid}").st_uid == os.getuid() for pid in PROCESSES
                    if os.path.exists(f"/proc/{pid}")),
        "files": [entries(folder) for folder in ("/tmp", "/dev/shm", "/dev/mqueue", "/dev/pts")],
        "ipc": [read(f"/proc/sysvipc/{kind}").count("\\n") for kind in ("shm", "sem", "msg")],
        "sockets": [name for name in socket_names() if not is_of_the_kernel(name)],
        "connections": [read(f"/proc/net/{kind}").count("\\n")
                        for kind in ("tcp", "tcp6", "udp", "udp6", "netlink")],
        # Those of open file descriptions are shown for the whole machine.
        "locks": [line.split()[1:] for line in read("/proc/locks").splitlines()
                  if "OFDLCK" not in line],
    }

LINE = sys.stdin.readline()
if LINE != "attack\\n":
    print(sum(map(int, LINE.split())))
    print(place())
    raise SystemExit
"""
)
"""What a hostile program starts with: tools, and an honest answer to any input but `attack`."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A hostile program that reads its input and prints."""

    source: str
    """Follows `HEAD`, unless `whole`."""
    statuses: tuple[Status, ...]
    """Verdicts that are right. Accepted is never among them."""
    says: str | None = None
    """What it must have printed, as far as that is certain."""
    limits: Limits = LIMITS
    needs: Guarantee | None = None
    """Where this is missing, and only there, the attack is left out."""
    before: str | None = None
    """A program that is run first, in the same worker; it need not end well."""
    whole: bool = False
    """Whether `source` is all of the program, which then has no honest side."""
    checker: Checker = field(default_factory=Checker)
    slow: bool = False

    @property
    def program(self) -> str:
        return self.source if self.whole else HEAD + self.source


@dataclass(frozen=True, kw_only=True)
class FunctionAttack:
    """A hostile program whose function `f` a test calls."""

    source: str
    statuses: tuple[Status, ...]
    body: str = "assert f(3.5) == 0.5\nassert abs(f(1.33) - 0.33) < 1e-6\n"
    limits: Limits = field(default_factory=lambda: Limits(cpu_s=2.0, wall_s=20.0, memory_mb=256))
    needs: Guarantee | None = None
    slow: bool = False


CANARY = HEAD
"""An honest program: a sum, and all that it notices of its place."""

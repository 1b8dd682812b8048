"""What is none of a program's business: other processes, other users, the kernel, the network."""

from __future__ import annotations

from .attack import PATIENT, RE, TLE, WA, WAITING, Attack

_TARGETS = {
    "the parent": "[os.getppid()]",
    "PID 1": "[1]",
    "every other": "OTHERS",
}
_WAYS = {
    "kill": "os.kill(pid, {})",
    "kill its group": "os.getpgid(pid) != os.getpgid(0) and os.killpg(pid, {})",
    "tkill": "call('tkill', pid, {})",
    "tgkill": "call('tgkill', pid, pid, {})",
    "a queued signal": "call('rt_sigqueueinfo', pid, {}, bytes(128))",
    "a pidfd": "signal.pidfd_send_signal(os.pidfd_open(pid), {})",
}

# Signals may be said to be sent, as PID 1 ignores them: what counts is that no one is harmed.
_SIGNALS = {
    f"signal {target}: {name}": Attack(
        source=f"""
def send(pid): {way.format("signal." + name)}
for pid in {pids}: attempt(send, pid)
time.sleep(0.05)
print([pid for pid in {pids} if not os.path.exists(f"/proc/{{pid}}")],
      [pid for pid in {pids} if read(f"/proc/{{pid}}/stat").rpartition(")")[2][1:2] in "TZ"])
""",
        statuses=(WA,),
        says="[] []\n",
    )
    for target, pids in _TARGETS.items()
    for way in [_WAYS["kill"]]
    for name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV", "SIGCHLD")
} | {
    f"signal every other: by {name}": Attack(
        source=f"""
def send(pid): {way.format("signal.SIGKILL")}
for pid in OTHERS: attempt(send, pid)
time.sleep(0.05)
print([pid for pid in OTHERS if not os.path.exists(f"/proc/{{pid}}")])
""",
        statuses=(WA,),
        says="[]\n",
    )
    for name, way in _WAYS.items()
    if name != "kill"
}

_LOOKS = {
    "memory": "open(f'/proc/{pid}/mem', 'rb')",
    "descriptors": "os.listdir(f'/proc/{pid}/fd')",
    "environment": "open(f'/proc/{pid}/environ', 'rb').read()",
    "maps": "open(f'/proc/{pid}/maps').read(1)",
    "working folder": "os.readlink(f'/proc/{pid}/cwd')",
    "root folder": "os.listdir(f'/proc/{pid}/root')",
    "stack": "open(f'/proc/{pid}/stack').read()",
    "system call": "open(f'/proc/{pid}/syscall').read()",
}

_CALLS = {
    "unshare": "0x10000000",
    "mount": "b'none', b'/tmp', b'tmpfs', 0, 0",
    "umount2": "b'/tmp', 2",
    "chroot": "b'/tmp'",
    "pivot_root": "b'/tmp', b'/tmp'",
    "setns": "0, 0",
    "keyctl": "0, -3, 1",
    "add_key": "b'user', b'mail', b'x', 1, -3",
    "bpf": "0, 0, 0",
    "perf_event_open": "bytes(128), 0, -1, -1, 0",
    "userfaultfd": "0",
    "io_uring_setup": "8, bytes(256)",
    "init_module": "0, 0, 0",
    "finit_module": "0, 0, 0",
    "ptrace": "0, 0, 0, 0",
    "clone": "0x10000000 | 17, 0, 0, 0, 0",
    "process_vm_readv": "1, 0, 0, 0, 0, 0",
    "process_vm_writev": "1, 0, 0, 0, 0, 0",
    "shmget": "4711, 4096, 0o1666",
    "semget": "4711, 1, 0o1666",
    "msgget": "4711, 0o1666",
    "mq_open": "b'mail', 0o102, 0o666, 0",
    "open_by_handle_at": "-100, bytes(64), 0",
    "fanotify_init": "0, 0",
    "fsopen": "b'tmpfs', 0",
    "open_tree": "-100, b'/', 1",
    "pidfd_getfd": "0, 0, 0",
    "kcmp": "1, 1, 0, 0, 0",
    "syslog": "3, bytes(64), 64",
    "reboot": "0, 0, 0, 0",
    "swapon": "b'/tmp', 0",
    "sethostname": "b'mail', 4",
    "settimeofday": "bytes(16), 0",
    "clock_settime": "0, bytes(16)",
    "adjtimex": "bytes(256)",
    "kexec_load": "0, 0, 0, 0",
    "personality": "0",
    "acct": "0",
}

_DOORS = {
    "a host": "socket.create_connection(('10.0.0.1', 80), 1)",
    "this machine": "socket.create_connection(('127.0.0.1', 22), 1)",
    "this machine, by IPv6": "socket.create_connection(('::1', 22), 1)",
    "a listener of its own": "socket.create_server(('127.0.0.1', 14711))",
    "datagrams": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "raw packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "the hypervisor": "socket.socket(40, socket.SOCK_STREAM)",
    "the kernel's ciphers": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "the name service": "socket.getaddrinfo('example.com', 80)",
}

ATTACKS = {
    **_SIGNALS,
    "signal everything": Attack(
        source="os.kill(-1, signal.SIGKILL)\ntime.sleep(0.1)", statuses=(RE, WA)
    ),
    "signal everything: SIGSTOP": Attack(
        source="attempt(os.kill, -1, signal.SIGSTOP)\nprint('on')",
        statuses=(WA, TLE),
        limits=WAITING,
    ),
    "signal everything: from a group of its own": Attack(
        source="""
for number in (signal.SIGKILL, signal.SIGSTOP):
    if os.fork() == 0:
        os.setsid()
        for _ in range(100): attempt(os.kill, -1, number)
        os._exit(0)
time.sleep(0.3)
""",
        statuses=(WA, RE, TLE),
        limits=WAITING,
    ),
    "signal by descriptor": Attack(
        source="""
import fcntl
for pid in OTHERS:
    ours, theirs = socket.socketpair()
    attempt(fcntl.fcntl, ours.fileno(), fcntl.F_SETOWN, pid)
    attempt(fcntl.fcntl, ours.fileno(), 10, signal.SIGKILL)  # F_SETSIG
    attempt(fcntl.fcntl, ours.fileno(), fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    theirs.send(b"x")
time.sleep(0.05)
print([pid for pid in OTHERS if not os.path.exists(f"/proc/{pid}")])
""",
        statuses=(WA,),
        says="[]\n",
    ),
    "change the others": Attack(
        source="""
import struct
for pid in OTHERS:
    attempt(os.setpriority, os.PRIO_PROCESS, pid, 19)
    attempt(os.setpriority, os.PRIO_PGRP, pid, 19)
    attempt(os.sched_setaffinity, pid, {max(os.sched_getaffinity(0))})
    attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))
    attempt(os.setpgid, pid, 0)
    call("ioprio_set", 1, pid, 3 << 13)
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
        call("prlimit64", pid, kind, struct.pack("QQ", 1, 1), 0)
    for name in ("oom_score_adj", "comm", "clear_refs", "coredump_filter", "timerslack_ns"):
        attempt(write, f"/proc/{pid}/{name}", "1")
""",
        statuses=(WA,),
    ),
    "change the others: its user's processes": Attack(
        source="""
attempt(os.setpriority, os.PRIO_USER, 0, 19)
attempt(os.setpriority, os.PRIO_PGRP, 0, 19)
attempt(os.setpriority, os.PRIO_USER, os.getuid(), 19)
""",
        statuses=(WA,),
    ),
    "change itself": Attack(
        source="""
os.umask(0)
os.nice(19)
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ["MAIL"] = "x"
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
for option, value in ((1, 9), (4, 1), (4, 0), (36, 1), (15, 1), (23, 1), (28, 1), (35, 1)):
    prctl(option, value, 0, 0, 0)
print(attempt(write, "/proc/self/oom_score_adj", "-1000"))
""",
        statuses=(WA,),
        says="PermissionError\n",
    ),
    **{
        f"look into the others: {what}": Attack(
            source=f"print({{attempt(lambda: {look}) for pid in OTHERS}})",
            statuses=(WA,),
            says="{'PermissionError'}\n",
        )
        for what, look in _LOOKS.items()
    },
    "trace the others": Attack(
        source="print({call('ptrace', 16, pid, 0, 0) for pid in OTHERS})",
        statuses=(WA,),
        says="{'Operation not permitted'}\n",
    ),
    **{
        f"system call: {name}": Attack(
            source=f"print(call({name!r}, {arguments}))",
            statuses=(WA,),
            says="Operation not permitted\n",
        )
        for name, arguments in _CALLS.items()
    },
    "system call: clone3": Attack(
        source="print(call('clone3', bytes(88), 88))",
        statuses=(WA,),
        says="Function not implemented\n",
    ),
    "system call: of another architecture": Attack(
        source="""
import mmap
if os.uname().machine == "x86_64":
    # int 0x80 with 20 in eax: getpid as a 32-bit program would call it.
    code = bytes.fromhex("b814000000cd80c3")
    ctypes, library = libc()
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    print(ctypes.CFUNCTYPE(ctypes.c_int)(address)(), flush=True)
else:
    os.kill(os.getpid(), signal.SIGSYS)
""",
        statuses=(RE,),
        says="",
    ),
    "system call: a filter with a listener": Attack(
        source="""
import struct
ctypes, library = libc()
allow = struct.pack("=HBBI", 6, 0, 0, 0x7FC00000)  # ask the listener about every call
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))
call("seccomp", 1, 8, ctypes.byref(Program(1, allow)))
print("deaf")
""",
        statuses=(WA, TLE, RE),
        limits=WAITING,
        slow=True,
    ),
    "become someone else: user": Attack(
        source="""
others = {0, 1, 65534, os.getuid() + 1} - {os.getuid()}
print({attempt(os.setuid, uid) for uid in others} |
      {attempt(os.setresuid, uid, uid, uid) for uid in others} |
      {attempt(os.seteuid, 0), attempt(os.setreuid, 0, 0)} <= {"PermissionError", "OSError"})
""",
        statuses=(WA,),
        says="True\n",
    ),
    "become someone else: group": Attack(
        source="""
others = {0, 1, 65534, os.getgid() + 1} - {os.getgid()}
print({attempt(os.setgid, gid) for gid in others} |
      {attempt(os.setgroups, [0]), attempt(os.setresgid, 0, 0, 0)}
      <= {"PermissionError", "OSError"})
""",
        statuses=(WA,),
        says="True\n",
    ),
    "become someone else: a set-user-id file": Attack(
        source="""
import stat
found = []
for folder, _, names in os.walk("/"):
    if not folder.startswith("/proc"):
        for name in names:
            mode = os.lstat(f"{folder}/{name}").st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID): found.append(name)
print(found)
""",
        statuses=(WA,),
        says="[]\n",
        limits=PATIENT,
    ),
    "become someone else: by a user namespace": Attack(
        source="print(attempt(write, '/proc/self/uid_map', '0 0 1'))",
        statuses=(WA,),
        says="PermissionError\n",
    ),
    "connect to the outside: the interfaces": Attack(
        source="print(entries('/sys/class/net') in ([], ['lo']))", statuses=(WA,), says="True\n"
    ),
    **{
        f"connect to the outside: {where}": Attack(
            source=f"""
try:
    {door}
    print("open")
except OSError:
    print("closed")
""",
            statuses=(WA,),
            says="closed\n",
        )
        for where, door in _DOORS.items()
    },
    "find secrets: files of root": Attack(
        source="""
print([path for path in ("/etc/shadow", "/root", "/home", "/boot", "/var/lib")
       if os.access(path, os.R_OK) and (os.path.isfile(path) or os.listdir(path))])
""",
        statuses=(WA,),
        says="[]\n",
    ),
    "find secrets: the engine's socket": Attack(
        source="""
import stat
found = []
for folder, folders, names in os.walk("/"):
    for name in names:
        if stat.S_ISSOCK(os.lstat(f"{folder}/{name}").st_mode): found.append(name)
    folders[:] = [name for name in folders if folder != "/" or name != "proc"]
print(found)
""",
        statuses=(WA,),
        says="[]\n",
        limits=PATIENT,
    ),
    "find secrets: names that tell of them": Attack(
        source="""
words = ("secret", "token.txt", "credential", ".ssh", ".aws", ".netrc", "expected", "answer")
found = []
for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if folder != "/" or name not in ("proc", "sys")]
    if "/lib/python3" not in folder:
        found += [name for name in names if any(word in name.lower() for word in words)]
print(found, [name for name in os.environ if any(w in name.lower() for w in ("key", "token"))])
""",
        statuses=(WA,),
        says="[] []\n",
        limits=PATIENT,
    ),
    "find secrets: devices": Attack(
        source="""
import stat
harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
kinds = {name: stat.S_IFMT(os.lstat(f"/dev/{name}").st_mode) for name in os.listdir("/dev")}
print([name for name, kind in kinds.items()
       if kind in (stat.S_IFBLK, stat.S_IFCHR) and name not in harmless],
      attempt(os.mknod, "/tmp/disk", stat.S_IFBLK | 0o666, os.makedev(254, 0)))
""",
        statuses=(WA,),
        says="[] PermissionError\n",
    ),
    "write outside /tmp": Attack(
        source="""
devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
           "/dev/ptmx", "/dev/pts/ptmx", "/dev/console"}
found = []
for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if folder != "/" or name not in ("proc", "tmp")]
    for path in [folder, *(f"{folder}/{name}" for name in names)]:
        if not os.path.islink(path) and os.access(path, os.W_OK): found.append(path)
print([path for path in found if path not in devices])
""",
        statuses=(WA,),
        says="[]\n",
        limits=PATIENT,
    ),
    "write outside /tmp: the interpreter": Attack(
        source="""
import encodings, json
paths = (sys.executable, json.__file__, encodings.__file__, "/etc/passwd", "/etc/ld.so.preload",
         os.path.dirname(json.__file__) + "/new.py", "/usr/local/lib/python3.11/sitecustomize.py")
print({attempt(open, path, "r+") for path in paths} | {attempt(open, path, "w") for path in paths}
      <= {"OSError", "PermissionError", "FileNotFoundError"})
""",
        statuses=(WA,),
        says="True\n",
    ),
    "write outside /tmp: switches of the kernel": Attack(
        source="""
found = []
for root in ("/proc/sys", "/sys"):
    for folder, _, names in os.walk(root):
        for name in names:
            path = f"{folder}/{name}"
            if os.access(path, os.W_OK):
                if attempt(write, path, read(path, "1")) == "succeeded": found.append(path)
print(found, attempt(open, "/proc/sysrq-trigger", "w") != "succeeded")
""",
        statuses=(WA,),
        says="[] True\n",
        limits=PATIENT,
    ),
    "run the interpreter anew": Attack(
        source="""
sys.stdout.flush()
code = '''
import ctypes, os, resource, signal
library = ctypes.CDLL(None, use_errno=True)
library.ptrace(0, 0, 0, 0)
print(os.strerror(ctypes.get_errno()), resource.getrlimit(resource.RLIMIT_NPROC)[1] < 1000)
try: os.kill(os.getppid(), signal.SIGKILL)
except OSError: pass
'''
os.execve(sys.executable, [sys.executable, "-c", code],
          dict(os.environ, LD_PRELOAD="/tmp/none.so", PYTHONSTARTUP="/tmp/none.py"))
""",
        statuses=(WA,),
        says="Operation not permitted True\n",
    ),
}

"""Something for the next test to find, be it of the same program or of another."""

from __future__ import annotations

from .attack import RE, TLE, WA, WAITING, Attack

_DAEMONS = {
    "silent": """
    for fd in (0, 1, 2): os.close(fd)
    report()
    time.sleep(60)
""",
    "holding the output": """
    report()
    while True:
        attempt(os.write, 1, b".")
        time.sleep(0.01)
""",
    "deaf to every signal": """
    for number in range(1, 65): attempt(signal.signal, number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    report()
    while True: time.sleep(1)
""",
    "never at the same number": """
    report()
    while True:
        try:
            if os.fork(): os._exit(0)
        except OSError: pass
""",
    "stopped": """
    report()
    os.kill(os.getpid(), signal.SIGSTOP)
""",
    "writing files": """
    report()
    number = 0
    while True:
        number += 1
        attempt(lambda: open(f"/tmp/{number % 100}", "w").close())
""",
    "with a name in the abstract": """
    line = socket.socket(socket.AF_UNIX)
    line.bind(chr(0) + "mail")
    line.listen()
    report()
    time.sleep(60)
""",
    "with a lock on the library": """
    import fcntl
    lock = open(os.__file__)
    attempt(fcntl.flock, lock, fcntl.LOCK_EX)
    attempt(fcntl.lockf, lock, fcntl.LOCK_SH)
    report()
    time.sleep(60)
""",
    "with a memory file": """
    fd = os.memfd_create("mail")
    os.write(fd, b"x" * (1 << 20))
    report()
    time.sleep(60)
""",
    "watching files": """
    ctypes, library = libc()
    watch = library.inotify_init1(0)
    library.inotify_add_watch(watch, b"/tmp", 0xFFF)
    library.inotify_add_watch(watch, os.__file__.encode(), 0xFFF)
    report()
    time.sleep(60)
""",
    "with a terminal": """
    attempt(os.openpty)
    report()
    time.sleep(60)
""",
    "burning time": """
    report()
    while True: pass
""",
    "in the interpreter anew": """
    report()
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])
""",
    "with threads": """
    import threading
    for _ in range(3): threading.Thread(target=time.sleep, args=(60,)).start()
    report()
    time.sleep(60)
""",
}

_FILES = {
    "symbolic links": "os.symlink('/', '/tmp/root')\nos.symlink('loop', '/tmp/loop')",
    "a link to PID 1": "os.symlink('/proc/1/root', '/tmp/init')",
    "locked folders": """
os.makedirs("/tmp/a/b/c")
open("/tmp/a/b/c/file", "w").close()
for path in ("/tmp/a/b/c/file", "/tmp/a/b/c", "/tmp/a/b", "/tmp/a"): os.chmod(path, 0)
""",
    "a very deep folder": """
for _ in range(3000):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
""",
    "a very wide folder": "for number in range(1500): open(f'/tmp/{number}', 'w').close()",
    "odd names": """
for name in (b"\\xff\\xfe", b"\\n", b"-rf", b" ", b"x" * 255, b"*", b".hidden", b"$(reboot)"):
    open(b"/tmp/" + name, "w").close()
""",
    "a fifo and a socket": """
os.mkfifo("/tmp/fifo")
line = socket.socket(socket.AF_UNIX)
line.bind("/tmp/line")
""",
    "hard links": """
open("/tmp/a", "w").write("x")
for number in range(50): os.link("/tmp/a", f"/tmp/link{number}")
""",
    "an open file without a name": """
file = open("/tmp/gone", "w")
file.write("x")
os.unlink("/tmp/gone")
os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
""",
    "modes and owners": """
open("/tmp/file", "w").close()
os.chmod("/tmp/file", 0o7777)
attempt(os.chown, "/tmp/file", 0, 0)
attempt(os.chmod, "/tmp", 0o700)
attempt(os.utime, "/tmp", (0, 0))
attempt(os.setxattr, "/tmp/file", "user.mail", b"x")
attempt(os.setxattr, "/tmp", "user.mail", b"x")
print(attempt(os.rename, "/tmp", "/tmp2"), attempt(os.rmdir, "/tmp"))
""",
}

_MAIL = """
def post(action):
    try: action()
    except OSError: return False
    return True
"""
_MAILBOXES = {
    "a queue in the file system": "os.open('/dev/mqueue/mail', os.O_CREAT | os.O_RDWR, 0o666)",
    "shared memory in the file system": "open('/dev/shm/mail', 'w').close()",
    "a named semaphore": "open('/dev/shm/sem.mail', 'w').close()",
    "the host name": "write('/proc/sys/kernel/hostname', 'mail')",
    "the environment of PID 1": "write('/proc/1/environ', 'mail')",
    "its own control group": "write('/sys/fs/cgroup/memory/cgroup.procs', '0')",
    "the last process number": "write('/proc/sys/kernel/ns_last_pid', '4711')",
    "the name of the program": "write('/proc/1/comm', 'mail')",
    "a group below it": "os.mkdir('/sys/fs/cgroup/mail')",
    "a socket of the internet": "socket.create_server(('127.0.0.1', 14711))",
    "a bytecode file": "open(os.path.dirname(os.__file__) + '/__pycache__/mail.pyc', 'w')",
}

ATTACKS = {
    **{
        f"a daemon: {kind}": Attack(
            source=f"def work(report):{work}\ndaemon(work)\nprint('main')",
            statuses=(WA,),
            says="main\n" if kind != "holding the output" else None,
        )
        for kind, work in _DAEMONS.items()
    },
    "a daemon: many of them": Attack(
        source="def work(report):\n    report()\n    time.sleep(60)\n"
        "for _ in range(10): daemon(work)",
        statuses=(WA,),
    ),
    "a daemon: adopted by the program": Attack(
        source="def work(report):\n    report()\n    time.sleep(60)\n"
        "prctl(36, 1, 0, 0, 0)\nfor _ in range(3): daemon(work)",
        statuses=(WA,),
    ),
    "a daemon: of a program that fails": Attack(
        source="def work(report):\n    report()\n    time.sleep(60)\ndaemon(work)\n1 / 0",
        statuses=(RE,),
    ),
    "a daemon: of a program that hangs": Attack(
        source="def work(report):\n    report()\n    time.sleep(60)\ndaemon(work)\ntime.sleep(60)",
        statuses=(TLE,),
        limits=WAITING,
        slow=True,
    ),
    "a daemon: children that no one waits for": Attack(
        source="""
for _ in range(8):
    if os.fork() == 0: os._exit(0)
time.sleep(0.05)
""",
        statuses=(WA,),
    ),
    **{
        f"files left behind: {kind}": Attack(
            source=f"{work}\nprint('left')",
            statuses=(WA,) if kind != "a very deep folder" else (WA, RE),
        )
        for kind, work in _FILES.items()
    },
    "files left behind: by a daemon, behind the cleaner's back": Attack(
        source="""
def work(report):
    report()
    while True:
        for number in range(50):
            attempt(os.mkdir, f"/tmp/{number}")
            attempt(os.symlink, "/usr", f"/tmp/{number}/lib")
for _ in range(4): daemon(work)
""",
        statuses=(WA,),
    ),
    **{
        f"a mailbox: {where}": Attack(
            source=f"{_MAIL}print(post(lambda: {action}))", statuses=(WA,), says="False\n"
        )
        for where, action in _MAILBOXES.items()
    },
    "a mailbox: a closed connection": Attack(
        source="""
try:
    listener = socket.create_server(("127.0.0.1", 14711))
    there = socket.create_connection(("127.0.0.1", 14711))
    here, _ = listener.accept()
    here.close(), there.close(), listener.close()
except OSError: print("closed")
""",
        statuses=(WA,),
        says="closed\n",
    ),
}

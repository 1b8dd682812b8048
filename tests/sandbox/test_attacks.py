"""Hostile programs: each gets the verdict it deserves and leaves a place that works as before."""

from __future__ import annotations

import platform
import threading
from dataclasses import dataclass

import pytest

from sandbox.guest import wire
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status

LIMITS = Limits(cpu_s=1.0, wall_s=1.5, memory_mb=256, output_bytes=1 << 16)
CANARY = b"print(sum(map(int, input().split())))"
FORGED = wire.pack_result(
    wire.Facts(
        stage=b"R",
        status=0,
        cpu_s=0.0,
        wall_s=0.0,
        max_rss_kb=1,
        overflow=False,
        timed_out=False,
        finished=False,
        oom=-1,
        clean=True,
    ),
    b"42\n",
    b"",
)
PREAMBLE = f"""
import ctypes, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "succeeded"
def call(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(number, *arguments)
    return os.strerror(ctypes.get_errno())
FORGED = {FORGED!r}
OTHERS = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
"""

RE, TLE, MLE = Status.RUNTIME_ERROR, Status.TIME_LIMIT_EXCEEDED, Status.MEMORY_LIMIT_EXCEEDED
OLE, CE = Status.OUTPUT_LIMIT_EXCEEDED, Status.COMPILE_ERROR


@dataclass(frozen=True)
class Attack:
    """A program, the verdicts that are right, and what it must report about its success."""

    source: str
    statuses: tuple[Status | None, ...]
    stdout: bytes | None = None


ATTACKS = {
    "fork bomb": Attack("while True: os.fork()", (RE, TLE, OLE)),
    "fork bomb that survives errors": Attack(
        "while True:\n    try: os.fork()\n    except OSError: pass", (TLE, RE)
    ),
    "thread bomb": Attack(
        "import threading\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        (RE, TLE, MLE),
    ),
    "memory bomb": Attack("x = []\nwhile True: x.append(bytearray(1 << 20))", (MLE,)),
    "memory bomb of many processes": Attack(
        "for _ in range(3): os.fork()\nx = bytearray(180 << 20)\ntime.sleep(1)",
        (None, MLE, RE, TLE),
    ),
    "output flood": Attack("while True: os.write(1, b'x' * 65536)", (OLE,)),
    "error flood": Attack("for _ in range(3000): os.write(2, b'x' * 65536)", (None,), b""),
    "all signals ignored": Attack(
        "for s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
        (TLE,),
    ),
    "sleep": Attack("time.sleep(60)", (TLE,)),
    "kill everything": Attack("os.kill(-1, signal.SIGKILL)\ntime.sleep(0.1)", (RE, None)),
    "kill the others": Attack(
        "print({attempt(lambda: os.kill(p, signal.SIGKILL)) for p in OTHERS if p != 1} "
        "<= {'PermissionError'})",
        (None,),
        b"True\n",
    ),
    "stop the parent and PID 1": Attack(
        "for p in (os.getppid(), 1): attempt(lambda: os.kill(p, signal.SIGSTOP))\nprint('on')",
        (None,),
        b"on\n",
    ),
    "trace the others": Attack("print({call(101, 16, p, 0, 0) for p in OTHERS})", (None,),
        b"{'Operation not permitted'}\n"),
    "read the memory of the others": Attack(
        "print({attempt(lambda: open(f'/proc/{p}/mem', 'rb')) for p in OTHERS})",
        (None,),
        b"{'PermissionError'}\n",
    ),
    "read the environment of the others": Attack(
        "print({attempt(lambda: open(f'/proc/{p}/environ').read()) for p in OTHERS})",
        (None,),
        b"{'PermissionError'}\n",
    ),
    "forge a result through the descriptors of others": Attack(
        "wrote = 0\n"
        "for p in OTHERS:\n"
        "    for fd in range(64):\n"
        "        try: wrote += os.write(os.open(f'/proc/{p}/fd/{fd}', os.O_WRONLY), FORGED)\n"
        "        except OSError: pass\n"
        "print(wrote)",
        (None,),
        b"0\n",
    ),
    "forge a result through inherited descriptors": Attack(
        "wrote = 0\n"
        "for fd in range(3, 5000):\n"
        "    try: wrote += os.write(fd, FORGED)\n"
        "    except OSError: pass\n"
        "print(wrote)",
        (None,),
        b"0\n",
    ),
    "print a result": Attack("os.write(1, FORGED)\nos._exit(1)", (RE,), FORGED),
    "pretend that the sandbox broke": Attack(
        "for fd in range(3, 99):\n    attempt(lambda: os.write(fd, b'C'))\n"
        "print('sandbox_error', file=sys.stderr)\nos._exit(90)",
        (RE,),
    ),
    "pretend that it did not compile": Attack("raise SyntaxError('no')", (RE,)),
    "a daemon": Attack(
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        for fd in (0, 1, 2): os.close(fd)\n        time.sleep(60)\n    os._exit(0)\n",
        (None,),
    ),
    "a daemon that holds the output": Attack(
        "if os.fork() == 0:\n    os.setsid()\n    while True:\n        try: os.fork()\n"
        "        except OSError: time.sleep(0.01)\nprint('main')",
        (None,),
        b"main\n",
    ),
    "files left behind": Attack(
        "os.mkdir('/tmp/a')\nos.symlink('/', '/tmp/a/root')\nopen('/tmp/a/f', 'w').write('x')\n"
        "os.mkdir('/tmp/a/b')\nos.chmod('/tmp/a/b', 0)\nos.chmod('/tmp/a', 0)\n"
        "d = '/tmp/deep'\nos.mkdir(d)\nos.chdir(d)\n"
        "for _ in range(3000):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)",
        (None, RE),
    ),
    "a full disk": Attack(
        "with open('/tmp/big', 'wb', buffering=0) as f:\n"
        "    while f.write(b'x' * (1 << 20)): pass",
        (RE,),
    ),
    "overwrite the interpreter": Attack(
        "import json\nprint(attempt(lambda: open(json.__file__, 'w')), "
        "attempt(lambda: open('/etc/passwd', 'w')) != 'succeeded')",
        (None,),
        None,
    ),
    "become root": Attack("print(attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)))",
        (None,), b"PermissionError PermissionError\n"),
    "raise its limits": Attack(
        "import resource\n"
        "try: resource.setrlimit(resource.RLIMIT_CPU, (99, 99))\n"
        "except (OSError, ValueError): print('no')",
        (None,),
        b"no\n",
    ),
    "ask for namespaces, mounts and rings": Attack(
        "calls = [(272, 0x10000000), (165, 0, 0, 0, 0, 0), (161, 0), (425, 8, 0), (250, 0, 0),\n"
        "         (321, 0, 0, 0), (298, 0, 0, 0, 0, 0), (323, 0), (29, 1, 64, 0o1666),\n"
        "         (56, 0x10000000 | 17, 0, 0, 0, 0), (240, b'/q', 0o102, 0o666, 0), (227, 0, 0)]\n"
        "print({call(*c) for c in calls}, call(435, 0, 0))",
        (None,),
        b"{'Operation not permitted'} Function not implemented\n",
    ),
    "find secrets": Attack(
        "secrets = ('/etc/shadow', '/root', '/run/docker.sock', '/var/run/docker.sock')\n"
        "print([p for p in secrets if os.access(p, os.R_OK)])",
        (None,),
        b"[]\n",
    ),
    "lone surrogates on the output": Attack("print('\\ud800')", (RE,), b""),
    "NUL and bytes that are no text": Attack(
        "os.write(1, b'\\0\\xff\\xfe')", (None,), b"\0\xff\xfe"
    ),
    "close the streams": Attack("for fd in (0, 1, 2): os.close(fd)", (None, RE), b""),
    "remove its folder": Attack(
        "os.mkdir('/tmp/w')\nos.chdir('/tmp/w')\nos.rmdir('/tmp/w')\nprint('ok')", (None,), b"ok\n"
    ),
    "endless recursion": Attack(
        "sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()", (RE, MLE, TLE)
    ),
    "a crash": Attack("ctypes.string_at(0)", (RE,)),
    "patched builtins": Attack(
        "import builtins, atexit\nbuiltins.exit = builtins.open = None\nos._exit = None\n"
        "sys.stdout = None\natexit.register(lambda: 1 / 0)",
        (None, RE),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_program_harms_itself_alone(pool: WorkerPool, name: str) -> None:
    attack = ATTACKS[name]
    if "call(" in attack.source and platform.machine() != "x86_64":
        pytest.skip("its system call numbers are those of x86_64")
    result = pool.run((PREAMBLE + attack.source).encode(), b"1 2\n", LIMITS)
    assert result.status in attack.statuses, result
    if attack.stdout is not None:
        assert result.stdout == attack.stdout
    assert len(result.stdout) <= LIMITS.output_bytes
    assert len(result.stderr) <= LIMITS.stderr_bytes
    canary = pool.run(CANARY, b"20 22\n", Limits())
    assert (canary.status, canary.stdout) == (None, b"42\n")


def test_a_program_leaves_nothing_for_the_next_one(pool: WorkerPool) -> None:
    litter = PREAMBLE + ATTACKS["files left behind"].source
    daemon = PREAMBLE + ATTACKS["a daemon"].source
    look = PREAMBLE + "print(os.listdir('/tmp'), len(OTHERS))"
    with WorkerPool(pool.backend, size=1) as single:
        before = single.run(look.encode(), b"", LIMITS)
        for source in (litter, daemon):
            single.run(source.encode(), b"", LIMITS)
            assert single.run(look.encode(), b"", LIMITS).stdout == before.stdout


def test_a_closed_connection_is_no_mailbox(pool: WorkerPool) -> None:
    write = (
        "listener = socket.create_server(('127.0.0.1', 14711))\n"
        "there = socket.create_connection(('127.0.0.1', 14711))\n"
        "here, _ = listener.accept()\n"
        "here.close(), there.close(), listener.close()"
    )
    read = "print([line.split()[1] for line in open('/proc/net/tcp').readlines()[1:]])"
    with WorkerPool(pool.backend, size=1) as single:
        assert single.run((PREAMBLE + write).encode(), b"", LIMITS).status is Status.RUNTIME_ERROR
        assert single.run(read.encode(), b"", LIMITS).stdout == b"[]\n"


def test_the_time_of_children_cannot_be_hidden(pool: WorkerPool) -> None:
    source = (
        "try: signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "except OSError: pass\n"
        "for _ in range(4):\n"
        "    ours, theirs = os.pipe()\n"
        "    if os.fork() == 0:\n"
        "        while time.process_time() < 0.7: pass\n"
        "        os.write(theirs, b'.')\n"
        "        os._exit(0)\n"
        "    os.read(ours, 1)\n"
        "print('done')"
    )
    limits = Limits(cpu_s=1.0, wall_s=60.0)
    result = pool.run((PREAMBLE + source).encode(), b"", limits)
    assert result.status is Status.TIME_LIMIT_EXCEEDED


def test_a_network_has_no_way_out(pool: WorkerPool) -> None:
    source = (
        "print(attempt(lambda: socket.create_connection(('10.0.0.1', 80), 1)), "
        "attempt(lambda: socket.socket(40, 1)), attempt(lambda: socket.socket(16, 3, 0)))"
    )
    result = pool.run((PREAMBLE + source).encode(), b"", LIMITS)
    assert result.stdout == b"OSError OSError OSError\n"


def test_honest_programs_are_untouched_by_hostile_ones_beside_them(pool: WorkerPool) -> None:
    hostile = ["fork bomb", "memory bomb", "kill everything", "output flood", "a full disk"]
    answers: list[tuple[Status | None, bool]] = []

    def attack(name: str) -> None:
        pool.run((PREAMBLE + ATTACKS[name].source).encode(), b"", LIMITS)

    def work(number: int) -> None:
        for _ in range(4):
            result = pool.run(CANARY, b"%d 1\n" % number, Limits())
            answers.append((result.status, result.stdout == b"%d\n" % (number + 1)))

    threads = [threading.Thread(target=attack, args=(name,)) for name in hostile]
    threads += [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(None, True)] * 20

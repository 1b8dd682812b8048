"""Too much of something: processes, memory, time, output, files."""

from __future__ import annotations

from sandbox.base import Guarantee
from sandbox.types import Checker, Limits

from .attack import CE, CROWDED, MLE, OLE, PATIENT, RE, TLE, WA, WAITING, Attack

ATTACKS = {
    "fork bomb": Attack(
        source="while True: os.fork()",
        statuses=(RE, TLE),
        limits=CROWDED,
        needs=Guarantee.PROCESS_LIMIT,
    ),
    "fork bomb: errors ignored": Attack(
        source="while True:\n    try: os.fork()\n    except OSError: pass",
        statuses=(TLE, RE),
        limits=CROWDED,
        needs=Guarantee.PROCESS_LIMIT,
    ),
    "fork bomb: sessions that ignore signals": Attack(
        source="""
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
""",
        statuses=(TLE, RE),
        limits=CROWDED,
        needs=Guarantee.PROCESS_LIMIT,
        slow=True,
    ),
    "thread bomb": Attack(
        source="""
import threading
while True: threading.Thread(target=time.sleep, args=(60,)).start()
""",
        statuses=(RE, TLE, MLE),
        limits=WAITING,
        needs=Guarantee.PROCESS_LIMIT,
    ),
    "memory bomb": Attack(
        source="hoard = []\nwhile True: hoard.append(b'x' * (1 << 20))",
        statuses=(MLE,),
        limits=PATIENT,
    ),
    "memory bomb: eight processes": Attack(
        source="""
for _ in range(3): os.fork()
hoard = b"x" * (120 << 20)
time.sleep(60)
""",
        statuses=(MLE, RE, TLE),
        limits=Limits(cpu_s=10.0, wall_s=8.0, memory_mb=256, output_bytes=1 << 16),
        needs=Guarantee.TOTAL_MEMORY,
        slow=True,
    ),
    "memory bomb: a file without a name": Attack(
        source="""
fd = os.memfd_create("hoard")
while os.write(fd, b"x" * (1 << 20)): pass
""",
        statuses=(RE, MLE, TLE),
    ),
    "memory bomb: full pipes": Attack(
        source="""
hoard = []
while True:
    hoard += os.pipe()
    os.set_blocking(hoard[-1], False)
    try:
        while os.write(hoard[-1], b"x" * 65536): pass
    except BlockingIOError: pass
""",
        statuses=(RE,),
    ),
    "infinite loop": Attack(source="while True: pass", statuses=(TLE,)),
    "sleep": Attack(source="time.sleep(60)", statuses=(TLE,), limits=WAITING),
    "stop itself": Attack(source="os.killpg(0, signal.SIGSTOP)", statuses=(TLE,), limits=WAITING),
    "all signals ignored": Attack(
        source="""
for number in range(1, 65):
    attempt(signal.signal, number, signal.SIG_IGN)
while True: pass
""",
        statuses=(TLE,),
    ),
    "stdout flood": Attack(source="while True: os.write(1, b'x' * 65536)", statuses=(OLE,)),
    "1.1 GB on stderr": Attack(
        source="for _ in range(17600): os.write(2, b'x' * 65536)",
        statuses=(WA,),
        says="",
        limits=PATIENT,
        slow=True,
    ),
    "slow drip of output": Attack(
        source="while True:\n    print('.', flush=True)\n    time.sleep(0.02)",
        statuses=(TLE,),
        limits=WAITING,
    ),
    "a million short lines": Attack(
        source="print('x\\n' * 10 ** 6)",
        statuses=(WA,),
        limits=Limits(cpu_s=2.0, memory_mb=256, output_bytes=4 << 20),
    ),
    "a million short lines: numbers": Attack(
        source="print('0.5\\n' * 10 ** 6)",
        statuses=(WA,),
        limits=Limits(cpu_s=2.0, memory_mb=256, output_bytes=8 << 20),
        checker=Checker(kind="tokens", float_abs=1e-6, float_rel=1e-6),
        slow=True,
    ),
    "a huge number on stdout": Attack(
        source="print('9' * 10 ** 6)",
        statuses=(WA,),
        limits=Limits(cpu_s=2.0, memory_mb=256, output_bytes=4 << 20),
        checker=Checker(kind="tokens", float_abs=1e-6, float_rel=1e-6),
    ),
    "a huge number on stdout: as an exponent": Attack(
        source="print('1e' + '9' * 10 ** 6, '9' * 400 + '.5')",
        statuses=(WA,),
        limits=Limits(cpu_s=2.0, memory_mb=256, output_bytes=4 << 20),
        checker=Checker(kind="tokens", float_abs=1e-6, float_rel=1e-6),
    ),
    "fill the disk": Attack(
        source="""
with open("/tmp/big", "wb", buffering=0) as file:
    while file.write(b"x" * (1 << 20)): pass
""",
        statuses=(RE,),
        needs=Guarantee.TMP_SIZE,
    ),
    "fill the disk: many files at once": Attack(
        source="""
for number in range(60):
    with open(f"/tmp/{number}", "wb", buffering=0) as file: file.write(b"x" * (1 << 20))
""",
        statuses=(RE,),
        needs=Guarantee.TMP_SIZE,
    ),
    "inode bomb": Attack(
        source="for number in range(10 ** 6): open(f'/tmp/{number}', 'w').close()",
        statuses=(RE,),
        limits=PATIENT,
        needs=Guarantee.TMP_FILES,
    ),
    "recursion without end": Attack(
        source="sys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()", statuses=(RE, MLE, TLE)
    ),
    "recursion without end: in C": Attack(
        source="""
sys.setrecursionlimit(10 ** 9)
nested = []
for _ in range(10 ** 6): nested = [nested]
repr(nested)
""",
        statuses=(RE, MLE, TLE),
        slow=True,
    ),
    "parser bomb": Attack(source="(" * 100_000, statuses=(CE,), whole=True),
    "parser bomb: a constant without end": Attack(
        source="x = 9 ** 9 ** 9",
        statuses=(CE, RE, TLE),
        whole=True,
        limits=WAITING,
        slow=True,
    ),
    "parser bomb: memory": Attack(
        source="x = [" + "[0] * 10 ** 5, " * 60_000 + "]",
        statuses=(CE, RE, MLE, TLE),
        whole=True,
        slow=True,
    ),
    "segfault": Attack(source="libc()[0].string_at(0)", statuses=(RE,)),
    "patched clocks": Attack(
        source="""
for name in ("time", "monotonic", "perf_counter", "process_time", "sleep"):
    setattr(time, name, lambda *_: 0.0)
while True: pass
""",
        statuses=(TLE,),
    ),
    "raise its limits": Attack(
        source="""
for name in dir(resource):
    if name.startswith("RLIMIT_"):
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        if hard >= 0:
            assert attempt(resource.setrlimit, kind, (hard, hard + 1)) != "succeeded", name
            assert attempt(resource.prlimit, 0, kind, (hard, hard + 1)) != "succeeded", name
print("not allowed")
""",
        statuses=(WA,),
        says="not allowed\n",
    ),
    "set the clock": Attack(
        source="print(attempt(time.clock_settime, time.CLOCK_REALTIME, 0))",
        statuses=(WA,),
        says="PermissionError\n",
    ),
    "time of children hidden": Attack(
        source="""
attempt(signal.signal, signal.SIGCHLD, signal.SIG_IGN)
for _ in range(4):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        while time.process_time() < 0.25: pass
        os.write(theirs, b".")
        os._exit(0)
    os.read(ours, 1)
print("done")
""",
        statuses=(TLE,),
    ),
    "time of children hidden: of siblings": Attack(
        source="""
CLONE_PARENT = 0x8000
for _ in range(4):
    ours, theirs = os.pipe()
    pid = libc()[1].syscall(56, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        while time.process_time() < 0.25: pass
        os.write(theirs, b".")
        os._exit(0)
    if pid > 0: os.read(ours, 1)
print(pid)
""",
        statuses=(WA,),
        says="-1\n",
    ),
    "time of children hidden: never waited for": Attack(
        source="""
for _ in range(4):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        while time.process_time() < 0.25: pass
        os.write(theirs, b".")
        while True: pass
    os.read(ours, 1)
print("done")
""",
        statuses=(TLE,),
        slow=True,
    ),
    "time of children hidden: in daemons": Attack(
        source="""
def work(report):
    while time.process_time() < 0.25: pass
    report()
for _ in range(4): daemon(work)
print("done")
""",
        statuses=(TLE,),
    ),
    "time of children hidden: in threads": Attack(
        source="""
import threading
def work():
    while True: pass
for _ in range(4): threading.Thread(target=work, daemon=True).start()
while time.process_time() < 0.8: time.sleep(0.01)
print("done")
""",
        statuses=(TLE,),
        slow=True,
    ),
    "read stdin for ever": Attack(source="while True: sys.stdin.read()", statuses=(TLE,)),
    "alarm clocks": Attack(
        source="""
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
signal.setitimer(signal.ITIMER_PROF, 60)
signal.pause()
""",
        statuses=(RE,),
        says="",
    ),
    "locked memory": Attack(
        source="""
ctypes, library = libc()
print(library.mlockall(3))
hoard = b"x" * (220 << 20)
""",
        statuses=(MLE, WA, RE),
        limits=PATIENT,
        slow=True,
    ),
}

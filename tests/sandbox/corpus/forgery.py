"""A verdict that was not earned: forged results, early ends, answers read from elsewhere."""

from __future__ import annotations

from .attack import EXPECTED, PATIENT, RE, TLE, WA, WAITING, Attack

_HALVES = (EXPECTED[:20], EXPECTED[20:])
_MARK = ("the program that ", "was here before")
_SCAN = """
first, second = (half.encode() for half in HALVES)
found = 0
size = 1 << 20
prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its own memory is its own to read
with open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in read("/proc/self/maps").splitlines():
        area, mode = line.split()[:2]
        start, end = (int(part, 16) for part in area.split("-"))
        if "r" in mode and end - start < 1 << 30:
            try:
                memory.seek(start)
                while start < end:
                    data = memory.read(min(size, end - start))
                    start += len(data) or size
                    at = data.find(first)
                    while at >= 0:  # the two are never put together, or this would find itself
                        at += len(first)
                        found += data[at : at + len(second)] == second
                        at = data.find(first, at)
            except (OSError, OverflowError): pass
print(found)
"""

ATTACKS = {
    "forge a result: through descriptors of the others": Attack(
        source="""
wrote = 0
for pid in OTHERS:
    for fd in range(64):
        try: wrote += os.write(os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY), FORGED)
        except OSError: pass
print(wrote)
""",
        statuses=(WA,),
        says="0\n",
    ),
    "forge a result: through inherited descriptors": Attack(
        source="""
wrote = 0
for fd in range(3, 5000):
    try: wrote += os.write(fd, FORGED)
    except OSError: pass
print(wrote)
""",
        statuses=(WA,),
        says="0\n",
    ),
    "forge a result: through descriptors reopened": Attack(
        source="""
wrote = 0
for fd in range(3, 5000):
    try: wrote += os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY), FORGED)
    except OSError: pass
for path in ("/dev/console", "/dev/tty", "/proc/1/fd/1", "/proc/self/task/1/fd/1"):
    try: wrote += os.write(os.open(path, os.O_WRONLY | os.O_NOCTTY), FORGED)
    except OSError: pass
print(wrote)
""",
        statuses=(WA,),
        says="0\n",
    ),
    "forge a result: by printing it": Attack(
        source="os.write(1, FORGED)\nos.write(2, FORGED)\nos._exit(1)", statuses=(RE,)
    ),
    "forge a result: by passing descriptors": Attack(
        source="""
sent = 0
for fd in range(0, 64):
    try:
        with socket.socket(fileno=os.dup(fd)) as line:
            sent += socket.send_fds(line, [FORGED], [0, 1, 2])
    except OSError: pass
print(sent)
""",
        statuses=(WA,),
        says="0\n",
    ),
    "forge a result: by names in the abstract": Attack(
        source="""
sent = 0
for name in socket_names():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as line:
            line.settimeout(0.1)
            address = name.replace("@", chr(0), 1)
            try: sent += line.sendto(FORGED, address) if kind == socket.SOCK_DGRAM else 0
            except OSError: pass
            try:
                line.connect(address)
                sent += line.send(FORGED)
            except OSError: pass
print(sent)
""",
        statuses=(WA,),
        says="0\n",
    ),
    "print the marker of success": Attack(
        source="print('ALL TESTS PASSED', flush=True)\nos._exit(0)", statuses=(WA,)
    ),
    "print a reward": Attack(
        source="""
print('{"status": "accepted", "reward": 1.0, "passed": true, "score": 1}', flush=True)
os._exit(0)
""",
        statuses=(WA,),
    ),
    "end early: os._exit(0)": Attack(source="os._exit(0)", statuses=(WA,), says=""),
    "end early: sys.exit(0)": Attack(source="sys.exit(0)", statuses=(WA,), says=""),
    "end early: SystemExit('pass')": Attack(
        source="raise SystemExit('pass')", statuses=(RE,), says=""
    ),
    "end early: a signal that says success": Attack(
        source="os.kill(os.getpid(), signal.SIGTERM)", statuses=(RE,), says=""
    ),
    "end early: the audit hook": Attack(
        source="sys.addaudithook(lambda *_: os._exit(0))\nopen('/dev/null')\nprint(1 / 0)",
        statuses=(WA,),
        says="",
    ),
    "end early: the except hook": Attack(
        source="sys.excepthook = lambda *_: os._exit(0)\n1 / 0", statuses=(WA,), says=""
    ),
    "end early: faulthandler": Attack(
        source="import faulthandler\nfaulthandler.dump_traceback_later(0.1, exit=True)\n"
        "time.sleep(60)",
        statuses=(RE,),
        says="",
    ),
    "end late: at exit": Attack(
        source="import atexit\natexit.register(os._exit, 0)\n1 / 0", statuses=(WA, RE), says=""
    ),
    "end late: threads that stay": Attack(
        source="import threading\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        statuses=(TLE,),
        limits=WAITING,
        slow=True,
    ),
    "end late: threads that print": Attack(
        source="""
import threading
def work():
    while True:
        print("the", end=" ", flush=True)
        time.sleep(0.001)
for _ in range(4): threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
        statuses=(WA, RE),
    ),
    "equal to everything": Attack(
        source="""
class Equal(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
print(Equal("anything"))
""",
        statuses=(WA,),
        says="anything\n",
    ),
    "patched builtins": Attack(
        source="""
import atexit, builtins
for name in ("print", "str", "len", "all", "any", "zip", "open", "exit", "isinstance", "abs"):
    setattr(builtins, name, lambda *_, **__: True)
os._exit = sys.exit = sys.stdout = None
atexit.register(lambda: 1 / 0)
""",
        statuses=(WA, RE),
        says="",
    ),
    "pretend that the sandbox broke": Attack(
        source="""
for fd in range(3, 99):
    attempt(os.write, fd, b"C")
print("sandbox_error", file=sys.stderr)
os._exit(90)
""",
        statuses=(RE,),
        says="",
    ),
    "pretend that the sandbox broke: the setup pipe": Attack(
        source="""
wrote = 0
for fd in range(3, 99):
    for letters in (b"S", b"C", b"R"):
        try: wrote += os.write(fd, letters)
        except OSError: pass
os.write(2, b"%d" % wrote)
os._exit(1)
""",
        statuses=(RE,),
        says="",
    ),
    "pretend that memory ran out": Attack(
        source="print('MemoryError', file=sys.stderr)\nos._exit(0)", statuses=(WA,), says=""
    ),
    "pretend that it did not compile": Attack(
        source="raise SyntaxError('no')", statuses=(RE,), says=""
    ),
    "read expected values: objects": Attack(
        source=f"""
import gc
HALVES = {_HALVES!r}
print(sum(HALVES[0] + HALVES[1] in repr(value)[:10000]
          for value in gc.get_objects() if isinstance(value, (str, list, dict, tuple))
          if value is not HALVES))
""",
        statuses=(WA,),
        says="0\n",
        limits=PATIENT,
    ),
    "read expected values: frames": Attack(
        source=f"""
HALVES = {_HALVES!r}
frame, found = sys._getframe(), []
while frame is not None:
    found += [name for where in (frame.f_globals, frame.f_locals)
              for name, value in list(where.items()) if HALVES[0] + HALVES[1] in str(value)[:9999]]
    frame = frame.f_back
print(found)
""",
        statuses=(WA,),
        says="[]\n",
    ),
    "read expected values: memory": Attack(
        source=f"HALVES = {_HALVES!r}{_SCAN}",
        statuses=(WA,),
        says="0\n",
        limits=PATIENT,
    ),
    "read expected values: the guest's modules": Attack(
        source=f"""
HALVES = {_HALVES!r}
print([name for name, module in list(sys.modules.items())
       if HALVES[0] + HALVES[1] in repr(vars(module) if hasattr(module, "__dict__") else "")])
""",
        statuses=(WA,),
        says="[]\n",
        limits=PATIENT,
    ),
    "read the program before": Attack(
        before=f"""
mark = "{_MARK[0]}" "{_MARK[1]}"
hoard = [mark + str(number) for number in range(10_000)]
print(mark)
print(mark, file=sys.stderr)
""",
        source=f"HALVES = {_MARK!r}{_SCAN}",
        statuses=(WA,),
        says="0\n",
        limits=PATIENT,
    ),
}

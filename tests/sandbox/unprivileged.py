"""Run by test_bubblewrap as a user without privileges; prints what came of its programs."""

import dataclasses
import json
import os

from sandbox.bubblewrap import BubblewrapBackend
from sandbox.guest import wire
from sandbox.pool import WorkerPool
from sandbox.types import Limits

FORGED = wire.pack_result(
    wire.Facts(b"R", 0, 0.0, 0.0, 1, False, False, False, False, True), b"42\n", b""
)
PROGRAMS = {
    "sum": "print(sum(map(int, input().split())))",
    "compile": "print(",
    "raise": "1 / 0",
    "exit": "raise SystemExit(7)",
    "crash": "import ctypes\nctypes.string_at(0)",
    "loop": "while True: pass",
    "sleep": "import time\ntime.sleep(60)",
    "memory": "x = bytearray(1 << 30)",
    "flood": "while True: print('x' * 999)",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "kill": "import os, signal\nos.kill(1, 9)\nos.kill(1, signal.SIGSTOP)\nprint('on')",
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nprint('parent')"
    ),
    "forge": f"""
import os
wrote = 0
for process in os.listdir('/proc'):
    if process.isdigit() and int(process) != os.getpid():
        for number in range(64):
            try:
                fd = os.open(f'/proc/{{process}}/fd/{{number}}', os.O_WRONLY)
                wrote += os.write(fd, {FORGED!r} + b'SR')
            except OSError: pass
for number in range(3, 4096):
    try: wrote += os.write(number, {FORGED!r})
    except OSError: pass
print(wrote, flush=True)
os._exit(1)
""",
    "look": """
import ctypes, os
try: open('/proc/1/mem', 'rb')
except OSError as error: print(type(error).__name__, end=' ')
print(ctypes.CDLL(None).ptrace(16, 1, 0, 0), sorted(os.listdir('/')), os.listdir('/tmp'))
open('/tmp/left', 'w').write('x')
""",
}
ECHO = b"import os\nwhile data := os.read(3, 999): os.write(3, data.upper())"
LIMITS = Limits(cpu_s=1.0, wall_s=10.0, output_bytes=10_000)
WALL_S = {"sleep": 0.5, "fork bomb": 1.0}


def main() -> None:
    """Print a JSON object: what each program did, by name."""
    assert os.geteuid() != 0
    found: dict[str, dict[str, object]] = {}
    with WorkerPool(BubblewrapBackend(), size=2) as pool:
        for name, source in [*PROGRAMS.items(), ("look again", PROGRAMS["look"])]:
            limits = dataclasses.replace(LIMITS, wall_s=WALL_S.get(name, LIMITS.wall_s))
            execution = pool.run(source.encode(), b"20 22\n", limits)
            texts = {"stdout": execution.stdout.decode(), "stderr": execution.stderr.decode()}
            found[name] = {**dataclasses.asdict(execution), **texts}
        with pool.session(ECHO, LIMITS) as session:
            session.send(b"abc")
            said = (session.receive(10.0) or b"").decode()
            found["session"] = {"stdout": said, "status": session.finish().status}
        found["capabilities"] = {"missing": pool.capabilities.missing}
    print(json.dumps(found))


main()

"""Programs that do nothing wrong, in the ways that a strict place is likely to break."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.types import Status

from .attack import AC, CE, RE, TLE, WA

STDIN = "20 22\n"
EXPECTED = "42\n"


@dataclass(frozen=True, kw_only=True)
class Honest:
    """A program that is asked for the sum of two numbers, and what is right to say of it."""

    source: str
    status: Status = AC


PROGRAMS = {
    "plain": Honest(source="print(sum(map(int, input().split())))"),
    "reading descriptors": Honest(
        source="import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split())))"
    ),
    "opening /dev/stdin and /dev/stdout": Honest(
        source="print(sum(map(int, open('/dev/stdin').read().split())), "
        "file=open('/dev/stdout', 'w'))"
    ),
    "opening 0 and seeking": Honest(
        source="text = open(0)\ntext.read()\ntext.seek(0)\n"
        "print(sum(map(int, text.read().split())))"
    ),
    "buffers": Honest(
        source="import sys\nsys.stdout.buffer.write(b'%d\\n' % "
        "sum(map(int, sys.stdin.buffer.read().split())))"
    ),
    "threads": Honest(
        source="""
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(4) as threads:
    print(sum(threads.map(int, input().split())))
"""
    ),
    "a child process": Honest(
        source="""
import os
if child := os.fork(): os.waitpid(child, 0)
else: print(sum(map(int, input().split())))
"""
    ),
    "multiprocessing": Honest(
        source="""
import multiprocessing
def work(line, text): line.send(sum(map(int, text.split())))
here, there = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=work, args=(there, input()))
process.start()
print(here.recv())
process.join()
"""
    ),
    "another interpreter": Honest(
        source="""
import subprocess, sys
code = "print(sum(map(int, input().split())))"
print(subprocess.run([sys.executable, "-c", code], input=input(), text=True,
                     capture_output=True).stdout, end="")
"""
    ),
    "files": Honest(
        source="""
import tempfile
with tempfile.TemporaryFile("w+") as file:
    file.write(input())
    file.seek(0)
    print(sum(map(int, file.read().split())))
"""
    ),
    "a database": Honest(
        source="""
import sqlite3
a, b = input().split()
print(sqlite3.connect(":memory:").execute("select ? + ?", (int(a), int(b))).fetchone()[0])
"""
    ),
    "asyncio": Honest(
        source="""
import asyncio
async def main(): print(sum(map(int, (await asyncio.to_thread(input)).split())))
asyncio.run(main())
"""
    ),
    "deep recursion": Honest(
        source="""
import sys, threading
sys.setrecursionlimit(10 ** 6)
def down(n): return 0 if n == 0 else 1 + down(n - 1)
down(20_000)
print(sum(map(int, input().split())))
"""
    ),
    "a handler for SIGCHLD's neighbours": Honest(
        source="""
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, lambda *_: None)
print(sum(map(int, input().split())))
"""
    ),
    "a big number": Honest(source="len(str(7 ** 20_000))\nprint(sum(map(int, input().split())))"),
    "half the time limit": Honest(
        source="import time\nwhile time.process_time() < 0.5: pass\n"
        "print(sum(map(int, input().split())))"
    ),
    "some sleep": Honest(
        source="import time\ntime.sleep(0.3)\nprint(sum(map(int, input().split())))"
    ),
    "some memory": Honest(source="x = b'x' * (60 << 20)\nprint(sum(map(int, input().split())))"),
    "a wrong answer": Honest(source="print(41)", status=WA),
    "no answer": Honest(source="", status=WA),
    "an exception": Honest(source="print(1 / 0)", status=RE),
    "a missing quote": Honest(source="print('42)", status=CE),
    "a slow answer": Honest(source="while True: pass", status=TLE),
}

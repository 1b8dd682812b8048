"""What a guest does with real programs; the same on every backend."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sandbox.base import Guarantee
from sandbox.pool import WorkerPool
from sandbox.types import Limits, Status
from sandbox.worker import Execution, WorkerFault

LIMITS = Limits(cpu_s=2.0)


def run(pool: WorkerPool, source: str, stdin: bytes = b"", **limits: object) -> Execution:
    return pool.run(source.encode(), stdin, Limits(**{"cpu_s": 2.0, **limits}))  # type: ignore[arg-type]


def test_output_of_a_program_that_ends_well_counts(pool: WorkerPool) -> None:
    result = run(pool, "print(sum(map(int, input().split())))", b"1 2 39\n")
    assert (result.status, result.exit_code, result.signal) == (None, 0, None)
    assert result.stdout == b"42\n"
    assert 0 < result.cpu_s < 0.5
    assert 0 < result.wall_s < 5
    assert result.stderr == b""


@pytest.mark.parametrize(
    "source",
    [
        b"print(1",
        b"\0",
        b"print('a\0b')",
        b"print('\xff')",
        "print('\ud800')".encode("utf-8", "surrogatepass"),
        b"(" * 100_000,
        b"# coding: no-such-codec\n",
        b"return 1",
        b"\xff\xfe\x00",
    ],
)
def test_source_that_python_refuses_is_a_compile_error(pool: WorkerPool, source: bytes) -> None:
    result = pool.run(source, b"", LIMITS)
    assert result.status is Status.COMPILE_ERROR
    assert b"Error" in result.stderr


def test_a_traceback_shows_the_program_and_nothing_of_the_guest(pool: WorkerPool) -> None:
    result = run(pool, "def f(x):\n    return 1 // x\nprint('before')\nf(0)\n")
    assert result.status is Status.RUNTIME_ERROR
    assert result.exit_code == 1
    assert result.stdout == b"before\n"
    assert result.stderr.decode().splitlines()[:5] == [
        "Traceback (most recent call last):",
        '  File "solution.py", line 4, in <module>',
        "    f(0)",
        '  File "solution.py", line 2, in f',
        "    return 1 // x",
    ]
    assert b"guest" not in result.stderr


@pytest.mark.parametrize(
    ("statement", "code", "stderr"),
    [
        ("import sys; sys.exit(3)", 3, b""),
        ("raise SystemExit('pass')", 1, b"pass\n"),
        ("exit(4)", 4, b""),
        ("import sys; sys.exit(256)", 0, b""),
        ("quit()", 0, b""),
        ("import os; os._exit(9)", 9, b""),
    ],
)
def test_exit_codes_are_those_of_the_interpreter(
    pool: WorkerPool, statement: str, code: int, stderr: bytes
) -> None:
    result = run(pool, statement)
    assert (result.exit_code, result.stderr) == (code, stderr)
    assert result.status is (Status.RUNTIME_ERROR if code else None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if __name__ == '__main__':\n    print(__file__)", b"solution.py\n"),
        ("import sys; print(sys.stdin.buffer.read())", b"b'a b\\n'\n"),
        ("print(open(0).read(), end='')", b"a b\n"),
        ("print(open('/dev/stdin').read(), end='')", b"a b\n"),
        ("open('/dev/stdout', 'w').write('x')", b"x"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", b"\xff"),
        ("print('é')", b"\xc3\xa9\n"),
        ("print(int('7' * 5000) % 10, len(str(10 ** 9999)))", b"7 10000\n"),
        ("import os; os.write(1, os.read(0, 99))", b"a b\n"),
        ("import sys; print(sys.argv)", b"['solution.py']\n"),
        ("import threading\nthreading.Thread(target=lambda: print('late')).start()", b"late\n"),
        ("import atexit\natexit.register(print, 'bye')", b"bye\n"),
        ("import os\nout = os.fdopen(1, 'w')\nout.write('unflushed')", b"unflushed"),
        ("import sys, io\nsys.stdout = io.StringIO()\nprint('lost')", b""),
        ("import os\nprint('lost')\nos._exit(0)", b""),
        ("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))", None),
        ("import subprocess, os\nprint(os.getcwd(), os.listdir('.'))", b"/tmp []\n"),
        ("open('a.txt', 'w').write('x')\nprint(open('a.txt').read())", b"x\n"),
        ("import random, queue, decimal, fractions, datetime; print('ok')", b"ok\n"),
        ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\n"
         "print(f(50000))", b"50000\n"),
    ],
)  # fmt: skip
def test_programs_find_what_honest_programs_rely_on(
    pool: WorkerPool, source: str, expected: bytes | None
) -> None:
    result = run(pool, source, b"a b\n")
    assert (result.status, result.stderr) == (None, b"")
    if expected is not None:
        assert result.stdout == expected


def test_each_run_of_a_program_starts_afresh(pool: WorkerPool) -> None:
    source = b"import random, sys\nx = globals().setdefault('x', [])\nx.append(input())\nprint(x)"
    runs = pool.run_many(source, [b"a", b"b", b"c"], LIMITS)
    assert [run.stdout for run in runs] == [b"['a']\n", b"['b']\n", b"['c']\n"]


def test_chance_differs_between_the_runs_of_a_program(pool: WorkerPool) -> None:
    runs = pool.run_many(b"import random\nprint(random.random())", [b"", b""], LIMITS)
    assert runs[0].stdout != runs[1].stdout


def test_a_program_that_breaks_the_compiler_is_a_compile_error_each_time(pool: WorkerPool) -> None:
    runs = pool.run_many(b"f(" * 50_000, [b"", b""], LIMITS)
    assert [run.status for run in runs] == [Status.COMPILE_ERROR] * 2


def test_a_program_may_ask_for_more_stack(pool: WorkerPool) -> None:
    source = (
        "import resource\nno = resource.RLIM_INFINITY\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (no, no))\nprint('deep')"
    )
    assert run(pool, source).stdout == b"deep\n"


@pytest.mark.parametrize(
    "ending",
    [
        "import io\nout = io.TextIOWrapper(sys.stdout.buffer)\nout.write('x')",
        "out = open(1, 'w', closefd=False)\nx = [out]\nout.write('x')",
        "class A:\n    def __del__(self): print('x', end='')\na = A()",
        "def g():\n    try: yield 1\n    finally: print('x', end='')\ni = g()\nnext(i)",
        "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'x', end='')",
        "exec(\"out = open(1, 'w', closefd=False); out.write('x')\")",
        "sys.stdout.write('x')",
        "import io\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint(end='x')",
        "import os\nclass A:\n    def __del__(self): print(helper(), end='')\n"
        "def helper(): return os.path.join('', 'x')\na = A()",
        "class Words:\n    kept = ''\n    def write(self, text): self.kept += text\n"
        "    def flush(self): sys.__stdout__.write(self.kept)\n"
        "sys.stdout = Words()\nprint(end='x')",
        "import os\nfrom io import BytesIO, IOBase\n"
        "class Fast(IOBase):\n    def __init__(self, file):\n        self.fd = file.fileno()\n"
        "        self.buffer = BytesIO()\n        self.write = self.buffer.write\n"
        "    def flush(self):\n        os.write(self.fd, self.buffer.getvalue())\n"
        "        self.buffer.truncate(0), self.buffer.seek(0)\n"
        "class Wrapper(IOBase):\n    def __init__(self, file):\n        self.buffer = Fast(file)\n"
        "        self.flush = self.buffer.flush\n"
        "        self.write = lambda text: self.buffer.write(text.encode())\n"
        "sys.stdout = Wrapper(sys.stdout)\nprint(end='x')",
        "sys.stderr = sys.stdout\nprint('x', end='', file=sys.stderr)",
    ],
)
def test_what_python_does_at_exit_is_done(pool: WorkerPool, ending: str) -> None:
    result = run(pool, "import sys\n" + ending)
    assert (result.status, result.stdout, result.stderr) == (None, b"x", b"")


def test_a_program_that_replaces_excepthook_still_fails(pool: WorkerPool) -> None:
    result = run(pool, "import sys\nsys.excepthook = lambda *a: print('hooked')\n1 / 0")
    assert (result.status, result.stdout) == (Status.RUNTIME_ERROR, b"hooked\n")


def test_an_endless_loop_exceeds_the_time_limit_by_cpu_time(pool: WorkerPool) -> None:
    result = run(pool, "while True: pass", cpu_s=1.0)
    assert result.status is Status.TIME_LIMIT_EXCEEDED
    assert 1.0 < result.cpu_s < 2.5


def test_a_fraction_of_a_second_is_an_exact_limit(pool: WorkerPool) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass\nprint('done')"
    result = run(pool, burn, cpu_s=0.3)
    assert result.status is Status.TIME_LIMIT_EXCEEDED
    assert run(pool, burn, cpu_s=0.9).status is None


def test_a_sleeping_program_exceeds_the_time_limit_by_the_clock(pool: WorkerPool) -> None:
    result = run(pool, "import time\ntime.sleep(60)", wall_s=0.5)
    assert result.status is Status.TIME_LIMIT_EXCEEDED
    assert 0.4 < result.wall_s < 5
    assert result.cpu_s < 0.3


@pytest.mark.slow
def test_waiting_for_a_busy_processor_is_not_sleeping(pool: WorkerPool) -> None:
    source = (
        b"import os, time\nos.sched_setaffinity(0, {int(input())})\n"
        b"while time.process_time() < 0.5: pass\nprint('done')"
    )
    core = min(os.sched_getaffinity(0))
    burner = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    burners = [subprocess.Popen([sys.executable, "-S", "-c", burner]) for _ in range(5)]
    try:
        result = pool.run(source, b"%d\n" % core, Limits(cpu_s=5.0, wall_s=1.6))
    finally:
        for burner_process in burners:
            burner_process.kill()
            burner_process.wait()
    assert (result.status, result.stdout) == (None, b"done\n")


def test_time_of_child_processes_counts(pool: WorkerPool) -> None:
    source = (
        "import os, time\nif os.fork():\n    os.wait()\nelse:\n"
        "    while time.process_time() < 0.5: pass\n"
    )
    assert run(pool, source, cpu_s=0.3).status is Status.TIME_LIMIT_EXCEEDED


def test_a_large_allocation_exceeds_the_memory_limit(pool: WorkerPool) -> None:
    result = run(pool, "x = bytearray(600 << 20)", memory_mb=256)
    assert result.status is Status.MEMORY_LIMIT_EXCEEDED
    assert run(pool, "x = bytearray(100 << 20)", memory_mb=256).status is None


def test_too_much_output_is_cut_and_exceeds_the_limit(pool: WorkerPool) -> None:
    result = run(pool, "while True: print('x' * 999)", output_bytes=5000)
    assert result.status is Status.OUTPUT_LIMIT_EXCEEDED
    assert len(result.stdout) == 5000
    assert run(pool, "print('x' * 4999)", output_bytes=5000).status is None


def test_too_much_output_of_a_program_that_has_ended_exceeds_the_limit_too(
    pool: WorkerPool,
) -> None:
    source = b"import os\nos.write(1, b'x' * 50_000)\nos._exit(0)"
    runs = pool.run_many(source, [b""] * 30, Limits(output_bytes=10))
    assert {run.status for run in runs} == {Status.OUTPUT_LIMIT_EXCEEDED}


def test_the_tail_of_standard_error_is_kept(pool: WorkerPool) -> None:
    result = run(pool, "import sys\nsys.stderr.write('a' * 9999 + 'end')", stderr_bytes=10)
    assert (result.status, result.stderr) == (None, b"aaaaaaaend")


def test_death_by_a_signal_is_a_runtime_error(pool: WorkerPool) -> None:
    result = run(pool, "import os\nos.abort()")
    assert (result.status, result.signal, result.exit_code) == (Status.RUNTIME_ERROR, 6, None)


def test_large_input_need_not_be_read(pool: WorkerPool) -> None:
    stdin = b"0123456789\n" * 500_000
    assert run(pool, "print('no')", stdin).stdout == b"no\n"
    assert run(pool, "print(len(open(0).read()))", stdin).stdout == b"5500000\n"


def test_output_of_descendants_is_awaited_only_briefly(pool: WorkerPool) -> None:
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nprint('parent')"
    result = run(pool, source)
    assert (result.status, result.stdout) == (None, b"parent\n")
    assert result.wall_s < 2


def test_hashes_do_not_depend_on_the_worker(pool: WorkerPool) -> None:
    with WorkerPool(pool.backend, size=1) as other:
        first, second = (run(place, "print(hash('mars'))").stdout for place in (pool, other))
    assert first == second


def test_a_session_carries_bytes_both_ways(pool: WorkerPool) -> None:
    echo = b"import os\nwhile data := os.read(3, 65536): os.write(3, data.upper())\nprint('end')"
    with pool.session(echo, LIMITS) as session:
        session.send(b"abc")
        assert session.receive(10.0) == b"ABC"
        result = session.finish()
    assert (result.status, result.stdout) == (None, b"end\n")


def test_a_session_with_much_to_say_on_both_sides_does_not_lock_up(pool: WorkerPool) -> None:
    source = b"import os\nfor _ in range(2000): os.write(3, b'x' * 1000)\nos.read(3, 1)"
    with pool.session(source, LIMITS) as session:
        session.send(b"y" * 2_000_000)
        received = 0
        while received < 2_000_000:
            received += len(session.receive(10.0) or b"")
    assert received == 2_000_000


def test_a_session_says_when_the_program_has_ended(pool: WorkerPool) -> None:
    with pool.session(b"import os\nos.write(3, b'last words')\n1 / 0", LIMITS) as session:
        assert session.receive(10.0) == b"last words"
        assert session.receive(10.0) is None
        session.send(b"too late")
        result = session.finish()
    assert result.status is Status.RUNTIME_ERROR


def test_a_silent_session_times_out_and_can_be_finished(pool: WorkerPool) -> None:
    with pool.session(b"import time\ntime.sleep(60)", LIMITS) as session:
        with pytest.raises(TimeoutError):
            session.receive(0.1)
        result = session.finish()
    assert (result.status, result.signal) == (None, 9)


def test_a_session_is_subject_to_the_cpu_limit(pool: WorkerPool) -> None:
    with pool.session(b"while True: pass", Limits(cpu_s=1.0)) as session:
        assert session.receive(20.0) is None
        assert session.finish().status is Status.TIME_LIMIT_EXCEEDED


def test_memory_beyond_the_workers_own_is_a_mistake_of_the_caller(pool: WorkerPool) -> None:
    if Guarantee.TOTAL_MEMORY in pool.capabilities.missing:
        pytest.skip("nothing limits a worker's memory here")
    with pytest.raises(ValueError, match="give the backend more: memory_mb="):
        run(pool, "pass", memory_mb=100_000)


def test_a_worker_refuses_after_it_has_been_closed(pool: WorkerPool) -> None:
    worker = pool.backend.start_worker()
    assert worker.usable
    worker.close()
    worker.close()
    with pytest.raises(WorkerFault):
        worker.run(b"print(1)", b"", LIMITS)


def test_the_traceback_of_a_deep_recursion_is_not_charged_as_time(pool: WorkerPool) -> None:
    source = (
        "import sys\nsys.setrecursionlimit(100_000)\ndef f(n):\n    return f(n + 1) + 1\nf(0)\n"
    )
    result = run(pool, source, cpu_s=1.0)
    assert result.status is Status.RUNTIME_ERROR
    assert result.stderr.endswith(b"RecursionError: maximum recursion depth exceeded\n")

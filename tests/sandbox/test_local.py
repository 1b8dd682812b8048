"""The backend for trusted programs: facts about runs, limits, and the channel."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sandbox.local import LocalBackend, LocalWorker
from sandbox.types import Limits, Status
from sandbox.worker import Execution

FAST = Limits(cpu_s=1, wall_s=5, output_bytes=10_000)


@pytest.fixture
def worker() -> LocalWorker:
    return LocalBackend().start_worker()


def run(worker: LocalWorker, source: str, stdin: str = "", limits: Limits = FAST) -> Execution:
    return worker.run(source.encode(), stdin.encode(), limits)


def test_the_backend_says_that_it_isolates_nothing() -> None:
    assert LocalBackend().capabilities.isolated is False
    assert len(LocalBackend().fingerprint) == 16


def test_a_program_that_ends_by_itself_has_no_status(worker: LocalWorker) -> None:
    done = run(worker, "print(sum(map(int, input().split())))", "1 2 3\n")
    assert (done.status, done.exit_code, done.stdout) == (None, 0, b"6\n")
    assert 0 < done.cpu_s < 1
    assert done.max_rss_kb > 1000


def test_exit_and_quit_exist_and_end_a_program_well(worker: LocalWorker) -> None:
    assert run(worker, "exit()").status is None
    assert run(worker, "quit(0)").status is None


def test_a_main_guard_runs(worker: LocalWorker) -> None:
    assert run(worker, "if __name__ == '__main__': print(__name__)").stdout == b"__main__\n"


def test_standard_input_is_a_real_file(worker: LocalWorker) -> None:
    source = "import sys; print(len(sys.stdin.buffer.read())); sys.stdin.seek(0); print(input())"
    assert run(worker, source, "ab\ncd").stdout == b"5\nab\n"


@pytest.mark.parametrize("source", ["print(", "a\x00b", "(" * 5000, "\ud800"])
def test_what_does_not_compile_is_a_compile_error(worker: LocalWorker, source: str) -> None:
    done = worker.run(source.encode("utf-8", "surrogatepass"), b"", FAST)
    assert done.status is Status.COMPILE_ERROR
    assert b"Error" in done.stderr


def test_an_exception_is_a_runtime_error_with_the_programs_own_frames(worker: LocalWorker) -> None:
    done = run(worker, "def f():\n    return 1 / 0\nf()")
    assert (done.status, done.exit_code) == (Status.RUNTIME_ERROR, 1)
    assert b'File "solution.py", line 2, in f' in done.stderr
    assert b"ZeroDivisionError" in done.stderr
    assert b"<string>" not in done.stderr


def test_a_signal_is_a_runtime_error(worker: LocalWorker) -> None:
    done = run(worker, "import os; os.kill(os.getpid(), 9)")
    assert (done.status, done.exit_code, done.signal) == (
        Status.RUNTIME_ERROR,
        None,
        signal.SIGKILL,
    )


def test_an_endless_loop_exceeds_the_cpu_limit(worker: LocalWorker) -> None:
    done = run(worker, "while True: pass")
    assert done.status is Status.TIME_LIMIT_EXCEEDED
    assert done.cpu_s >= 0.5


def test_the_cpu_limit_is_exact_below_a_second(worker: LocalWorker) -> None:
    source = "import time\nwhile time.process_time() < 0.3: pass"
    assert run(worker, source, limits=Limits(cpu_s=0.2)).status is Status.TIME_LIMIT_EXCEEDED
    assert run(worker, source, limits=Limits(cpu_s=1.0)).status is None


def test_a_sleeping_program_exceeds_the_wall_guard(worker: LocalWorker) -> None:
    start = time.monotonic()
    done = run(worker, "import time; time.sleep(30)", limits=Limits(wall_s=0.5))
    assert done.status is Status.TIME_LIMIT_EXCEEDED
    assert time.monotonic() - start < 5


def test_a_flood_exceeds_the_output_limit_and_is_cut(worker: LocalWorker) -> None:
    done = run(worker, "while True: print('x' * 1000)")
    assert done.status is Status.OUTPUT_LIMIT_EXCEEDED
    assert len(done.stdout) == FAST.output_bytes


def test_only_the_tail_of_standard_error_is_kept(worker: LocalWorker) -> None:
    done = run(worker, "import sys\nfor i in range(100000): print(i, file=sys.stderr)")
    assert done.status is None
    assert len(done.stderr) == FAST.stderr_bytes
    assert done.stderr.endswith(b"99999\n")


def test_too_much_memory_is_a_memory_verdict(worker: LocalWorker) -> None:
    done = run(worker, "x = bytearray(1 << 30)", limits=Limits(memory_mb=256))
    assert done.status is Status.MEMORY_LIMIT_EXCEEDED


def test_descendants_that_hold_the_output_end_with_the_program(worker: LocalWorker) -> None:
    source = (
        "import os, time\npid = os.fork()\nif pid == 0: time.sleep(60)\nprint(pid, flush=True)\n"
    )
    start = time.monotonic()
    done = run(worker, source)
    assert time.monotonic() - start < 5
    status = Path(f"/proc/{int(done.stdout)}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()  # dead, perhaps not yet reaped


def test_each_run_has_an_empty_directory(worker: LocalWorker) -> None:
    source = "import os; print(os.listdir('.')); open('left', 'w').close()"
    assert run(worker, source).stdout == b"[]\n"
    assert run(worker, source).stdout == b"[]\n"


ECHO = """
import os
while data := os.read(3, 1 << 16):
    while data:
        data = data[os.write(3, data):]
"""


def test_a_session_talks_both_ways_without_blocking_on_large_messages(worker: LocalWorker) -> None:
    session = worker.open(ECHO.encode(), FAST)
    message = os.urandom(3_000_000)
    session.send(message)
    back = b""
    while len(back) < len(message):
        back += session.receive(5) or pytest.fail("the channel closed")
    assert back == message
    done = session.finish()
    assert (done.status, done.signal) == (None, signal.SIGKILL)


def test_a_session_ends_when_the_program_does(worker: LocalWorker) -> None:
    session = worker.open(b"import os; os.write(3, b'bye'); raise SystemExit(3)", FAST)
    assert session.receive(5) == b"bye"
    assert session.receive(5) is None
    session.send(b"ignored")
    done = session.finish()
    assert (done.status, done.exit_code) == (Status.RUNTIME_ERROR, 3)


def test_a_session_times_out_without_ending_the_program(worker: LocalWorker) -> None:
    session = worker.open(ECHO.encode(), FAST)
    with pytest.raises(TimeoutError):
        session.receive(0.05)
    session.send(b"x")
    assert session.receive(5) == b"x"
    session.finish()


def test_a_session_that_floods_standard_output_is_stopped(worker: LocalWorker) -> None:
    session = worker.open(b"while True: print('x' * 1000)", FAST)
    assert session.receive(5) is None
    assert session.finish().status is Status.OUTPUT_LIMIT_EXCEEDED


def test_a_sleeping_session_exceeds_the_wall_guard(worker: LocalWorker) -> None:
    session = worker.open(b"import time; time.sleep(30)", Limits(wall_s=0.3))
    assert session.receive(10) is None
    assert session.finish().status is Status.TIME_LIMIT_EXCEEDED


def test_a_closed_worker_is_not_usable(worker: LocalWorker) -> None:
    assert worker.usable
    worker.close()
    worker.close()
    assert not worker.usable

"""The order in which the facts about a run decide its verdict."""

from __future__ import annotations

import signal

import pytest

from sandbox.types import Limits, Status
from sandbox.verdict import Facts, execution
from sandbox.worker import Execution, WorkerFault

LIMITS = Limits(cpu_s=1.5)
EXIT_1 = 1 << 8


def judge(*, stderr: bytes = b"", **facts: object) -> Execution:
    fields = {
        "stage": "R",
        "wait_status": 0,
        "cpu_s": 0.1,
        "wall_s": 0.2,
        "max_rss_kb": 9000,
        "overflow": False,
        "timed_out": False,
    }
    return execution(Facts(**{**fields, **facts}), LIMITS, b"out", stderr)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, None),
        ({"stage": "C", "wait_status": EXIT_1}, Status.COMPILE_ERROR),
        ({"stage": "S", "wait_status": signal.SIGSEGV}, Status.COMPILE_ERROR),
        ({"overflow": True, "timed_out": True}, Status.OUTPUT_LIMIT_EXCEEDED),
        ({"timed_out": True, "wait_status": signal.SIGKILL}, Status.TIME_LIMIT_EXCEEDED),
        ({"timed_out": True, "wait_status": 9, "oom": True}, Status.TIME_LIMIT_EXCEEDED),
        ({"cpu_s": 1.51}, Status.TIME_LIMIT_EXCEEDED),
        ({"cpu_s": 1.5}, None),
        ({"cpu_s": 1.6, "wait_status": EXIT_1}, Status.TIME_LIMIT_EXCEEDED),
        ({"wait_status": signal.SIGXCPU}, Status.TIME_LIMIT_EXCEEDED),
        ({"wait_status": signal.SIGKILL, "oom": True}, Status.MEMORY_LIMIT_EXCEEDED),
        ({"wait_status": signal.SIGKILL}, Status.RUNTIME_ERROR),
        ({"wait_status": signal.SIGSEGV}, Status.RUNTIME_ERROR),
        ({"wait_status": EXIT_1}, Status.RUNTIME_ERROR),
        ({"wait_status": EXIT_1, "oom": True}, Status.MEMORY_LIMIT_EXCEEDED),
        ({"wait_status": EXIT_1, "stderr": b"x\nMemoryError\n"}, Status.MEMORY_LIMIT_EXCEEDED),
        ({"wait_status": EXIT_1, "stderr": b"MemoryError\nValueError"}, Status.RUNTIME_ERROR),
        ({"wait_status": signal.SIGKILL, "finished": True}, None),
        ({"wait_status": signal.SIGKILL, "finished": True, "stage": "-"}, None),
        ({"wait_status": EXIT_1, "finished": True}, Status.RUNTIME_ERROR),
    ],
)
def test_facts_decide_the_status(facts: dict[str, object], status: Status | None) -> None:
    assert judge(**facts).status is status  # type: ignore[arg-type]


def test_exit_code_and_signal_exclude_each_other() -> None:
    assert (judge(wait_status=7 << 8).exit_code, judge(wait_status=7 << 8).signal) == (7, None)
    assert (judge(wait_status=11).exit_code, judge(wait_status=11).signal) == (None, 11)


def test_a_guest_that_could_not_confine_the_program_is_at_fault() -> None:
    with pytest.raises(WorkerFault, match="no table for riscv"):
        judge(stage="-", wait_status=EXIT_1, stderr=b"no table for riscv")

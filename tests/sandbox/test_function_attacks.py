"""Programs that try to be accepted without returning the right value, on every backend."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import CaseResult, FunctionCase, Grader, Limits, Program, Status
from sandbox.codec import pack
from sandbox.functions import source
from sandbox.pool import WorkerPool

AC, WA, RE = Status.ACCEPTED, Status.WRONG_ANSWER, Status.RUNTIME_ERROR
OLE, TLE = Status.OUTPUT_LIMIT_EXCEEDED, Status.TIME_LIMIT_EXCEEDED
LIMITS = Limits(cpu_s=1.0, wall_s=60.0, memory_mb=256)

RIGHT = "def f(x):\n    return 42 if x == 6 else 'wrong'"

# Each writes what our driver would write for the value 7, to every descriptor that it may write to.
FORGED = f"""
import os
def forge(data={pack(["returned", 7])!r}):
    for fd in range(64):
        try:
            os.write(fd, data)
        except OSError:
            pass
"""


def case(expected: Any = 42, **options: Any) -> FunctionCase:
    return FunctionCase(name="call", entry_point="f", args=(6,), expected=expected, **options)


@pytest.fixture(scope="module")
def grader(pool: WorkerPool) -> Iterator[Grader]:
    grader = Grader(pool)
    yield grader
    assert judged(grader, RIGHT).status is AC


def judged(grader: Grader, program: str, expected: Any = 42) -> CaseResult:
    return grader.grade(Program(program), [case(expected)], LIMITS).cases[0]


def test_an_honest_function_is_accepted_and_a_wrong_one_is_not(grader: Grader) -> None:
    assert judged(grader, RIGHT).status is AC
    assert judged(grader, "def f(x): return 41").status is WA


@pytest.mark.parametrize(
    ("program", "status"),
    [
        # Leaving before the value has been sent is not returning it.
        ("import sys\ndef f(x): sys.exit(0)", RE),
        ("import os\ndef f(x): os._exit(0)", RE),
        ("import os\nos._exit(0)", RE),
        ("def f(x): raise SystemExit('pass')", RE),
        ("import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGTERM)", RE),
        # What happens after the return changes nothing.
        ("import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 1", WA),
        ("import sys\nsys.excepthook = lambda *a: None\ndef f(x): 1 / 0", RE),
        (
            "import threading, time\n"
            "def f(x):\n"
            "    box = []\n"
            "    threading.Thread(target=lambda: (time.sleep(0.2), box.append(42))).start()\n"
            "    return box",
            WA,
        ),
        # A value that claims to be equal is only what it is made of.
        ("class E:\n  __eq__ = lambda a, b: True\ndef f(x): return E()", WA),
        ("class S(str):\n  __eq__ = lambda a, b: True\ndef f(x): return S('no')", WA),
        ("class I(int):\n  __eq__ = lambda a, b: True\ndef f(x): return I(41)", WA),
        ("class L(list):\n  __iter__ = lambda a: iter([42])\ndef f(x): return L([1])", WA),
        ("class C:\n  __class__ = int\n  __int__ = lambda a: 42\ndef f(x): return C()", WA),
        ("def f(x): return f", WA),
        ("def f(x): return (n for n in [42])", WA),
        ("def f(x): return float('nan')", WA),
        ("def f(x): return -0.0", WA),
        ("def f(x): return 42 + 10 ** 5000", WA),
        ("def f(x): return '\\ud800\\udc00'", WA),
        ("def f(x): return True", WA),
        ("def f(x): return '42'", WA),
        ("def f(x): return [42]", WA),
        # Tampering with what our driver uses harms no one else.
        ("import json\njson.dumps = lambda *a, **k: '[\"returned\", 7]'\ndef f(x): return 1", WA),
        ("import builtins\nbuiltins.type = lambda v: int\ndef f(x): return []", RE),
        ("import sys\nsys.modules.clear()\ndef f(x): return 1", WA),
        ("import os\nos.write = lambda fd, data: len(data)\ndef f(x): return 42", RE),
        ("import os\nos._exit = lambda code: None\ndef f(x): return 1", WA),
        # Programs that are too much for the compiler do not compile.
        ("x = " + "-" * 100_000 + "1\ndef f(x): return 42", Status.COMPILE_ERROR),
        ("x = " + "(" * 100_000 + ")" * 100_000, Status.COMPILE_ERROR),
        ("\0def f(x): return 42", Status.COMPILE_ERROR),
        # Values without an end.
        ("def f(x):\n  a = []\n  a.append(a)\n  return a", OLE),
        ("def f(x):\n  a = []\n  for _ in range(90000): a = [a]\n  return a", OLE),
        ("def f(x): return [None] * 10 ** 7", OLE),
        ("def f(x): return [0] * 10 ** 8", Status.MEMORY_LIMIT_EXCEEDED),
        ("import itertools\ndef f(x): return itertools.count()", OLE),
        ("def f(x): return 'x' * 2_000_000", OLE),
        ("def f(x): return 10 ** 2_000_000", OLE),
        ("def f(x):\n  while True: pass", TLE),
        (
            "class I:\n  def __next__(self):\n    while True: pass\n"
            "  __iter__ = lambda s: s\ndef f(x): return I()",
            TLE,
        ),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, str) else None,
)
def test_what_is_not_the_value_is_not_accepted(
    grader: Grader, program: str, status: Status
) -> None:
    result = judged(grader, program)
    assert result.status is status, result


@pytest.mark.parametrize(
    ("program", "status"),
    [
        # Alone on the channel, a forged message is a returned value, and a wrong one.
        (FORGED + "def f(x): forge(); os._exit(0)", WA),
        # Two messages are nobody's.
        (FORGED + "def f(x): forge(); return 7", RE),
        (FORGED + "forge()\ndef f(x): return 7", RE),
        (FORGED + "def f(x): forge(b'\\xff' * 100); os._exit(0)", RE),
        (FORGED + "def f(x): forge(b'\\xff' * 3_000_000)", OLE),
        (FORGED + "def f(x): forge(b'\\0\\1\\x86\\xa0' + b'[' * 100_000); os._exit(0)", OLE),
        (FORGED + "def f(x): forge(b'\\0\\0\\0\\4[{}]'); os._exit(0)", RE),
        # A descendant has no channel.
        (
            FORGED + "def f(x):\n  if os.fork() == 0:\n    forge(); os._exit(0)\n"
            "  os.wait()\n  return 1",
            WA,
        ),
    ],
    ids=lambda value: repr(value[-60:]) if isinstance(value, str) else None,
)
def test_writing_to_every_descriptor_is_no_way_to_a_verdict(
    grader: Grader, program: str, status: Status
) -> None:
    result = judged(grader, program)
    assert result.status is status, result


def test_a_forged_message_is_only_a_way_to_return(grader: Grader) -> None:
    program = FORGED + "def f(x): forge(); os._exit(0)"
    assert judged(grader, program, expected=7).status is AC


def test_a_program_that_forks_returns_once(grader: Grader) -> None:
    program = "import os\ndef f(x):\n  if os.fork(): os.wait()\n  return 42"
    assert judged(grader, program).status is AC


def test_honest_oddities_are_accepted(grader: Grader) -> None:
    for program, expected in (
        ("def f(x): return float('nan')", math.nan),
        ("def f(x): return -0.0", 0),
        ("def f(x): return 10 ** 5000 + x", 10**5000 + 6),
        ("def f(x): return '\\ud800'", "\ud800"),
        ("class S(str): pass\ndef f(x): return S('yes')", "yes"),
        ("import collections\ndef f(x): return collections.Counter('aab')", {"a": 2, "b": 1}),
        ("def f(x): return (1, [2, (3,)])", [1, [2, [3]]]),
        ("import sys\ndef f(x): sys.stdout.close(); return 42", 42),
        ("import sys\nsys.setrecursionlimit(80)\ndef f(x): return 42", 42),
        ("import os\nos.chdir('/'); os.environ.clear()\ndef f(x): return 42", 42),
    ):
        result = judged(grader, program, expected=expected)
        assert result.status is AC, (program, result)


def test_the_guest_never_holds_the_expected_value(grader: Grader) -> None:
    secret = 271828182845904523
    hunt = f"""
import gc, sys
def f(x):
    lists = [o for o in gc.get_objects() if type(o) in (list, tuple)]
    return [o for o in lists if {secret + 1} - 1 in o]
"""
    assert judged(grader, hunt, expected=secret).status is WA
    call = case(secret, alternatives=(secret + 2,))
    assert str(secret).encode() not in source(Program(hunt), call)


def test_every_case_has_the_whole_limit_and_a_slow_one_harms_no_other(grader: Grader) -> None:
    program = """
import time
def f(seconds):
    while time.process_time() < seconds: pass
    return seconds
"""
    cases = [
        FunctionCase(name=str(s), entry_point="f", args=(s,), expected=s) for s in (0.6, 5.0, 0.6)
    ]
    report = grader.grade(Program(program), cases, LIMITS)
    assert [result.status for result in report.cases] == [AC, TLE, AC]


@pytest.mark.data
def test_recorded_leetcode_programs_find_the_names_that_they_assume(
    grader: Grader, data_dir: Path
) -> None:
    """Called without arguments, each of them gets as far as to miss them."""
    lines = (data_dir / "generations" / "lcb_o1_outputs.jsonl").read_text("utf-8").splitlines()
    programs = [
        record["extracted"] for record in map(json.loads, lines) if record["has_starter_code"]
    ]
    methods = [
        re.search(r"class Solution.*?def ([a-z]\w*)\(self, ", text, re.S) for text in programs
    ]
    found = [(text, match[1]) for text, match in zip(programs, methods, strict=True) if match]
    assert len(found) > 50
    for text, method in found[::8]:
        call = FunctionCase(
            name=method,
            entry_point=f"Solution.{method}",
            args=(),
            expected=None,
            assume="leetcode",
        )
        result = grader.grade(Program(text), [call], LIMITS).cases[0]
        assert "required positional argument" in result.message, (text, result)

"""Assert bodies: verdicts, attribution, forgeries, and what test and program may exchange."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import bundle, drivers, relay
from sandbox.base import UnsupportedCase, WorkerDied
from sandbox.drivers import AssertOutcome, judge
from sandbox.local import LocalBackend, LocalSession, LocalWorker
from sandbox.pool import WorkerPool
from sandbox.types import AssertCase, Limits, Program, Status
from sandbox.worker import WorkerFault

LIMITS = Limits(cpu_s=2, wall_s=10)
Pools = tuple[WorkerPool, WorkerPool]


@pytest.fixture(scope="module")
def local() -> Iterator[Pools]:
    with WorkerPool(LocalBackend(), size=2) as programs, WorkerPool(LocalBackend()) as tests:
        yield programs, tests


def run(
    pools: Pools,
    program: str,
    body: str,
    *,
    entry_point: str = "f",
    helpers: str = "",
    limits: Limits = LIMITS,
) -> AssertOutcome:
    case = AssertCase(name="case", body=body, entry_point=entry_point, helpers=helpers)
    return judge(Program(program), case, limits, programs=pools[0], drivers=pools[1])


DOUBLE = "def f(x):\n    return 2 * x\n"


@pytest.mark.parametrize(
    "body",
    [
        "for got, want in zip(map(f, (2, 3)), (4, 9)):\n    assert got == want",
        "def one(x):\n    return f(x) == 2 * x\nassert all(map(one, (2, 3)))",
        "assert list(map(f, (2, 3))) == []",
    ],
)
def test_raising_stop_iteration_ends_no_loop_of_the_test(local: Pools, body: str) -> None:
    program = "def f(x):\n    raise StopIteration\n"
    assert run(local, program, body).status is Status.RUNTIME_ERROR


@pytest.mark.timeout(60)  # a second, but for a printer that takes quadratic time
def test_a_huge_number_is_a_value_like_another(local: Pools) -> None:
    program = "def f(x):\n    return x << 3_900_000\n"
    assert run(local, program, "assert f(1) == 1 << 3_900_000").status is Status.ACCEPTED


@pytest.mark.parametrize(
    "body",
    [
        "def check(candidate):\n    assert candidate(2) == 4\n",
        "def check(f):\n    assert f(2) == 4\ncheck(f)",
        "assert f(2) == 4",
        "if True:\n    assert f(x=2) == 4",
        "def check(g):\n    assert g(2) == f(2)\n",
    ],
)
def test_every_form_of_body_accepts_a_right_program(local: Pools, body: str) -> None:
    assert run(local, DOUBLE, body).status is Status.ACCEPTED


@pytest.mark.parametrize(
    "body",
    [
        "def check(candidate):\n    assert candidate(2) == 5\n",
        "def check(f):\n    assert f(2) == 5\ncheck(f)",
        "assert f(2) == 5",
    ],
)
def test_every_form_of_body_rejects_a_wrong_program(local: Pools, body: str) -> None:
    assert run(local, DOUBLE, body).status is Status.WRONG_ANSWER


def test_a_failing_assertion_is_quoted_with_the_value_that_failed_it(local: Pools) -> None:
    body = "def check(g):\n    assert g(1) == 2\n    assert (g(2) ==\n            5), 'text'\n"
    message = run(local, DOUBLE, body).message
    assert message == "assert (g(2) == 5), 'text'; the last call returned 4"


def test_an_exception_of_the_program_is_its_runtime_error(local: Pools) -> None:
    program = "def f(x):\n    return [][x]\n"
    outcome = run(local, program, "assert f(3) == 4")
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message == "IndexError: list index out of range in `assert f(3) == 4`"
    assert 'File "solution.py", line 2, in f' in outcome.trace
    assert "return [][x]" in outcome.trace
    assert "guest" not in outcome.trace


def test_an_assertion_inside_the_program_is_its_runtime_error(local: Pools) -> None:
    outcome = run(local, "def f(x):\n    assert x > 5\n", "assert f(3) == 4")
    assert outcome.status is Status.RUNTIME_ERROR


def test_an_expected_exception_reaches_the_test_as_its_builtin_class(local: Pools) -> None:
    program = "class Mine(KeyError): pass\ndef f(x):\n    raise Mine('key', x)\n"
    body = """
try:
    f(3)
except KeyError as error:
    assert error.args == ('key', 3)
else:
    assert False
"""
    assert run(local, program, body).status is Status.ACCEPTED
    assert run(local, DOUBLE, body).status is Status.WRONG_ANSWER


def test_stop_iteration_from_a_call_in_a_generator_is_the_programs_error(local: Pools) -> None:
    program = "def f(x):\n    raise StopIteration\n"
    outcome = run(local, program, "assert all(f(x) for x in [1])")
    assert outcome.status is Status.RUNTIME_ERROR


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("def f(x:", Status.COMPILE_ERROR),
        ("def f(x): return 2 * x\n\x00", Status.COMPILE_ERROR),
        ("\ud800", Status.COMPILE_ERROR),
        ("(" * 100_000, Status.COMPILE_ERROR),
        ("import nothing_of_that_name", Status.RUNTIME_ERROR),
        ("raise SystemExit(0)", Status.RUNTIME_ERROR),
        ("def g(x): return 2 * x", Status.RUNTIME_ERROR),
        ("f = 5", Status.RUNTIME_ERROR),
        ("x = bytearray(1 << 40)", Status.MEMORY_LIMIT_EXCEEDED),
        ("def f(x): return bytearray(1 << 40)", Status.MEMORY_LIMIT_EXCEEDED),
        ("def f(x): return None", Status.WRONG_ANSWER),
        ("def f(x): return [0] * 10**6", Status.OUTPUT_LIMIT_EXCEEDED),
        ("def f(x):\n    a = []\n    a.append(a)\n    return a", Status.WRONG_ANSWER),
        ("def f(x):\n    while True: yield 1", Status.WRONG_ANSWER),
        ("def f(x):\n    while True: print('x' * 1000)", Status.OUTPUT_LIMIT_EXCEEDED),
        ("def f(x): return f(x)", Status.RUNTIME_ERROR),
        ("import os\ndef f(x): os.kill(os.getpid(), 11)", Status.RUNTIME_ERROR),
    ],
    ids=lambda value: value if isinstance(value, Status) else repr(value)[:40],
)
def test_each_way_to_fail_has_its_verdict(local: Pools, program: str, status: Status) -> None:
    outcome = run(local, program, "assert abs(f(2) - 4) < 1e-6")
    assert outcome.status is status
    assert outcome.message or outcome.execution.stderr


@pytest.mark.parametrize(
    ("program", "limits"),
    [
        ("def f(x):\n    while True: pass", Limits(cpu_s=0.5)),
        ("while True: pass", Limits(cpu_s=0.5)),
        ("import time\ndef f(x): time.sleep(60)", Limits(wall_s=0.7)),
    ],
)
def test_time_limits_hold_in_calls_and_at_load(local: Pools, program: str, limits: Limits) -> None:
    assert run(local, program, "assert f(1)", limits=limits).status is Status.TIME_LIMIT_EXCEEDED


def test_a_missing_function_is_named(local: Pools) -> None:
    outcome = run(local, "x = 1", "assert f(1)")
    assert outcome.message == "the program defines no function 'f'"


def test_prints_and_reads_of_the_program_do_not_disturb_the_channel(local: Pools) -> None:
    program = "print('loading')\ndef f(x):\n    print('hello')\n    return 2 * x\n"
    assert run(local, program, "assert f(2) == 4").status is Status.ACCEPTED


def test_a_main_guard_does_not_run(local: Pools) -> None:
    program = DOUBLE + "if __name__ == '__main__':\n    raise SystemExit(1)\n"
    assert run(local, program, "assert f(2) == 4").status is Status.ACCEPTED


# What an in-process grader accepts, see the second table of attacks in the threat model.
TRUNCATE = "assert f(3.5) == 0.5\nassert abs(f(1.33) - 0.33) < 1e-6\n"
FORGERIES = {
    "os._exit(0)": ("import os\ndef f(x): os._exit(0)", Status.RUNTIME_ERROR),
    "sys.exit(0)": ("import sys\ndef f(x): sys.exit(0)", Status.RUNTIME_ERROR),
    "marker and exit": (
        "import os\ndef f(x):\n    print('ALL TESTS PASSED', flush=True)\n    os._exit(0)",
        Status.RUNTIME_ERROR,
    ),
    "always equal": (
        """
class Equal(float):
    def __eq__(self, other): return True
    __lt__ = __le__ = __eq__
    def __sub__(self, other): return self
    def __abs__(self): return self
    __hash__ = float.__hash__
def f(x): return Equal(7)
""",
        Status.WRONG_ANSWER,
    ),
    "patched abs": (
        "import builtins\nbuiltins.abs = lambda x: 0\ndef f(x): return 0.5",
        Status.WRONG_ANSWER,
    ),
    "frame rewrite": (
        """
import sys, os
def f(x):
    frame = sys._getframe()
    while frame:
        for name in list(frame.f_globals):
            if 'check' in name or 'result' in name:
                frame.f_globals[name] = lambda *a, **k: None
        frame = frame.f_back
    os._exit(0)
""",
        Status.RUNTIME_ERROR,
    ),
    "atexit": (
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return 7",
        Status.WRONG_ANSWER,
    ),
    "excepthook": (
        "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x): return 7",
        Status.WRONG_ANSWER,
    ),
    "caller's constants": (
        """
import sys, os
def f(x):
    frame = sys._getframe().f_back
    while frame:
        for constant in frame.f_code.co_consts:
            if constant in (0.5, 0.33):
                return constant
        frame = frame.f_back
    print('ALL TESTS PASSED')
    os._exit(0)
""",
        Status.RUNTIME_ERROR,
    ),
}
CHANNEL_FORGERIES = {
    "accepted by itself": "pack(['done', 'passed', '', 0, 1, ''])",
    "an answer ahead of the call": "pack(['returned', 0.5, None])",
    "a malformed value": "pack(['returned', {'s': [[1]]}, None])",
    "no frame at all": "b'\\x00\\x00\\x00\\x04oops'",
    "a huge header": "b'\\xff\\xff\\xff\\xff'",
    "malformed changes": "pack(['returned', 1, [[1], {'t': []}]])",
    "changes of no kind": "pack(['returned', 1, [[1], None]])",
    "a kind that is a list": "pack([[1], 2])",
    "a value nested too deeply": "pack(['returned', json.loads('[' * 300 + ']' * 300), None])",
    "an exception without a class": "pack(['raised', [], [], 'text', 'trace'])",
    "an exception of classes that are none": "pack(['raised', [1], [], 'text', 'trace'])",
}


@pytest.fixture(scope="module")
def isolated(pool: WorkerPool) -> Iterator[Pools]:
    with WorkerPool(pool.backend, size=1) as tests:
        yield pool, tests


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_rejected(local: Pools, name: str) -> None:
    program, status = FORGERIES[name]
    assert run(local, program, TRUNCATE).status is status


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_rejected_by_isolated_backends(isolated: Pools, name: str) -> None:
    program, status = FORGERIES[name]
    assert run(isolated, program, TRUNCATE).status is status
    assert run(isolated, "def f(x): return x % 1.0", TRUNCATE).status is Status.ACCEPTED


@pytest.mark.parametrize("when", ["at load", "in a call"])
@pytest.mark.parametrize("name", CHANNEL_FORGERIES)
def test_writing_to_the_channel_is_never_accepted(local: Pools, name: str, when: str) -> None:
    program = f"""
import json, os
def pack(message):
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data
if {when == "at load"}:
    os.write(3, {CHANNEL_FORGERIES[name]} * 2)
def f(x):
    os.write(3, {CHANNEL_FORGERIES[name]} * 2)
    return x
"""
    outcome = run(local, program, TRUNCATE)
    assert outcome.status in (
        Status.RUNTIME_ERROR,
        Status.WRONG_ANSWER,
        Status.OUTPUT_LIMIT_EXCEEDED,
    )


def test_the_programs_guest_sees_nothing_of_the_test() -> None:
    case = AssertCase(name="case", body=TRUNCATE, entry_point="f")
    source = drivers.candidate_source(Program(DOUBLE), case)
    assert b"0.33" not in source
    assert b"candidate(" not in source


def test_mutated_arguments_are_seen_by_the_test(local: Pools) -> None:
    program = """
def f(a, b, *, c):
    a.append(4); a[0][0] = 9; del a[1]
    b['new'] = b.pop('old')
    c.add(5)
"""
    body = """
inner = [1]
a, b, c = [inner, 2, 3], {'old': 1}, {4}
same = a
assert f(a, b, c=c) is None
assert a == [[9], 3, 4] and same is a and b == {'new': 1} and c == {4, 5}
assert inner == [9] and a[0] is inner
"""
    assert run(local, program, body).status is Status.ACCEPTED


def test_a_test_that_relies_on_unchanged_arguments_sees_that_they_are(local: Pools) -> None:
    body = "a = [3, 1, 2]\nassert f(a) == [1, 2, 3]\nassert a == [3, 1, 2]"
    assert run(local, "def f(a): return sorted(a)", body).status is Status.ACCEPTED
    impure = run(local, "def f(a):\n    a.sort()\n    return a", body)
    assert impure.status is Status.WRONG_ANSWER


def test_helpers_of_the_prompt_serve_the_test_but_not_the_entry_point(local: Pools) -> None:
    prompt = "def help(x):\n    return x + 1\n\ndef f(x):\n    '''to be written'''\n"
    body = "assert f(1) == help(1)"
    assert run(local, "def f(x): return 2", body, helpers=prompt).status is Status.ACCEPTED
    cheat = "def help(x): return 7\ndef f(x): return 7"
    assert run(local, cheat, body, helpers=prompt).status is Status.WRONG_ANSWER


def test_a_prompt_that_ends_at_a_function_head_is_completed(local: Pools) -> None:
    outcome = run(local, DOUBLE, "assert f(g(1)) == 4", helpers="g = lambda x: 2\ndef f(x):\n")
    assert outcome.status is Status.ACCEPTED


def test_common_modules_are_there_for_the_test(local: Pools) -> None:
    body = "assert math.isclose(f(2), 4) and re.match('4', str(f(2))) and itertools and sys"
    assert run(local, DOUBLE, body + " and collections").status is Status.ACCEPTED


def test_opaque_values_are_true_and_equal_to_nothing(local: Pools) -> None:
    program = "import re\ndef f(x): return re.match('a', x)"
    body = "assert f('a')\nassert not f('b')\nassert f('a') is not None\n"
    assert run(local, program, body).status is Status.ACCEPTED
    assert run(local, program, "assert f('a') == 'a'").status is Status.WRONG_ANSWER


def test_an_object_handed_back_is_the_very_object(local: Pools) -> None:
    program = "made = []\ndef f(x):\n    made.append(object())\n    return made[-1] if x else 1"
    body = "first = f(True)\nassert f(first) is not first\nassert f(0) == 1"
    assert run(local, program, body).status is Status.ACCEPTED
    program = "kept = object()\ndef f(x): return kept if x is not kept else 'mine'"
    assert run(local, program, "assert f(f(1)) == 'mine'").status is Status.ACCEPTED
    assert run(local, program, "assert f([f(1)]) is f(2)").status is Status.ACCEPTED


def test_generators_are_iterators_for_the_test(local: Pools) -> None:
    program = "def f(n):\n    yield from range(n)"
    body = "g = f(3)\nassert next(g) == 0 and list(g) == [1, 2]\nassert f(2) != [0, 1]"
    assert run(local, program, body).status is Status.ACCEPTED


@pytest.mark.parametrize(
    "body",
    [
        "import io\nassert f(io.StringIO()) == 2",
        "import unittest.mock\nassert f(unittest.mock.Mock()) == 2",
        "assert f([object()])",
    ],
)
def test_arguments_that_cannot_be_carried_are_unsupported(local: Pools, body: str) -> None:
    with pytest.raises(UnsupportedCase, match="an argument holds"):
        run(local, DOUBLE, body)


@pytest.mark.parametrize(
    ("body", "helpers", "match"),
    [
        ("assert f(1) ==", "", "does not compile"),
        ("x = 1", "", "could not fail"),
        ("assert True or f(1)", "", "never calls"),
        ("def check(candidate):\n    pass", "", "never calls"),
        ("assert undefined(1) == f(1)", "", "NameError"),
        ("assert f(1) == 2\nassert undefined", "", "NameError"),
        ("import nothing_of_that_name\nassert f(1)", "", "ModuleNotFoundError"),
        ("assert 1 == 2\nassert f(1)", "", "broken"),
        ("import os\nos._exit(3)\nf(1)", "", "broken"),
        ("assert f(1) == 2", "def g(:", "helpers"),
        ("assert f(1) == 2", "raise ValueError('here')", "here"),
    ],
)
def test_a_broken_test_is_no_verdict(local: Pools, body: str, helpers: str, match: str) -> None:
    with pytest.raises(UnsupportedCase, match=match):
        run(local, DOUBLE, body, helpers=helpers)


def test_a_value_of_the_wrong_shape_is_a_wrong_answer_with_the_error(local: Pools) -> None:
    outcome = run(local, "def f(x): return None", "assert len(f(2)) == 4")
    assert outcome.status is Status.WRONG_ANSWER
    assert "TypeError" in outcome.message
    assert "the last call returned None" in outcome.message


def test_a_value_that_keeps_the_test_busy_counts_against_the_program(
    local: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_DRIVER_CPU_S", 0.5)
    body = "value = f(1)\nwhile value != 5:\n    pass"
    outcome = run(local, DOUBLE, body, limits=Limits(cpu_s=0.5, wall_s=5))
    assert outcome.status is Status.TIME_LIMIT_EXCEEDED


def test_a_guest_of_another_bytecode_version_compiles_the_modules(
    local: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "magic", lambda: b"another")
    assert run(local, DOUBLE, "assert f(2) == 4").status is Status.ACCEPTED


class BreakingWorker(LocalWorker):
    """Breaks in sessions whose source mentions a word; other programs run well."""

    word = b"BREAK"

    def open(self, source: bytes, limits: Limits) -> LocalSession:
        if self.word in source:
            raise WorkerFault("it broke")
        return super().open(source, limits)


class BreakingBackend(LocalBackend):
    def start_worker(self) -> BreakingWorker:
        return BreakingWorker()


def test_a_test_whose_worker_breaks_has_no_verdict() -> None:
    with WorkerPool(BreakingBackend(), size=1) as tests, WorkerPool(LocalBackend()) as programs:
        with pytest.raises(WorkerDied):
            run((programs, tests), DOUBLE, "assert f(2) == 4  # BREAK")
        assert run((programs, tests), DOUBLE, "assert f(2) == 4").status is Status.ACCEPTED


def test_a_wrong_answer_does_not_cost_a_worker(local: Pools) -> None:
    started: list[str] = []

    class Counting(LocalBackend):
        def start_worker(self) -> LocalWorker:
            started.append("")
            return super().start_worker()

    with WorkerPool(Counting(), size=1) as programs, WorkerPool(Counting(), size=1) as tests:
        for _ in range(3):
            run((programs, tests), DOUBLE, "assert f(2) == 5")
            with pytest.raises(UnsupportedCase):
                run((programs, tests), DOUBLE, "assert undefined == f(2)")
    assert len(started) == 2


@pytest.mark.data
@pytest.mark.slow
def test_every_canonical_humaneval_solution_is_accepted_and_a_wrong_one_is_not(
    isolated: Pools, data_dir: Path
) -> None:
    accepted = rejected = 0
    for record in _records(data_dir / "functions" / "humaneval.jsonl"):
        for solution in (record["canonical_solution"], "    return 'no'\n"):
            outcome = run(
                isolated,
                record["prompt"] + solution,
                record["test"],
                entry_point=record["entry_point"],
                helpers=record["prompt"],
            )
            if solution is record["canonical_solution"]:
                accepted += outcome.status is Status.ACCEPTED
            else:
                rejected += outcome.status is Status.WRONG_ANSWER
    assert (accepted, rejected) == (164, 164)


@pytest.mark.data
@pytest.mark.slow
def test_humanevalpacks_canonical_solutions_pass_and_its_bugs_fail_as_recorded(
    isolated: Pools, data_dir: Path
) -> None:
    compared = 0
    for record in _records(data_dir / "functions" / "humanevalpack_bugs.jsonl"):
        for name, verdict in record["observed"].items():
            kind, tests = name.split("_")
            body = record[f"{tests}_test"]
            # Five public tests are empty; one is indented, so that it needs the program before it.
            if body.strip() and not body.startswith(" "):
                outcome = run(
                    isolated,
                    record["prompt"] + record[f"{kind}_solution"],
                    body,
                    entry_point=record["entry_point"],
                    helpers=record["prompt"],
                )
                accepted = outcome.status is Status.ACCEPTED
                assert accepted == (verdict == "pass"), (record["task"], name)
                compared += 1
    assert compared > 300


def _records(path: Path) -> list[dict[str, Any]]:
    with path.open() as file:
        return [json.loads(line) for line in file]

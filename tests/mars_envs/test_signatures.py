"""Behaviour signatures and probes, over real sandboxes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidTask
from mars_envs.judging import CodeJudge, Verdict
from mars_envs.judging.code import MAX_PROBES, close_shared_sandboxes
from mars_envs.judging.signatures import signature_of_probes, signature_of_tests
from mars_envs.tasks import (
    AssertBody,
    CodeTask,
    ExpectedCase,
    FunctionCall,
    OutputRule,
    Probe,
    task_from_json,
    task_to_json,
)
from sandbox import CaseResult, Status

STDIO = CodeTask(
    task_id="double",
    statement="Print twice n.",
    public=(
        ExpectedCase(name="p1", input="1\n", expected="2\n"),
        ExpectedCase(name="p2", input="5\n", expected="10\n"),
    ),
    hidden=(ExpectedCase(name="h1", input="-3\n", expected="-6\n"),),
    probes=(Probe(name="q1", input="-1\n"), Probe(name="q2", input="0\n")),
    rule=OutputRule(kind="tokens"),
    time_limit_s=1.0,
)
CALLS = CodeTask(
    task_id="pairs",
    statement="Return pairs.",
    public=(FunctionCall(name="p1", arguments="[3, 1]\n2", expected="[[1, 2], [3, 2]]"),),
    probes=(Probe(name="q1", input="[]\n0"), Probe(name="q2", input='["a", "b"]\nnull')),
    entry_point="pairs",
    rule=OutputRule(order="outer"),
    oracle=True,
)
ASSERTS = CodeTask(
    task_id="f",
    statement="Write f.",
    public=(AssertBody(name="p1", body="assert f(1) == 2"),),
    probes=(Probe(name="q1", input="2"), Probe(name="q2", input='"x"')),
    entry_point="f",
    oracle=True,
)


@pytest.fixture(scope="module")
def judge() -> Iterator[CodeJudge]:
    yield CodeJudge("bubblewrap")
    close_shared_sandboxes()


def judged(judge: CodeJudge, task: CodeTask, program: str) -> Verdict:
    return judge.judge(task, f"```python\n{program}\n```")


def signature(judge: CodeJudge, task: CodeTask, program: str) -> tuple[str, ...]:
    return judged(judge, task, program).signature


PAIRS = "def pairs(a, b): return [[x, b] for x in a]"
ALIKE = [
    (STDIO, "print(2 * int(input()))", "n = int(input())\nprint('', n + n, end='')"),
    (STDIO, "print(7)\nprint(8)", "print(7, 8)"),
    (STDIO, "print(7)\n1/0", "import sys\nsys.stdout.write('other')\n0/0"),
    (STDIO, "print(print)\nprint(object())", "print(print)\nx = [1]\nprint(object())"),
    (CALLS, PAIRS, "def pairs(a, b): return [(x, b) for x in a[::-1]]"),
    (CALLS, "def pairs(a, b): return {}", "class Solution:\n def pairs(self, a, b): return dict()"),
    (ASSERTS, "def f(n): return n * 2", "def f(n): return n + n"),
    (ASSERTS, "def f(n): raise ValueError(n)", "def f(n): raise ValueError('at 0x7f')"),
    (ASSERTS, "def f(n)", "def f(n):"),
]
DIFFERENT = [
    (STDIO, "print(2 * int(input()))", "print(2 * abs(int(input())))"),
    (STDIO, "print(7)", "print(8)"),
    (STDIO, "1/0", "[][0]"),
    (CALLS, PAIRS, "def pairs(a, b): return [[x, b or 0] for x in a]"),
    (CALLS, "def pairs(a, b): return 1", "def pairs(a, b): return '1'"),
    (ASSERTS, "def f(n): return n * 2", "def f(n): return n + 1"),
    (ASSERTS, "def f(n): return 7", "def f(n): return 8"),
    (ASSERTS, "def f(n): raise ValueError", "def f(n): raise KeyError"),
    (ASSERTS, "def f(n)", "def g(n): return n"),
]


@pytest.mark.parametrize(("task", "one", "other"), ALIKE)
def test_programs_that_behave_alike_have_equal_signatures(
    judge: CodeJudge, task: CodeTask, one: str, other: str
) -> None:
    assert signature(judge, task, one) == signature(judge, task, other)


@pytest.mark.parametrize(("task", "one", "other"), DIFFERENT)
def test_programs_that_behave_differently_have_different_signatures(
    judge: CodeJudge, task: CodeTask, one: str, other: str
) -> None:
    assert signature(judge, task, one) != signature(judge, task, other)


@pytest.mark.parametrize("task", [STDIO, CALLS, ASSERTS])
@pytest.mark.parametrize("program", ["def f(n): return n\nprint(3)", "1/0", "def"])
def test_a_signature_has_a_digest_for_each_public_test_and_each_probe(
    judge: CodeJudge, task: CodeTask, program: str
) -> None:
    found = signature(judge, task, program)
    assert len(found) == len(task.public) + len(task.probes)
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in found)


def test_a_reply_without_a_program_has_no_signature(judge: CodeJudge) -> None:
    assert judge.judge(STDIO, "I cannot.").signature == ()


def test_signatures_are_the_same_in_every_process_and_from_the_cache(judge: CodeJudge) -> None:
    program = "import time\nprint(object(), id(object()) > 0, __name__, {'a', 'b', 'c', 'd'})"
    first = judged(judge, STDIO, program)
    again = judged(judge, STDIO, program)
    fresh = judged(CodeJudge("bubblewrap", cache=False), STDIO, program)
    assert (first.cached, again.cached, fresh.cached) == (False, True, False)
    assert first.signature == again.signature == fresh.signature


@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_signatures_are_the_same_in_docker_and_in_bubblewrap(judge: CodeJudge) -> None:
    docker = CodeJudge("docker")
    for task, one, other in ALIKE + DIFFERENT:
        for program in (one, other):
            assert signature(docker, task, program) == signature(judge, task, program)


def test_probes_change_nothing_but_the_signature(judge: CodeJudge) -> None:
    for task, one, other in ALIKE + DIFFERENT:
        for program in (one, other):
            with_probes = judged(judge, task, program)
            without = judged(judge, replace(task, probes=()), program)
            assert with_probes.signature[: len(task.public)] == without.signature
            assert replace(with_probes, signature=(), cached=False) == replace(
                without, signature=(), cached=False
            )


def test_a_program_that_runs_out_of_time_is_probed_no_further(judge: CodeJudge) -> None:
    probes = tuple(Probe(name=str(n), input=f"{n}\n") for n in (3, 0, 1, 2))
    task = replace(STDIO, probes=probes, time_limit_s=0.2)
    hangs = "n = int(input())\nwhile n == 0: pass\nprint(2 * n)"
    verdict = judged(judge, task, hangs)
    right = signature(judge, task, "print(2 * int(input()))")
    assert (verdict.score, verdict.solved) == (1.0, True)
    same = [mine == theirs for mine, theirs in zip(verdict.signature, right, strict=True)]
    # Probes come in parts of 1, 2, 4, ...: that of 1 shares a part with the one that hangs.
    assert same == [True, True, True, False, True, False]


def test_a_probe_that_cannot_be_carried_leaves_the_others(judge: CodeJudge) -> None:
    nested = "[" * 500 + "]" * 500  # deeper than values are carried
    inputs = ("2", nested, "3", "4")
    probes = tuple(Probe(name=str(n), input=text) for n, text in enumerate(inputs))
    task = replace(ASSERTS, probes=probes)
    double = signature(judge, task, "def f(n): return 2 * n")
    other = signature(judge, task, "def f(n): return 2 * n if n < 4 else -n")
    same = [mine == theirs for mine, theirs in zip(double, other, strict=True)]
    assert same == [True, True, True, True, False]
    assert len({*double[1:]}) == 4


def test_a_program_that_answers_no_test_is_not_probed(judge: CodeJudge) -> None:
    verdict = judged(judge, STDIO, "n = int(input())\nassert n < 1\nprint(n)")
    assert verdict.signature[2] == verdict.signature[3]


def test_a_custom_checker_judges_no_probe_and_leaves_answers_apart(judge: CodeJudge) -> None:
    task = replace(
        STDIO, checker="def check(input, output, expected):\n    return output.strip().isdigit()"
    )
    one, other = (judged(judge, task, f"print({number})") for number in (7, 8))
    assert one.score == other.score == 1.0
    assert one.signature != other.signature


def test_a_judge_may_leave_probes_out_or_run_some(judge: CodeJudge) -> None:
    many = replace(
        STDIO, probes=tuple(Probe(name=str(n), input=f"{n}\n") for n in range(MAX_PROBES + 4))
    )
    program = "print(2 * int(input()))"
    full = signature(judge, many, program)
    assert len(full) == 2 + MAX_PROBES
    for count in (0, 3):
        some = pickle.loads(pickle.dumps(CodeJudge("bubblewrap", probes=count)))
        assert signature(some, many, program) == full[: 2 + count]
    with pytest.raises(ValueError, match="probes"):
        CodeJudge(probes=-1)


texts = st.text(max_size=40) | st.sampled_from(
    ["Traceback\n  File\nValueError: x", "  \n\ud800", "\0", "  a\nsolution.E", "x" * 100_000]
)


@given(st.sampled_from(list(Status)), texts, texts, st.sampled_from(["", "0" * 16]))
def test_whatever_a_program_says_makes_one_digest(
    status: Status, stderr: str, message: str, digest: str
) -> None:
    outcome = CaseResult(name="", status=status, stderr=stderr, message=message, digest=digest)
    for test in (STDIO.public[0], CALLS.public[0], ASSERTS.public[0]):
        [found] = signature_of_tests([test], [outcome])
        assert re.fullmatch("[0-9a-f]{16}", found)
    found, left_out = signature_of_probes([outcome], of=2)
    assert re.fullmatch("[0-9a-f]{16}", found)
    assert found != left_out


@pytest.mark.parametrize(
    ("stderr", "name"),
    [
        ("Traceback (most recent call last):\n  File\nValueError: a\nb: c", "ValueError"),
        ("  File\n    raise E\nsolution.E", "E"),
        ("  [Previous line repeated 975 more times]\nRecursionError: deep", "RecursionError"),
        ("  File\nKeyError: 1\n\nDuring it:\n\n  File\nTypeError: 2\n", "TypeError"),
    ],
)
def test_the_class_of_the_last_exception_counts_and_not_its_words(stderr: str, name: str) -> None:
    def signature_of(text: str) -> tuple[str, ...]:
        outcome = CaseResult(name="", status=Status.RUNTIME_ERROR, stderr=text)
        return signature_of_tests(STDIO.public[:1], [outcome])

    assert signature_of(stderr) == signature_of(f"  File\n{name}: in other words")
    assert signature_of(stderr) != signature_of("  File\nOtherError")


def test_a_judges_statistics_count_tests_and_no_probes() -> None:
    judge = CodeJudge("bubblewrap")
    judged(judge, STDIO, "print(2 * int(input()))")
    assert (judge.stats.nodes, judge.stats.cases) == (1, 3)


def test_tasks_with_probes_survive_their_file_format() -> None:
    for task in (STDIO, CALLS, ASSERTS):
        assert task_from_json(task_to_json(task)) == task


def test_a_probe_of_a_function_has_to_be_json() -> None:
    with pytest.raises(InvalidTask, match="probe 'q1': expected one JSON value a line"):
        replace(CALLS, probes=(Probe(name="q1", input="[1, 2"),))

"""Function calls: what is called, what comes back, and what the verdict on it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import (
    CaseResult,
    FunctionCase,
    Grader,
    Limits,
    Program,
    RunCache,
    Status,
    StdioCase,
    UnsupportedCase,
    ValueChecker,
    bundle,
    values,
)
from sandbox.codec import pack
from sandbox.functions import outcome
from sandbox.local import LocalBackend
from sandbox.pool import WorkerPool
from sandbox.worker import Execution

TWO_SUM = """
class Solution:
    def twoSum(self, nums: List[int], target: int) -> List[int]:
        seen = {}
        for i, n in enumerate(nums):
            if target - n in seen:
                return [seen[target - n], i]
            seen[n] = i
"""


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(WorkerPool(LocalBackend(), size=1), cache=RunCache()) as grader:
        yield grader


def call(*args: Any, expected: Any = None, entry_point: str = "f", **options: Any) -> FunctionCase:
    return FunctionCase(
        name="call", entry_point=entry_point, args=args, expected=expected, **options
    )


def judged(grader: Grader, source: str, case: FunctionCase, **limits: Any) -> CaseResult:
    return grader.grade(Program(source), [case], Limits(**limits)).cases[0]


def test_a_method_of_a_leetcode_solution_is_called_on_an_instance(grader: Grader) -> None:
    cases = [
        FunctionCase.from_json_lines("a", "twoSum", "[2, 7, 11, 15]\n9", "[0, 1]"),
        FunctionCase.from_json_lines("b", "Solution.twoSum", "[3, 2, 4]\n6\n", "[1, 2]\n"),
        FunctionCase.from_json_lines("c", "twoSum", "[3, 3]\n6", "[0, 0]"),
    ]
    report = grader.grade(Program(TWO_SUM), cases)
    assert [case.status for case in report.cases] == [
        Status.ACCEPTED,
        Status.ACCEPTED,
        Status.WRONG_ANSWER,
    ]
    assert report.cases[2].message == "at [1]: the value differs"
    assert report.cases[2].returned == "[0, 1]"


def test_a_plain_function_is_called_and_main_blocks_do_not_run(grader: Grader) -> None:
    source = "def f(a, b): return a * b\nif __name__ == '__main__': print(f(*input().split()))"
    assert judged(grader, source, call(6, 7, expected=42)).status is Status.ACCEPTED


def test_the_class_solution_goes_before_the_module_for_a_bare_name(grader: Grader) -> None:
    source = "def f(): return 'module'\nclass Solution:\n    def f(self): return 'method'"
    assert judged(grader, source, call(expected="method")).status is Status.ACCEPTED
    other = "def f(): return 'module'\nclass Solution:\n    def g(self): return 'method'"
    assert judged(grader, other, call(expected="module")).status is Status.ACCEPTED
    dotted = call(expected="method", entry_point="Solution.f")
    assert judged(grader, source, dotted).status is Status.ACCEPTED


@pytest.mark.parametrize(
    ("source", "entry_point", "status", "message"),
    [
        ("x = 1", "f", Status.RUNTIME_ERROR, "the program defines no function 'f', nor a class"),
        ("f = 3", "f", Status.RUNTIME_ERROR, "the program defines no function 'f', nor a class"),
        ("", "S.m", Status.RUNTIME_ERROR, "the program defines no method 'm' in a class 'S'"),
        ("def f(:", "f", Status.COMPILE_ERROR, "SyntaxError: invalid syntax"),
        ("x = '\udcff'", "f", Status.COMPILE_ERROR, "UnicodeEncodeError: 'utf-8' codec"),
        ("1 / 0", "f", Status.RUNTIME_ERROR, "ZeroDivisionError: division by zero"),
        ("def f(x): return x", "f", Status.RUNTIME_ERROR, "TypeError: f() missing 1 required"),
        ("def f(): raise KeyError('k')", "f", Status.RUNTIME_ERROR, "KeyError: 'k'"),
        ("def f(): raise SystemExit", "f", Status.RUNTIME_ERROR, "SystemExit"),
        ("raise SystemExit(0)", "f", Status.RUNTIME_ERROR, "SystemExit: 0"),
        ("def f(): return f()", "f", Status.RUNTIME_ERROR, "RecursionError: maximum recursion"),
        ("def f(): raise MemoryError", "f", Status.MEMORY_LIMIT_EXCEEDED, "MemoryError"),
        ("class Solution:\n  f = 3", "f", Status.RUNTIME_ERROR, "the program defines no function"),
        (
            "class Solution:\n  def __init__(self): raise OSError(5)\n  def f(self): pass",
            *("f", Status.RUNTIME_ERROR, "OSError: 5"),
        ),
    ],
)
def test_programs_that_return_nothing_have_the_verdict_they_earn(
    grader: Grader, source: str, entry_point: str, status: Status, message: str
) -> None:
    case = judged(grader, source, call(entry_point=entry_point))
    assert case.status is status
    assert case.message.startswith(message)


def test_tracebacks_show_the_program_and_nothing_of_ours(grader: Grader) -> None:
    source = "def g(x):\n    return x[5]\n\ndef f(x):\n    return g(x)\n"
    case = judged(grader, source, call([1]))
    assert case.message == "IndexError: list index out of range"
    assert "line 5, in f\n    return g(x)" in case.stderr
    assert "guest" not in case.stderr


def test_a_deep_recursion_is_a_runtime_error_not_a_slow_one(grader: Grader) -> None:
    source = "import sys\nsys.setrecursionlimit(10 ** 5)\ndef f(x): return f(x + 1) + f(x)"
    case = judged(grader, source, call(0), cpu_s=2.0, wall_s=60.0)
    assert (case.status, case.message[:14]) == (Status.RUNTIME_ERROR, "RecursionError")


def test_what_a_function_prints_is_kept_apart_from_what_it_returns(grader: Grader) -> None:
    source = "import sys\ndef f(x):\n    print('debug', x); sys.stdout.write('tail')\n    return x"
    case = judged(grader, source, call(5, expected=5))
    assert (case.status, case.stdout, case.stderr) == (Status.ACCEPTED, "", "debug 5\ntail")


def test_standard_input_is_empty(grader: Grader) -> None:
    source = "import sys\ndef f(): return sys.stdin.read()"
    assert judged(grader, source, call(expected="")).status is Status.ACCEPTED


def test_each_case_runs_in_a_process_of_its_own(grader: Grader) -> None:
    source = "calls = []\ndef f(x):\n    calls.append(x)\n    return calls"
    cases = [call(1, expected=[1]), call(2, expected=[2]), call(3, expected=[3])]
    assert grader.grade(Program(source), cases).accepted


def test_arguments_and_values_keep_their_types(grader: Grader) -> None:
    kinds: list[Any] = [
        *(None, True, 0, -5, 10**400, 1.5, -0.0, math.inf, "é\x00\n", "\ud800"),
        *([1, [2]], {"a": [1]}, {1: 2, (3, 4): None}, {1, 2}, frozenset({"x"})),
        *(b"\x00\xff", 1 + 2j, range(0, 10, 3)),
    ]
    shown = "def f(x): return [type(x).__name__, x]"
    cases = [call(value, expected=[type(value).__name__, value]) for value in kinds]
    report = grader.grade(Program(shown), cases)
    assert [case.message for case in report.cases] == [""] * len(kinds)
    assert report.accepted


def test_a_mutated_argument_can_be_compared(grader: Grader) -> None:
    source = "class Solution:\n  def f(self, nums, k): nums[:] = nums[-k:] + nums[:-k]"
    case = call([1, 2, 3], 1, expected=[3, 1, 2], compare_argument=0)
    assert judged(grader, source, case).status is Status.ACCEPTED
    rebound = "class Solution:\n  def f(self, nums, k): nums = nums[-k:] + nums[:-k]"
    assert judged(grader, rebound, case).status is Status.WRONG_ANSWER


def test_any_of_several_answers_may_be_right(grader: Grader) -> None:
    case = call(expected="bab", alternatives=("aba",))
    for answer, right in (("bab", True), ("aba", True), ("aa", False)):
        result = judged(grader, f"def f(): return {answer!r}", case)
        assert (result.status is Status.ACCEPTED) is right


def test_apps_wraps_some_values_in_a_list(grader: Grader) -> None:
    case = FunctionCase.from_apps("a", "f", [5], [6])
    assert judged(grader, "def f(x): return x + 1", case).status is Status.ACCEPTED
    assert judged(grader, "def f(x): return [x + 1]", case).status is Status.ACCEPTED
    pairs = FunctionCase.from_apps("b", "f", [], [[1, 2], [3, 4]])
    assert judged(grader, "def f(): return [1, 2]", pairs).status is Status.WRONG_ANSWER


def test_the_names_that_leetcode_supplies_are_an_option(grader: Grader) -> None:
    source = """
class Solution:
    def f(self, xs: Optional[List[int]]) -> int:
        @cache
        def down(n): return 0 if n == 0 else 1 + down(n - 1)
        low = bisect.bisect_left(xs, 3), bisect_left(xs, 3), heapq.nsmallest(1, xs)[0]
        return [*low, Counter(xs)[2], inf > gcd(4, 6) > math.floor(1.5), accumulate(xs) and sum(xs),
                deep(5000), defaultdict(list)["a"], sys.maxsize > 0, randint(3, 3), pow(2, 5, 7)]

def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
"""
    expected = [2, 2, 1, 1, True, 6, 5000, [], True, 3, 4]
    given = call([1, 2, 3], expected=expected, assume="leetcode")
    result = judged(grader, source, given)
    assert (result.message, result.status) == ("", Status.ACCEPTED)
    bare = judged(grader, source, call([1, 2, 3], expected=expected))
    assert bare.status is Status.RUNTIME_ERROR
    assert bare.message.startswith("NameError: name 'Optional' is not defined")


def test_the_programs_own_names_go_before_the_supplied_ones(grader: Grader) -> None:
    source = "def gcd(a, b): return 'mine'\nclass Solution:\n  def f(self): return gcd(4, 6)"
    case = call(expected="mine", assume="leetcode")
    assert judged(grader, source, case).status is Status.ACCEPTED


REVERSE = """
class Solution:
    def f(self, head: Optional[ListNode]) -> Optional[ListNode]:
        last = None
        while head:
            head.next, last, head = last, head, head.next
        return last
"""
INVERT = """
class Solution:
    def f(self, root: Optional[TreeNode]) -> Optional[TreeNode]:
        if root:
            root.left, root.right = self.f(root.right), self.f(root.left)
        return root
"""


def nodes(kind: str, given: Any, expected: Any) -> FunctionCase:
    return call(given, expected=expected, arg_types=(kind,), return_type=kind, assume="leetcode")


def test_linked_lists_and_trees_travel_as_arrays(grader: Grader) -> None:
    for array, expected in (([1, 2, 3], [3, 2, 1]), ([], []), ([7], [7]), ([], None)):
        case = nodes("ListNode", array, expected)
        assert judged(grader, REVERSE, case).status is Status.ACCEPTED
    for array, expected in (
        ([4, 2, 7, 1, 3, 6, 9], [4, 7, 2, 9, 6, 3, 1]),
        ([], []),
        ([1, None, 2, 3], [1, 2, None, None, 3]),
        ([1, 2], [1, None, 2, None]),
    ):
        case = nodes("TreeNode", array, expected)
        result = judged(grader, INVERT, case)
        assert result.status is Status.ACCEPTED, result
    assert judged(grader, REVERSE, nodes("ListNode", [1, 2], [1, 2])).status is (
        Status.WRONG_ANSWER
    )


def test_a_program_may_bring_its_own_node_class(grader: Grader) -> None:
    own = "class ListNode:\n  def __init__(self, x):\n    self.val = x\n    self.next = None\n"
    assert judged(grader, own + REVERSE, nodes("ListNode", [1, 2], [2, 1])).status is (
        Status.ACCEPTED
    )


def test_lists_of_linked_lists_travel_and_changes_in_place_are_seen(grader: Grader) -> None:
    merge = "def f(lists): return min(lists, key=lambda node: node.val)"
    lists = {"arg_types": ("list[ListNode]",), "return_type": "ListNode"}
    case = call([[3, 4], [1, 2]], expected=[1, 2], **lists)
    assert judged(grader, merge, case).status is Status.ACCEPTED
    cut = "def f(head, x): head.next = None"
    seen = call([1, 2], 0, expected=[1], arg_types=("ListNode",), compare_argument=0)
    assert judged(grader, cut, seen).status is Status.ACCEPTED


def test_a_list_without_an_end_is_too_large_a_value(grader: Grader) -> None:
    loop = "def f(head):\n  head.next = head\n  return head"
    case = judged(grader, loop, nodes("ListNode", [1], [1]))
    assert case.status is Status.OUTPUT_LIMIT_EXCEEDED


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (call(1, arg_types=("Node",)), "needs the type 'Node'"),
        (call(1, arg_types=("TreeNode",)), "is given as an array, got 1"),
        (call(arg_types=("",)), "more arg_types than args"),
        (call(1, compare_argument=1), "compares argument 1, but there are 1"),
        (call(object()), "an argument is a value of type object"),
        (call(expected=object()), "the expected value is a value of type object"),
    ],
)
def test_what_cannot_be_carried_is_unsupported(
    grader: Grader, case: FunctionCase, reason: str
) -> None:
    with pytest.raises(UnsupportedCase, match=reason):
        judged(grader, "def f(*args): pass", case)


def test_broken_json_names_the_case_and_the_line() -> None:
    with pytest.raises(ValueError, match=r"case 'a': line 2 of the arguments is not JSON"):
        FunctionCase.from_json_lines("a", "f", "1\n[2", "3")
    with pytest.raises(ValueError, match=r"case 'a': the expected value is not JSON"):
        FunctionCase.from_json_lines("a", "f", "1", "{")
    separator = FunctionCase.from_json_lines("a", "f", '"\u2028"', "1")
    assert separator.args == ("\u2028",)


def test_calls_are_remembered_whatever_is_expected(grader: Grader) -> None:
    source = "def f(x): return x + 1  # remembered"
    assert grader.grade(Program(source), [call(1, expected=2)]).cached == 0
    again = grader.grade(Program(source), [call(1, expected=3), call(1, expected=2)])
    assert (again.cached, again.passed) == (2, 1)
    assert grader.grade(Program(source), [call(2, expected=3)]).cached == 0


def test_cases_of_every_kind_mix_in_order(grader: Grader) -> None:
    source = "def f(x): return 2 * x\nif __name__ == '__main__': print(f(int(input())))"
    cases = [
        StdioCase(name="stdio", stdin="2", expected="4"),
        call(2, expected=4),
        call(2, expected=4, assume="leetcode"),
        StdioCase(name="again", stdin="3", expected="6"),
    ]
    report = grader.grade(Program(source), cases)
    assert [case.name for case in report.cases] == ["stdio", "call", "call", "again"]
    assert report.accepted


def test_the_first_failure_ends_a_grading_that_asks_for_it(grader: Grader) -> None:
    cases = [call(1, expected=1), call(2, expected=0), call(3, expected=3)]
    source = Program("def f(x): return x")
    report = grader.grade(source, cases, stop_at_first_failure=True)
    assert [case.status for case in report.cases] == [Status.ACCEPTED, Status.WRONG_ANSWER]


def test_a_guest_of_another_bytecode_compiles_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "magic", lambda: b"another")
    with Grader(WorkerPool(LocalBackend(), size=1)) as grader:
        assert judged(grader, TWO_SUM, call(3, entry_point="len")).status is Status.RUNTIME_ERROR
        case = FunctionCase.from_json_lines("a", "twoSum", "[3, 3]\n6", "[0, 1]")
        assert judged(grader, TWO_SUM, case).status is Status.ACCEPTED


def test_order_is_an_option_of_the_comparison(grader: Grader) -> None:
    source = "def f(): return [['b', 'a'], ['c']]"
    expected = [["c"], ["a", "b"]]
    for order, status in (
        ("given", Status.WRONG_ANSWER),
        ("outer", Status.WRONG_ANSWER),
        ("any", Status.ACCEPTED),
    ):
        checker = ValueChecker(order=order)  # type: ignore[arg-type]
        assert judged(grader, source, call(expected=expected, checker=checker)).status is status


trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.builds(
        lambda tag, text: {tag: text}, st.sampled_from("ibuoz"), st.text("-0f\xff", max_size=4)
    )
    | st.builds(lambda parts: {"c": parts}, st.lists(st.floats(), min_size=2, max_size=2)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(
            lambda tag, items: {tag: items},
            st.sampled_from("tszdgrochx"),
            st.lists(inner, max_size=4),
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=40) | trees.map(lambda tree: pack(["returned", tree])))
def test_nothing_that_a_program_sends_upsets_the_host(sent: bytes) -> None:
    status, message, tree = outcome(Execution(status=None, stdout=b"R" + sent), "f")
    assert status in (None, Status.RUNTIME_ERROR, Status.OUTPUT_LIMIT_EXCEEDED)
    if status is None:
        for checker in (ValueChecker(), ValueChecker(order="any", iterables=True)):
            values.explain(tree, ["no such value"], checker)
        assert isinstance(values.show(tree), str)
    else:
        assert message

"""Records of broken programs with their repair: HumanEvalPack (the fix track) and QuixBugs.

The statement shows the broken program; whoever solves the task mends it.
"""

from __future__ import annotations

from dataclasses import replace

from .code import AssertBody, CodeTask
from .humaneval import TIME_LIMIT_S, doctest_asserts
from .humaneval import task_from_record as humaneval_task
from .records import Record

REQUIRED_PACK = ("task", "prompt", "declaration", "entry_point", "public_test", "hidden_test")
"""Fields by which HumanEvalPack is recognised."""

REQUIRED_QUIXBUGS = ("name", "docstring", "buggy_program", "tests")
"""Fields by which QuixBugs is recognised."""


def task_from_pack_record(record: Record) -> CodeTask:
    """Build a task from one record of HumanEvalPack: its `public_test`, its `hidden_test`.

    Raises:
        InvalidTask: a field is missing or wrong, or the code in one does not parse.
    """
    task_id = record.filled("task")
    fields = {**record.data, "task_id": task_id, "test": record.filled("hidden_test")}
    task = humaneval_task(
        record.inner(fields, ""),
        public_tests={task_id: record.text("public_test")},
    )
    broken = record.filled("declaration") + record.filled("buggy_solution")
    return replace(task, statement=_statement(record.filled("prompt"), broken))


def task_from_quixbugs_record(record: Record) -> CodeTask:
    """Build a task from one record of QuixBugs.

    Public are the docstring's examples; where it has none, `tests` serve search and reward, the
    task then being marked `oracle` and its tests not shown.

    Raises:
        InvalidTask: a field is missing or wrong.
    """
    name = record.filled("name")
    docstring = record.filled("docstring")
    examples = docstring.strip().removeprefix('"""').removesuffix('"""')
    hidden = AssertBody(name="hidden", body=record.filled("tests"))
    public = tuple(
        AssertBody(name=f"public/{number}", body=body)
        for number, body in enumerate(doctest_asserts(examples, name), start=1)
    )
    return CodeTask(
        task_id=f"QuixBugs/{name}",
        statement=_statement(docstring, record.filled("buggy_program")),
        public=public or (hidden,),
        hidden=(hidden,) if public else (),
        entry_point=name,
        time_limit_s=TIME_LIMIT_S,
        oracle=not public,
        show_tests=bool(public),
    )


def _statement(text: str, broken: str) -> str:
    return f"{text.rstrip()}\n\n# This program is wrong; mend it.\n{broken.rstrip()}\n"

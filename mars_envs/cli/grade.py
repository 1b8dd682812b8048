"""`mars-envs sandbox grade`: grade programs, compare with the verdicts recorded for them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidSetting, InvalidTask
from ..importing import is_importable
from ..judging.agreement import WORDS, is_known
from ..judging.code import sandbox_package, shared_sandbox
from ..tasks.code import CodeTask
from ..tasks.load import load_tasks, read_task_file
from ..tasks.submissions import Submission, read_submissions
from .config import GradeConfig
from .console import console, progress
from .files import check_input, check_output
from .grade_log import ResultLog
from .grade_report import counted, print_report
from .grading import Graded, Grading, How, Item, program_of

if TYPE_CHECKING:
    from sandbox import Sandbox

_SHOWN_PROBLEMS = 20


def grade(config: GradeConfig) -> int:
    """Grade, print tables, write JSON lines; the exit status is explained in the command's help."""
    if config.docker_host:
        os.environ["DOCKER_HOST"] = config.docker_host
    log = ResultLog(check_output(Path(config.output))) if config.output else None
    items, problems = collect_items(config)
    _print_problems(problems)
    if not items:
        raise InvalidTask("there is nothing to grade: no submission for a known task was found")
    _check_limits(config, items)
    sandbox = open_place(config)
    tasks = len({item.task.task_id for item in items})
    console.print(
        f"{counted(len(items), 'submission')} for {counted(tasks, 'task')}; programs run in: "
        f"{sandbox.capabilities.backend}"
    )
    how = How(
        tests=config.tests,
        stop_at_first_failure=config.stop_at_first_failure,
        time_factor=config.time_factor,
        memory_mb=config.memory_mb,
        preamble=config.preamble,
        packages=tuple(sorted(config.packages or ())),
        python=config.python,
    )
    workers = config.workers or len(os.sched_getaffinity(0))
    started = time.monotonic()
    results = _run(Grading(sandbox, how, workers=workers), items, log)
    print_report(results, backend=sandbox.capabilities.backend, wall_s=time.monotonic() - started)
    if problems:
        what = counted(len(problems), "record")
        _say(f"{what} could not be used, as said at the top", "red")
    if log is not None:
        console.print(f"results: {log.path}", markup=False, soft_wrap=True)
    if problems or not all(result.graded for result in results):
        return 2
    return 1 if any(result.differs for result in results) else 0


def open_place(config: GradeConfig) -> Sandbox:
    """Open the sandbox that is asked for, with the options of its backend.

    Raises:
        SandboxError: it cannot be opened.
    """
    options: dict[str, Any] = {
        "packages": tuple(config.packages or ()) or None,
        "python": config.python,
        "memory_mb": config.worker_memory_mb,
    }
    given = {name: value for name, value in options.items() if value is not None}
    # An engine that was named is meant: without an answer from it, nothing else will do.
    named = config.docker_host is not None and config.sandbox == "auto"
    sandbox = shared_sandbox("docker" if named else config.sandbox, workers=config.workers)
    if not given:
        return sandbox
    # Options belong to a backend: to the one that `auto` has chosen.
    return shared_sandbox(sandbox.capabilities.backend, workers=config.workers, **given)


def collect_items(config: GradeConfig) -> tuple[list[Item], list[InvalidTask]]:
    """Return what is to be graded, and what is wrong with the records that cannot be.

    Raises:
        InvalidTask: a file cannot be read, or no task in it can be used.
        InvalidSetting: there is no file to take tasks or submissions from.
    """
    tasks, problems = _tasks(config)
    by_id = {task.task_id: task for task in tasks}
    if not by_id:
        if any(isinstance(one, Submission) for one in read_submissions(Path(config.problems))):
            raise InvalidTask(
                f"{config.problems} holds programs, not problems; name the file of their problems "
                f"first, then --submissions {config.problems}"
            )
        _print_problems(problems)
        raise InvalidTask(f"{config.problems}: none of its {len(problems)} records can be used")
    files = [Path(name) for name in config.submissions or [config.problems]]
    told = {_place(problem) for problem in problems}
    items: list[Item] = []
    for file, name in zip(files, _set_names(files), strict=True):
        if config.submissions is None and not file.exists():
            raise InvalidSetting(
                f"{config.problems} is no file with submissions of its own; name some with "
                "--submissions FILE"
            )
        if config.submissions is not None or not file.is_dir():
            check_input(file, "submissions file")
        for found in read_submissions(file):
            try:
                if isinstance(found, InvalidTask):
                    raise found
                if config.submissions is None and found.task_id not in by_id:
                    continue  # its task, in the same line, was told of
                items.append(_item(found, name, by_id, config))
            except InvalidTask as problem:
                if _place(problem) not in told:
                    problems.append(problem)
    return items[: config.limit], problems


def _set_names(files: Sequence[Path]) -> list[str]:
    """Return a name for each file: short, unless two would share it."""
    stems = [file.stem for file in files]
    if len(set(files)) < len(files):
        raise InvalidSetting("--submissions names the same file twice; leave one out")
    return [
        stem if stems.count(stem) == 1 else str(file)
        for stem, file in zip(stems, files, strict=True)
    ]


def _place(problem: InvalidTask) -> str:
    """Return where a complaint about a record says that it is: file and line."""
    return str(problem).partition(":")[0].partition(", field")[0]


def _tasks(config: GradeConfig) -> tuple[Sequence[CodeTask], list[InvalidTask]]:
    path = Path(config.problems)
    built_in = config.problems.split(":")[0] == "tiny_code"
    if not path.exists() and (built_in or is_importable(config.problems)):
        return load_tasks(config.problems), []
    if not path.is_dir():
        check_input(path, "task file")
    return read_task_file(path, format=config.format)


def _check_limits(config: GradeConfig, items: Sequence[Item]) -> None:
    """Check that the limits asked for can be set, before a sandbox is opened.

    Raises:
        InvalidSetting: they cannot.
    """
    limits = sandbox_package().Limits
    try:
        if config.memory_mb is not None:
            limits(memory_mb=config.memory_mb)
    except ValueError as error:
        raise InvalidSetting(f"--memory-mb {config.memory_mb}: {error}") from error
    if config.time_factor == 1.0:
        return
    for task in {item.task.task_id: item.task for item in items}.values():
        try:
            limits(cpu_s=task.time_limit_s * config.time_factor)
        except ValueError as error:
            raise InvalidSetting(
                f"--time-factor {config.time_factor:g} times the {task.time_limit_s:g} s of task "
                f"{task.task_id!r} is no limit: {error}; choose another factor"
            ) from error


def _item(
    submission: Submission, name: str, tasks: dict[str, CodeTask], config: GradeConfig
) -> Item:
    """Put a submission together with its task.

    Raises:
        InvalidTask: it is for no known task, or what is recorded with it cannot be understood.
    """
    task = tasks.get(submission.task_id)
    where = f"{name}: {submission.name}"
    if task is None:
        raise InvalidTask(
            f"{where}: no task {submission.task_id!r} in {config.problems} (its first one is "
            f"{next(iter(tasks))!r})"
        )
    for word in (submission.recorded, *submission.recorded_tests):
        if word and not is_known(word):
            raise InvalidTask(
                f"{where}: unknown verdict {word!r}; the known ones are {', '.join(WORDS)}"
            )
    count = len(task.public) + len(task.hidden)
    if submission.recorded_tests and len(submission.recorded_tests) != count:
        raise InvalidTask(
            f"{where}: {len(submission.recorded_tests)} verdicts are recorded for the {count} "
            f"tests of {task.task_id!r}; record one for each, null where there is none"
        )
    item = Item(set=name, task=task, submission=submission)
    program_of(item)  # says what is missing of a completion
    return item


def _run(grading: Grading, items: Sequence[Item], log: ResultLog | None) -> list[Graded]:
    """Grade what the output does not hold yet, with a progress bar; return results in order."""
    keys = [grading.key(item) for item in items]
    known: dict[tuple[str, str], Graded] = {}
    if log is not None:
        wanted = {
            (item.set, item.submission.name): key for item, key in zip(items, keys, strict=True)
        }
        known = log.resume(wanted)
        if known:
            console.print(f"{counted(len(known), 'result')} of {len(items)} taken from {log.path}")
    results = dict(known)
    left = [item for item in items if (item.set, item.submission.name) not in known]
    differ = failed = 0
    with progress() as bar:
        line = bar.add_task("grade", total=len(items), completed=len(known), note="")
        for result in grading.run(left):
            results[result.set, result.name] = result
            if log is not None:
                log.append(result)
            differ += result.differs
            failed += not result.graded
            note = f"{differ} differ" + (f", {failed} not graded" if failed else "")
            bar.update(line, advance=1, note=note)
    ordered = [results[item.set, item.submission.name] for item in items]
    if log is not None:
        log.rewrite(ordered)
    return ordered


def _print_problems(problems: Sequence[InvalidTask]) -> None:
    if not problems:
        return
    _say(f"{counted(len(problems), 'record')} cannot be used:", "red")
    for problem in problems[:_SHOWN_PROBLEMS]:
        _say(f"  {problem}")
    if len(problems) > _SHOWN_PROBLEMS:
        _say(f"  … and {len(problems) - _SHOWN_PROBLEMS} more")


def _say(text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False)

"""What an environment is given (tasks, prompts, a judge), in forms that copy and pickle well.

Tasks are frozen and prompts are functions, so copies share them. A live judge (processes, sockets)
may not survive a copy or a pickle: its handle does. A copy shares the judge; a pickled handle makes
its own where it wakes up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Self, cast

from ..importing import import_object, is_importable
from ..judging.base import Judge, Verdict
from ..tasks.code import CodeTask
from .prompts import Prompts, resolve_prompts

JudgeSource = str | Judge | Callable[[], Judge]


class TaskSet(tuple[CodeTask, ...]):
    """The tasks that episodes are drawn from."""

    def __deepcopy__(self, memo: dict[int, Any]) -> TaskSet:
        return self

    def find(self, options: Mapping[str, Any]) -> CodeTask | None:
        """Return the task that the options of `reset` ask for; None: any.

        Raises:
            ValueError: there is no such task.
        """
        wanted = options.get("task")
        if wanted is None:
            return None
        for task in self:
            if task.task_id == wanted:
                return task
        some = ", ".join(repr(task.task_id) for task in self[:5])
        raise ValueError(f"no task {wanted!r} among {len(self)} tasks (the first are {some})")


class PromptsHandle:
    """A set of prompts, which may be a module: those neither pickle nor copy by themselves.

    Args:
        source: see `resolve_prompts`.
    """

    def __init__(self, source: str | Prompts) -> None:
        self._source = source.__name__ if isinstance(source, ModuleType) else source
        self.value = resolve_prompts(source)

    def __deepcopy__(self, memo: dict[int, Any]) -> PromptsHandle:
        return self

    def __reduce__(self) -> tuple[type[PromptsHandle], tuple[str | Prompts]]:
        return PromptsHandle, (self._source,)


class JudgeHandle:
    """Names a judge, and makes it for the first verdict.

    Args:
        source: "code" (programs run in the sandbox), "module:name" of a class or function that
            makes a judge or of a judge, such a class or function, or a judge.

    Raises:
        ValueError: nothing of that name, or not a judge.
    """

    def __init__(self, source: JudgeSource) -> None:
        named = isinstance(source, str) and (source == "code" or is_importable(source))
        if not (named or hasattr(source, "judge") or callable(source)):
            raise ValueError(
                f"unknown judge {source!r}; expected 'code', 'module:name', a judge (with a method "
                "`judge`), or something callable that makes one"
            )
        self._source = source
        self._judge: Judge | None = None
        self._owned = False
        self._making = threading.Lock()

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Judge one completion; the first call makes the judge. May be called from threads."""
        with self._making:
            if self._judge is None:
                self._judge = self._make()
            judge = self._judge
        return judge.judge(task, completion)

    def judge_all(
        self, task: CodeTask, completions: Sequence[str], threads: int | None = None
    ) -> list[Verdict]:
        """Judge several completions at once, in threads that end with this call.

        Args:
            task: the task of all.
            completions: what to judge.
            threads: how many at a time; None: all.

        Returns:
            The verdicts in the order of the completions, whoever was ready first.

        Raises:
            Exception: what the first completion raised, of those that did; all have ended by then.
        """
        threads = min(threads or len(completions), len(completions))
        if threads < 2:
            return [self.judge(task, completion) for completion in completions]
        with ThreadPoolExecutor(threads, thread_name_prefix="judge") as pool:
            waiting = [pool.submit(self.judge, task, completion) for completion in completions]
        return [verdict.result() for verdict in waiting]

    def close(self) -> None:
        """Close the judge if this handle made it; one that was handed in is its owner's."""
        if self._owned and self._judge is not None:
            self._judge.close()
        self._judge = None

    def _make(self) -> Judge:
        source: Any = self._source
        if source == "code":
            from ..judging.code import CodeJudge

            source = CodeJudge
        elif isinstance(source, str):
            source = import_object(source)
        if isinstance(source, type) or not hasattr(source, "judge"):
            source = source()
            self._owned = True
        if not hasattr(source, "judge"):
            raise ValueError(f"{self._source!r} gave no judge but a {type(source).__name__}")
        return cast(Judge, source)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[JudgeHandle], tuple[JudgeSource]]:
        return JudgeHandle, (self._source,)

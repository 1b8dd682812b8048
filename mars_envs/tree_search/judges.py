"""The judge of an environment: from plain data to a live object, made when it is first needed.

A handle survives `pickle` and `deepcopy` although a live judge (processes, sockets) may not: a copy
shares the judge, a pickled handle makes its own where it wakes up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

from ..importing import import_object, is_importable
from ..judging.base import Judge, Verdict
from ..tasks.code import CodeTask

JudgeSource = str | Judge | Callable[[], Judge]


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

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Judge one completion; the first call makes the judge."""
        if self._judge is None:
            self._judge = self._make()
        return self._judge.judge(task, completion)

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

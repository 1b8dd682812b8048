"""The judge of an environment, from plain data to a live object, made when it is first needed.

A handle survives `pickle` and `deepcopy` although a live judge (processes, sockets) may not: a copy
shares the judge, a pickled handle makes its own where it wakes up.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any, Self, cast

from ..importing import import_object, is_importable
from ..judging.base import Judge, Verdict
from ..tasks.code import CodeTask

JudgeSource = str | Judge | Callable[[], Judge]

_shared_lock = threading.Lock()
_shared: dict[int, Judge] = {}


def shared_code_judge() -> Judge:
    """Return this process's `CodeJudge`: one sandbox serves every environment in it.

    A forked child makes its own, since it cannot talk to its parent's workers.
    """
    with _shared_lock:
        pid = os.getpid()
        if pid not in _shared:
            from ..judging.code import CodeJudge

            judge = CodeJudge(sandbox="auto")
            atexit.register(judge.close)
            _shared[pid] = judge
        return _shared[pid]


class JudgeHandle:
    """Names a judge, and opens it at the first verdict.

    Args:
        source: "code" (run in the sandbox, shared by the process), "module:name" of a class or
            function that makes a judge or of a judge, such a class or function, or a judge.

    Raises:
        ValueError: nothing of that name, or not a judge.
    """

    def __init__(self, source: JudgeSource) -> None:
        if isinstance(source, str) and source != "code" and not is_importable(source):
            raise ValueError(f"unknown judge {source!r}; expected 'code', 'module:name' or a judge")
        self._source = source
        self._judge: Judge | None = None
        self._owned = False

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Judge one completion; the first call opens the judge."""
        if self._judge is None:
            self._judge = self._open()
        return self._judge.judge(task, completion)

    def close(self) -> None:
        """Close the judge if this handle made it; a shared or given judge is left alone."""
        if self._owned and self._judge is not None:
            self._judge.close()
        self._judge = None

    def _open(self) -> Judge:
        if self._source == "code":
            return shared_code_judge()
        found: Any = import_object(self._source) if isinstance(self._source, str) else self._source
        if isinstance(found, type) or not hasattr(found, "judge"):
            if not callable(found):
                raise ValueError(f"{self._source!r} is no judge: it has no method `judge`")
            found = found()
            self._owned = True
        return cast(Judge, found)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[JudgeHandle], tuple[JudgeSource]]:
        return JudgeHandle, (self._source,)

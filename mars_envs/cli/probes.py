"""`--probes`: inputs on which programs are compared with each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..tasks.code import CodeTask
from ..tasks.probes import load_probes, mutated_probes, with_probes
from .files import check_input


def probed(tasks: Sequence[CodeTask], probes: str) -> list[CodeTask]:
    """Return the tasks with probes from a file in EvalPlus' layout, or made by mutation.

    Raises:
        InvalidSetting: there is no such file.
        InvalidTask: the file holds no probes.
    """
    if probes == "mutated":
        return [dataclasses.replace(task, probes=mutated_probes(task)) for task in tasks]
    check_input(Path(probes), "file of probes")
    return with_probes(tasks, load_probes(probes))

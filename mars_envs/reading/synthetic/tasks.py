"""Synthetic tasks by the name of a family and its settings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidSetting
from ..task import ReadingTask
from .build import build_task, task_id
from .families import FAMILIES
from .lazy import SyntheticTasks
from .settings import SyntheticSettings, settings_from

_SPECIAL = ("hops", "queries", "values", "matches", "revisions", "older")
"""Options that only some families have."""


@dataclass(frozen=True, slots=True)
class FamilyRecipe:
    """How the tasks of a family are built.

    Args:
        family: its name.
        settings: of all tasks.
    """

    family: str
    settings: SyntheticSettings

    @property
    def tokens(self) -> int:
        """Of every document."""
        return self.settings.tokens

    @property
    def tokenizer(self) -> Any:
        """Counts them."""
        return self.settings.tokenizer

    def task_id(self, index: int) -> str:
        """Return the name of a task."""
        return task_id(FAMILIES[self.family], self.settings, index)

    def build(self, index: int, words: int, ratio: float) -> ReadingTask:
        """Build a task with a document of so many words, each of `ratio` tokens."""
        settings, chunk = self.settings, self.settings.chunk_tokens
        if chunk is not None:
            settings = dataclasses.replace(settings, chunk_tokens=max(16, round(chunk / ratio)))
        return build_task(FAMILIES[self.family], settings, index, words)

    def sample(self, words: int) -> ReadingTask:
        """Build a task with its evidence anywhere."""
        settings = dataclasses.replace(self.settings, chunk_tokens=None, placement="any")
        return build_task(FAMILIES[self.family], settings, 0, words)


def synthetic_tasks(family: str, **options: Any) -> SyntheticTasks:
    """Return the tasks of a family.

    Args:
        family: one of `FAMILIES`: kv, vt, kg2, kg3, compare, count, set, overwrite, none.
        options: see `SyntheticSettings`; words, as from a command line, are taken for values.

    Raises:
        InvalidSetting: no such family or option, or a value that it cannot have.

    Example:
        >>> task = synthetic_tasks("kg2", tokens=1000, n=1)[0]
        >>> task.hops, len(task.evidence), task.document.tokens
        (2, 2, 1000)
    """
    if family not in FAMILIES:
        raise InvalidSetting(f"no synthetic family {family!r:.80}; there are {', '.join(FAMILIES)}")
    found = FAMILIES[family]
    given = settings_from(SyntheticSettings, options)
    for name in _SPECIAL:
        if given.get(name) is not None and name not in found.options:
            having = [f.name for f in FAMILIES.values() if name in f.options]
            raise InvalidSetting(
                f"{family} has no {name!r:.80}; it is an option of {', '.join(having)}"
            )
    # What is set to None is as if it were not said.
    said = {name: value for name, value in given.items() if value is not None}
    settings = SyntheticSettings(**{**found.options, **said})
    return SyntheticTasks(FamilyRecipe(family, settings), range(settings.n))

"""Teams of simulated coders by name, for `TreeControlEnv(coders=...)`.

Each is a stand-in for a population of tasks: what is true in it of fresh answers and of refinements
can be learned over episodes, where Thompson sampling starts every tree from the same prior.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import InvalidSetting
from ..importing import import_object, is_importable
from .simulated import Coder, Outcome, RecordedTasks, SimulatedTask, SimulatedTasks, TaskSource

_EASE = (2.0, 1.0)


@dataclass(frozen=True, slots=True)
class MixedTasks:
    """Draws a family for every task, and which of its coders each name stands for.

    So it has to be found out in every tree anew who is good at what.

    Args:
        families: of one size of team and one number of public tests.
    """

    families: tuple[SimulatedTasks, ...]

    @property
    def agents(self) -> tuple[str, ...]:
        """One name for each place in the team: `coder_0` and so on."""
        return tuple(f"coder_{index}" for index in range(len(self.families[0].agents)))

    def draw(self, rng: np.random.Generator) -> SimulatedTask:
        """Draw a family, a task of it, and an order of its coders."""
        task = self.families[int(rng.integers(len(self.families)))].draw(rng)
        coders = list(task.coders.values())
        order = rng.permutation(len(coders))
        return SimulatedTask(
            {name: coders[index] for name, index in zip(self.agents, order, strict=True)},
            task.public_tests,
        )


_SINGLE: dict[str, SimulatedTasks] = {
    # One drafts well and mends badly, the other the reverse, and only where little is missing.
    "specialists": SimulatedTasks(
        {
            "drafter": Coder(
                fresh=0.25, refine=0.02, closeness=0.1, partial=0.5, false_positive=0.05
            ),
            "mender": Coder(
                fresh=0.02, refine=0.02, closeness=0.6, partial=0.2, false_positive=0.05
            ),
        },
        public_tests=4,
        ease=_EASE,
    ),
    # Feedback helps: a refinement succeeds twice as often as a fresh answer.
    "repair": SimulatedTasks(
        {name: Coder(fresh=0.15, refine=0.3, partial=0.4) for name in ("coder_0", "coder_1")},
        public_tests=4,
        ease=_EASE,
    ),
    # Refinement misleads: it never succeeds, so that every refinement is wasted.
    "no_repair": SimulatedTasks(
        {name: Coder(fresh=0.15, refine=0.0, partial=0.4) for name in ("coder_0", "coder_1")},
        public_tests=4,
        ease=_EASE,
    ),
    # Parent and agent make no difference: nothing can be learned.
    "alike": SimulatedTasks(
        {name: Coder(fresh=0.15, refine=0.15, partial=0.4) for name in ("coder_0", "coder_1")},
        public_tests=4,
        ease=_EASE,
    ),
}
FAMILIES: dict[str, TaskSource] = {**_SINGLE, "mixed": MixedTasks(tuple(_SINGLE.values()))}


def resolve_coders(coders: str | TaskSource) -> TaskSource:
    """Return the source of tasks that is named or given.

    Args:
        coders: a name of `FAMILIES`, a path ending in .jsonl (see `load_pools`), "module:name" of
            a source or of something callable that makes one, or the source.

    Raises:
        ValueError: an unknown name, or not a source.
        InvalidSetting: a file of pools that cannot be used.
    """
    found: Any = coders
    if isinstance(coders, str):
        if coders in FAMILIES:
            found = FAMILIES[coders]
        elif coders.endswith(".jsonl"):
            found = load_pools(coders)
        elif is_importable(coders):
            found = import_object(coders)
        else:
            raise ValueError(
                f"unknown coders {coders!r}; expected one of {', '.join(FAMILIES)}, a .jsonl file "
                "of recorded pools, or 'module:name'"
            )
    if isinstance(found, type) or (callable(found) and not hasattr(found, "draw")):
        found = found()
    missing = [name for name in ("agents", "draw") if not hasattr(found, name)]
    if missing:
        raise ValueError(f"{coders!r} is no source of tasks: it lacks {', '.join(missing)}")
    return cast(TaskSource, found)


def load_pools(path: str | Path) -> RecordedTasks:
    """Read recorded outcomes: JSON lines, one task a line.

    A line is `{"task_id": "…", "pools": {agent: [[public score, solved], …], …}}`; every task names
    the same agents, if with empty pools. The order of the lines is the order of
    `reset(options={"task": index})`.

    Raises:
        InvalidSetting: a line has another form; says which.
        OSError: the file cannot be read.
    """
    tasks: list[Mapping[str, list[Outcome]]] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            pools = json.loads(line)["pools"]
            tasks.append(
                {
                    str(agent): [(float(score), _boolean(solved)) for score, solved in pool]
                    for agent, pool in pools.items()
                }
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidSetting(
                f"{path}:{number}: expected "
                '{"task_id": "…", "pools": {agent: [[public score, solved], …]}}, '
                f"got {line[:80]!r} ({type(error).__name__}: {error})"
            ) from error
    return RecordedTasks(tasks)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"solved must be true or false, got {value!r}")
    return value

"""Episodes of `mars-envs bench memory` whose agent is a model: several at once, calls bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from ..errors import InvalidSetting
from ..generators import Generator, Workers
from ..parallel_memory.cost import Beginnings
from ..parallel_memory.drive import drive
from ..parallel_memory.workflow import Call, Workflow
from ..reading.task import ReadingTask
from .grid import CellFailed, Finished, Record
from .memory_plan import MemoryCell, MemoryPlan
from .memory_play import Episodes
from .reading_models import ReadingModel


def play_models(
    cells: Mapping[str, MemoryCell],
    plan: MemoryPlan,
    keep: Callable[[Finished[MemoryCell]], None],
    *,
    model: ReadingModel,
    concurrency: int,
    delay_s: float = 0.5,
) -> None:
    """Play episodes with a model; hand each over as it ends.

    A recurrent episode has one call at a time, so as many episodes are played at once as calls may
    be in flight.

    Args:
        cells: by name.
        plan: of the grid.
        keep: takes what becomes of a cell.
        model: who answers prompts.
        concurrency: calls in flight, of all episodes together.
        delay_s: see `drive`.

    Raises:
        InvalidSetting: the model takes no prompts.
        Exception: whatever the model raises that is not among its `failures`.
    """
    if model.generate is None:
        raise InvalidSetting(f"{model.label} takes no prompts")
    episodes = Episodes(plan=plan)
    room, looking = threading.BoundedSemaphore(concurrency), threading.Lock()
    waiting = iter(cells.items())
    with Generator(model.generate) as generate, Workers[str, Record](concurrency) as workers:

        def episode(cell: MemoryCell, task: ReadingTask, workflow: Workflow) -> Record:
            beginnings = Beginnings()

            def respond(call: Call) -> str:
                with looking:
                    beginnings.add(call.role, call.prompt)
                with room:
                    if workers.stopping.is_set():  # something else has ended it all
                        raise CellFailed("the run has ended")
                    return generate(call.prompt, call.max_tokens)

            causes = drive(
                workflow,
                respond,
                concurrency=concurrency,
                delay_s=delay_s,
                failures=model.failures,
            )
            try:
                return episodes.record(cell, task, workflow, beginnings)
            except CellFailed as failure:
                raise CellFailed(f"{failure}: {causes[0]}") from causes[0]

        def start_next() -> None:
            for name, cell in waiting:
                try:
                    begun = episodes.begin(cell)
                except CellFailed as failure:
                    keep(Finished(name, None, str(failure)))
                    continue
                workers.start(name, partial(episode, cell, *begun))
                return

        for _ in range(concurrency):
            start_next()
        while workers.open:
            name, result = workers.take()
            if isinstance(result, CellFailed):
                keep(Finished(name, None, str(result)))
            elif isinstance(result, BaseException):
                raise result
            else:
                keep(Finished(name, result))
            start_next()

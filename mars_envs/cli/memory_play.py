"""Episodes of `mars-envs bench memory`: from a cell of the grid to its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidSetting, InvalidTask
from ..parallel_memory.cost import Beginnings, job_of, simulate
from ..parallel_memory.play import play
from ..parallel_memory.summary import MemorySummary, summarize
from ..parallel_memory.workflow import CallRecord, Workflow
from ..reading.chunking import Chunks, chunks_holding
from ..reading.task import ReadingTask
from .grid import CellFailed, Record
from .memory_plan import MemoryCell, MemoryPlan

SUMS = ("gold_read", "gold_found", "other_read", "other_found")
"""Of the reads of an episode: what yes-rates are made of."""

LONGEST_ANSWER = 500
"""Characters of an answer that are kept, to be looked at; it is scored whole."""


@dataclass(kw_only=True)
class Episodes:
    """Plays episodes of scripted agents. Goes to every worker process once.

    The text of the last cell is kept: the next one is mostly about the same.
    """

    plan: MemoryPlan
    _last: tuple[tuple[str, int, int], ReadingTask, Chunks] | None = field(
        default=None, init=False, repr=False
    )

    def __call__(self, cell: MemoryCell) -> Record:
        """Return the record of an episode.

        Raises:
            CellFailed: the task cannot be made, or too many calls failed; there is nothing to
                score.
        """
        task, workflow = self.begin(cell)
        speaker = self.plan.agents[cell.agent].speaker(task, cell.seed)
        beginnings = Beginnings()

        def speak(view: Mapping[str, Any]) -> str:
            beginnings.add(view["role"], view["prompt"])
            return speaker(view)

        return self.record(cell, task, play(workflow, speak), beginnings)

    def begin(self, cell: MemoryCell) -> tuple[ReadingTask, Workflow]:
        """Return the task of a cell, and its method at the start of the episode.

        Raises:
            CellFailed: the task cannot be made.
        """
        place = (cell.source, cell.length, cell.item)
        if self._last is None or self._last[0] != place:
            try:
                task = self.plan.tasks[cell.source, cell.length][cell.item]
            except (InvalidSetting, InvalidTask) as error:
                raise CellFailed(f"the task cannot be made: {error}") from error
            self._last = (place, task, self.plan.chunks(task))
        _, task, chunks = self._last
        return task, self.plan.methods[cell.method](task.question, chunks)

    def record(
        self, cell: MemoryCell, task: ReadingTask, workflow: Workflow, beginnings: Beginnings
    ) -> Record:
        """Return what is kept of a finished episode, as plain data.

        Args:
            cell: of the grid.
            task: of the cell.
            workflow: at its end.
            beginnings: of its prompts, all of them.

        Raises:
            CellFailed: too many calls failed; there is nothing to score.
        """
        # Retrieval cuts the document anew, so where the evidence is depends on the method.
        chunks: Chunks = getattr(workflow, "chunks", None) or self.plan.chunks(task)
        held = chunks_holding(chunks, task.evidence)
        # Evidence that a method has left out counts as a chunk of its own, which nobody reads.
        gold = [places or (len(chunks) + number,) for number, places in enumerate(held)]
        summary = summarize(workflow, task, gold)
        if not summary.scored:
            failed = summary.calls.failed
            raise CellFailed(f"{failed} calls failed, and the episode ended without an answer")
        calls = summary.calls
        return {
            "task_id": task.task_id,
            "answer": summary.answer[:LONGEST_ANSWER],
            "scores": dataclasses.asdict(summary.scores),
            "exit_reason": summary.exit_reason,
            "chunks": summary.n_chunks,
            "gold_chunks": summary.gold_chunks,
            "k_used": summary.k_used,
            "k_productive": summary.k_productive,
            "turns": [_turn(summary, number) for number in range(len(summary.turns))],
            "calls": calls.calls,
            "failed_calls": calls.failed,
            "malformed": calls.malformed,
            "prompt_tokens": calls.prompt_tokens,
            "output_tokens": calls.output_tokens,
            "memory_tokens": summary.memory_tokens,
            "machines": self._costs(cell, workflow, beginnings.tokens(chunks.tokenizer.count)),
        }

    def _costs(
        self, cell: MemoryCell, workflow: Workflow, beginnings: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return what the calls cost on each machine, for this question alone."""
        order = self.plan.methods[cell.method].settings.order
        job = job_of(workflow.calls, order=order, beginnings=beginnings, output_tokens=self._length)
        found = {}
        for name, machine in self.plan.machines.items():
            cost = simulate([job], machine)
            found[name] = {
                "latency_s": cost.latency_s,
                "work_s": cost.work_s,
                "cached_tokens": cost.cached_tokens,
            }
        return found

    def _length(self, call: CallRecord) -> int:
        """Return how many tokens a reply is taken for."""
        if call.status == "error":
            return 0
        if call.role == "answerer":
            kind = "answer"
        elif call.status == "no":  # a reader, or a gate that leaves the memory as it is
            kind = "no"
        else:
            kind = "yes" if call.role == "reader" else "memory"
        return self.plan.reply_lengths.get(kind, call.output_tokens)


def _turn(summary: MemorySummary, number: int) -> dict[str, Any]:
    turn = summary.turns[number]
    return {**{name: getattr(turn, name) for name in SUMS}, "gold_recall": turn.gold_recall}

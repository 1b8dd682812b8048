"""The study: who is trained on what, who plays what, and where the results are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np
import torch

from mars_envs.parallel_memory.env import ParallelMemoryEnv
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.play import play
from mars_envs.parallel_memory.recurrent import RecurrentMemory
from mars_envs.parallel_memory.recurrent_env import ParallelRecurrentMemoryEnv
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.parallel_memory.settings import memory_settings
from mars_envs.reading.chunking import chunk_document
from mars_envs.reading.synthetic import synthetic_tasks
from mars_envs.reading.task import ReadingTask

from .encoding import PARTS, ROLES
from .lessons import Lesson, UnlikeCopy, lesson, watched
from .model import new_reader
from .speaking import Learned
from .training import Recipe, train
from .trials import Trial, play_all
from .words import Vocabulary

TURNS: Final = 3
"""K of PI-Mem, and the passes of the recurrent reader that reads as often."""
_WINDOW: Final = 512
"""Tokens of prompt and reply together: the size of a merge."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that results depend on."""

    families: tuple[str, ...] = ("kv", "kg2")
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64)
    """Chunks of a document, in the trials."""
    items: int = 60
    """Held-out questions of a family for each training: the same ones at every length and for every
    method, others for another training."""
    chunk_tokens: int = 64
    memory_tokens: int = 64
    budgets: tuple[int, ...] = ()
    """More memory budgets, that are tried at the longest length."""
    trained_on: tuple[int, ...] = (2, 4, 8)
    """Chunks of a document, in training."""
    tasks: int = 200
    """Training tasks of each family and length."""
    steps: int = 900
    batch: int = 64
    width: int = 64
    layers: int = 3


METHODS: Mapping[str, tuple[type[Any], dict[str, Any]]] = {
    "pi_mem": (ParallelMemoryEnv, {"max_turns": TURNS}),
    "recurrent": (ParallelRecurrentMemoryEnv, {"passes": 1}),
    "recurrent, 3 passes": (ParallelRecurrentMemoryEnv, {"passes": TURNS}),
}
"""By name: the environment, and what makes it the method. The first is compared with the others."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Trials of one method on one set of documents."""

    family: str
    length: int
    method: str
    memory_tokens: int

    @property
    def name(self) -> str:
        """Return a name that is a file name, too."""
        method = self.method.replace(", ", "-").replace(" ", "-")
        return f"{self.family}-{self.length}-{method}-{self.memory_tokens}"


def cells(plan: Plan) -> list[Cell]:
    """Return all cells of a plan."""
    found = []
    for family in plan.families:
        for length in plan.lengths:
            last = length == plan.lengths[-1]
            for budget in (plan.memory_tokens, *(plan.budgets if last else ())):
                found += [
                    Cell(family=family, length=length, method=method, memory_tokens=budget)
                    for method in METHODS
                ]
    return found


def tasks_of(plan: Plan, family: str, length: int, seed: int, *, held_out: bool) -> Any:
    """Return the tasks of a family that a training learns from, or that it is tried on."""
    return synthetic_tasks(
        family,
        tokens=length * plan.chunk_tokens,
        n=plan.items if held_out else plan.tasks,
        style="compact",
        chunk_tokens=plan.chunk_tokens,
        split="held_out_names" if held_out else "train",
        seed=seed,
    )


def collect(plan: Plan, seed: int, on_task: Callable[[], None]) -> list[list[tuple[str, str]]]:
    """Return prompts with the replies to learn, of one episode after the other.

    Each training task is read by both methods; whoever drives them misses and invents things. The
    recurrent reader goes through it twice, or it would hardly ever meet what it can use only then.
    """
    settings = memory_settings(
        max_turns=TURNS, memory_tokens=plan.memory_tokens, reply_tokens=plan.memory_tokens
    )
    episodes: list[list[tuple[str, str]]] = []
    for family in plan.families:
        for length in plan.trained_on:
            for number, task in enumerate(tasks_of(plan, family, length, seed, held_out=False)):
                seen: list[tuple[str, str]] = []
                chunks = chunk_document(task.document, size=plan.chunk_tokens)
                driver = oracle(task, miss=0.15, false_yes=0.1, seed=number)
                for make in (MemoryLoop, partial(RecurrentMemory, passes=2)):
                    workflow = make(task.question, chunks, settings=settings, prompts="compact")
                    play(workflow, watched(driver, task, seen))
                episodes.append(seen)
                on_task()
    return episodes


def learn(
    plan: Plan, seed: int, *, on_task: Callable[[], None], on_step: Callable[[int, float], None]
) -> tuple[Learned, dict[str, Any]]:
    """Train a network from scratch.

    Returns:
        It, and what training took.
    """
    start = process_time()
    episodes = collect(plan, seed, on_task)
    prompts = [prompt for seen in episodes for prompt, _ in (seen[0], seen[-1])]
    vocabulary = Vocabulary.of(prompts, always=(*PARTS, *ROLES))
    lessons = list(_lessons(episodes, vocabulary, np.random.default_rng(seed)))
    model = new_reader(len(vocabulary), seed=seed, width=plan.width, layers=plan.layers)
    recipe = Recipe(steps=plan.steps, batch=plan.batch)
    train(model, lessons, recipe, seed=seed, on_step=on_step)
    facts = {
        "cpu_seconds": process_time() - start,
        "lessons": len(lessons),
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "vocabulary": len(vocabulary),
    }
    return Learned(model, vocabulary), facts


def _lessons(
    episodes: Sequence[Sequence[tuple[str, str]]],
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> Iterator[Lesson]:
    """Return lessons, a third of those that say no: there are plenty."""
    for seen in episodes:
        for prompt, reply in seen:
            if reply == "<check>no</check>" and rng.random() > 1 / 3:
                continue
            try:
                yield lesson(prompt, reply, vocabulary)
            except UnlikeCopy:
                continue  # the oracle reports whole a passage that a seam has cut


def try_cell(
    plan: Plan, cell: Cell, seed: int, speaker: Learned | None, on_episode: Callable[[], None]
) -> list[Trial]:
    """Play the episodes of a cell with a training's items; without a speaker the oracle plays."""
    kind, options = METHODS[cell.method]

    def make_env(tasks: Sequence[ReadingTask]) -> Any:
        return kind(
            tasks=tasks,
            chunk_tokens=plan.chunk_tokens,
            prompts="compact",
            memory_tokens=cell.memory_tokens,
            reply_tokens=plan.memory_tokens,
            window=_WINDOW,
            **options,
        )

    def panel(tasks: Sequence[ReadingTask], views: Sequence[Mapping[str, Any]]) -> list[str]:
        if speaker is None:
            return [oracle(task)(view) for task, view in zip(tasks, views, strict=True)]
        return speaker.replies([view["prompt"] for view in views])

    tasks = list(tasks_of(plan, cell.family, cell.length, seed, held_out=True))
    return play_all(make_env, tasks, panel, on_episode=on_episode)


class Store:
    """Results on disk: what is there is not done again, as long as the plan is the same.

    Lengths and budgets may be added later: they only say which cells there are.

    Raises:
        SystemExit: the folder holds results of another plan.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        told = json.loads(json.dumps(asdict(plan)))
        if (path := folder / "plan.json").exists():
            if _fixed(json.loads(path.read_text())) != _fixed(told):
                raise SystemExit(f"{folder} holds results of another plan; give another --out")
        else:
            _write(path, told)

    def trials(self, who: str, cell: Cell, make: Callable[[], list[Trial]]) -> list[Trial]:
        """Return the trials of a cell, from disk or else made."""
        path = self.folder / who / f"{cell.name}.json"
        if not path.exists():
            _write(path, [asdict(trial) for trial in make()])
        return [Trial(**row) for row in json.loads(path.read_text())]

    def learned(
        self, seed: int, make: Callable[[], tuple[Learned, dict[str, Any]]]
    ) -> tuple[Learned, dict[str, Any]]:
        """Return a trained network and what it took, from disk or else made."""
        path = self.folder / f"seed-{seed}" / "model.pt"
        if not path.exists():
            speaker, facts = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            shape = asdict(speaker.model.shape)
            saved = {"shape": shape, "words": speaker.vocabulary.ids, "facts": facts}
            torch.save({**saved, "weights": speaker.model.state_dict()}, path.with_suffix(".part"))
            path.with_suffix(".part").rename(path)
        saved = torch.load(path, weights_only=True)
        model = new_reader(seed=0, **saved["shape"])
        model.load_state_dict(saved["weights"])
        return Learned(model, Vocabulary(saved["words"])), saved["facts"]


def _fixed(plan: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plan.items() if name not in ("lengths", "budgets")}


def _write(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content) + "\n")
    part.rename(path)

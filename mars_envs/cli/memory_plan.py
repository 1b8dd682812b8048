"""The plan of `mars-envs bench memory`: which episodes are played, and what that depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidSetting, InvalidTask
from ..parallel_memory.cost import MACHINES, Machine, machine
from ..parallel_memory.methods import METHODS, MethodMaker
from ..parallel_memory.prompts import resolve_prompts
from ..parallel_memory.settings import memory_settings
from ..reading.chunking import Chunks, chunk_document
from ..reading.load import load_reading_tasks
from ..reading.synthetic import FAMILIES
from ..reading.task import ReadingTask
from ..reading.tokenizers import resolve_tokenizer
from .bench_memory_config import BenchMemoryConfig
from .changes import apply, read_changes, split_changes
from .memory_agents import ReadingAgent, read_agents

ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "no_check": {"check": False},
    "no_merge": {"merging": False},
}
"""Names for PI-Mem with a part left out."""

REPLIES = ("no", "yes", "memory", "answer")
"""Kinds of replies: of readers that found nothing or something, of mergers and memorizers, of
answerers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingMethod(MethodMaker):
    """A way of reading under a name of its own."""

    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCell:
    """One episode."""

    source: str
    length: int
    """Tokens; 0: as it is."""
    item: int
    """Which of the source's tasks."""
    agent: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        """Names the cell in a grid."""
        place = f"{self.source} | {self.length} | {self.item}"
        return f"{place} | {self.agent} | {self.method} | {self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """The grid."""

    tasks: Mapping[tuple[str, int], Sequence[ReadingTask]]
    """By source and length."""
    methods: Mapping[str, ReadingMethod]
    agents: Mapping[str, ReadingAgent]
    machines: Mapping[str, Machine]
    reply_lengths: Mapping[str, int]
    """Tokens that replies are taken for, by `REPLIES`; where one is missing, what was said."""
    baseline: str
    """The method that the others are compared with."""
    seeds: int
    chunk_tokens: int
    align: str
    tokenizer: str

    def cells(self) -> dict[str, MemoryCell]:
        """Return all cells by name, in an order that does not depend on anything else.

        Cells about the same document stand together.
        """
        found = {}
        for (source, length), tasks in self.tasks.items():
            for item in range(len(tasks)):
                for agent in self.agents.values():
                    for seed in range(self.seeds if agent.draws else 1):
                        for method in self.methods:
                            cell = MemoryCell(
                                source=source,
                                length=length,
                                item=item,
                                agent=agent.label,
                                method=method,
                                seed=seed,
                            )
                            found[cell.name] = cell
        return found

    def chunks(self, task: ReadingTask) -> Chunks:
        """Cut the document of a task."""
        align: Any = self.align
        return chunk_document(
            task.document, size=self.chunk_tokens, align=align, tokenizer=self.tokenizer
        )


def make_plan(config: BenchMemoryConfig) -> MemoryPlan:
    """Work out the grid.

    Raises:
        InvalidSetting: a setting that cannot work.
        InvalidTask: tasks that cannot be read.
    """
    agents = read_agents(config.agents)
    methods = {method.label: method for method in _methods(config)}
    machines = {found.name: found for found in map(_machine, config.machines)}
    if config.baseline not in methods and config.baseline != BenchMemoryConfig.baseline:
        raise InvalidSetting(
            f"--baseline: expected one of --methods ({', '.join(methods)}), got {config.baseline!r}"
        )
    resolve_tokenizer(config.tokenizer)
    sources = list(dict.fromkeys(source.strip() for source in config.tasks if source.strip()))
    if not sources:
        raise InvalidSetting(f"--tasks is empty; name a file or of {', '.join(FAMILIES)}")
    return MemoryPlan(
        tasks={
            (source, length): _tasks(config, source, length)
            for source in sources
            for length in _lengths(config.lengths)
        },
        methods=methods,
        agents={agent.label: agent for agent in agents},
        machines=machines,
        reply_lengths=_reply_lengths(config.reply_lengths),
        baseline=config.baseline if config.baseline in methods else next(iter(methods)),
        seeds=config.seeds,
        chunk_tokens=config.chunk_tokens,
        align=config.align,
        tokenizer=config.tokenizer,
    )


def inputs_of(plan: MemoryPlan) -> dict[str, str]:
    """Return what the results depend on besides the settings: the contents of files."""
    found = {}
    for source, _ in plan.tasks:
        name, _, query = source.partition("?")
        if name in FAMILIES:
            continue
        pools = [part.partition("=")[2] for part in query.split("&") if part.startswith("pool=")]
        for path in map(Path, [name, *pools]):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return found


def _tasks(config: BenchMemoryConfig, source: str, length: int) -> Sequence[ReadingTask]:
    """Return the questions of a source with documents of a length."""
    name, _, query = source.partition("?")
    said = {part.partition("=")[0] for part in query.split("&")}
    if length and said & {"tokens", "documents"}:
        raise InvalidSetting(
            f"--tasks {source}: its length stands behind the name; give that with --lengths, or "
            "--lengths 0"
        )
    family = name in FAMILIES
    options: dict[str, Any] = {"limit": config.items}
    if length:
        options["tokens"] = length
    if family:
        options |= {"n": config.items, "chunk_tokens": config.chunk_tokens}
    if family or length:
        options |= {"seed": config.seed, "tokenizer": config.tokenizer}
    if length and not family:
        options["fill"] = config.fill
    tasks = load_reading_tasks(
        source, **{key: value for key, value in options.items() if key not in said}
    )
    try:
        tasks[0]  # where tasks are made on demand, what cannot work would show in mid-run only
    except (InvalidSetting, InvalidTask) as error:
        long = f" with {length} tokens (--lengths)" if length else ""
        hint = f"; options of a family stand behind its name: --tasks '{name}?placement=any'"
        raise InvalidSetting(f"--tasks {source}{long}: {error}{hint if family else ''}") from error
    return tasks[: config.items]


def _lengths(words: str | Sequence[str]) -> list[int]:
    # In a settings file, it may be a single text or number, or a list of these.
    text = ",".join(map(str, words)) if isinstance(words, list) else str(words)
    found = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        try:
            found.append(int(part.replace("_", "")))
        except ValueError as error:
            raise InvalidSetting(
                f"--lengths: expected numbers of tokens, got {part!r:.80}"
            ) from error
    if not found or min(found) < 0:
        raise InvalidSetting(f"--lengths: expected numbers of 0 or more, got {text!r:.80}")
    return list(dict.fromkeys(found))


def _methods(config: BenchMemoryConfig) -> list[ReadingMethod]:
    common = memory_settings(**read_changes(config.settings, option="--settings"))
    try:
        resolve_prompts(config.prompts)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise InvalidSetting(f"--prompts: {error}") from error
    found = []
    for text in dict.fromkeys(text.strip() for text in config.methods if text.strip()):
        name, changes = split_changes(text, option="--methods")
        method = "pi_mem" if name in ABLATIONS else name
        if method not in METHODS:
            known = ", ".join([*METHODS, *ABLATIONS])
            raise InvalidSetting(f"--methods: expected some of {known}, got {name!r}")
        options = {key: changes.pop(key) for key in METHODS[method].options if key in changes}
        option = f"--methods {text}"
        settings = apply(common, {**ABLATIONS.get(name, {}), **changes}, option=option)
        made = ReadingMethod(
            label=text, method=method, settings=settings, options=options, prompts=config.prompts
        )
        try:
            made("Does it work?", chunk_document("Nothing. " * 9, size=8))
        except (InvalidSetting, ImportError, TypeError) as error:
            raise InvalidSetting(f"{option}: {error}") from error
        found.append(made)
    if not found:
        raise InvalidSetting(f"--methods is empty; there are {', '.join([*METHODS, *ABLATIONS])}")
    return found


def _reply_lengths(text: str) -> dict[str, int]:
    found = read_changes(text, option="--reply-lengths")
    for name, tokens in found.items():
        if name not in REPLIES:
            raise InvalidSetting(
                f"--reply-lengths: expected some of {', '.join(REPLIES)}, got {name!r}"
            )
        if not isinstance(tokens, int) or tokens < 0:
            raise InvalidSetting(
                f"--reply-lengths: {name} is a whole number of tokens, got {tokens!r}"
            )
    return found


def _machine(text: str) -> Machine:
    name, changes = split_changes(text, option="--machines")
    if name not in MACHINES:
        raise InvalidSetting(f"--machines: expected some of {', '.join(MACHINES)}, got {name!r}")
    found: Machine = apply(machine(name), {"name": text, **changes}, option=f"--machines {text}")
    return found

"""What all memory environments share: options, spaces, the course of an episode, renders.

Generic over any `Workflow`: a maker turns a question and chunks into one, and pools say which
agents answer the calls of which role. The forms (`forms.Rounds`, `forms.TurnByTurn`) add
PettingZoo's two interfaces.

Steps are atomic. What a step tells a workflow is kept as a log; where anything raises in the middle
(prompts or a tokenizer of one's own, a file that cannot be read), the workflow is thrown away and
made anew from the log when it is next needed. Copies and pickles in mid-episode work the same way,
so a workflow needs no undo and no pickle, and a document is never copied.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting, ProtocolError
from ..random_state import draws_or_nothing
from ..reading.chunking import Chunks, chunks_holding
from ..reading.task import ReadingTask
from ..shell import EpisodeEnd, Shell, reset_options, whole_limit
from ..spaces import TEXT_LIMIT, UnicodeText
from ..stopwatch import Stopwatch
from .drawing import memory_to_image
from .episode import Episode, LastCall, Outcome
from .infos import REQUEST_FIELDS, Info, Score, call_facts, episode_facts, request_facts
from .observations import (
    Observation,
    check_sizes,
    observation_space,
    see_call,
    see_nothing,
)
from .rendering import memory_to_text
from .reward import RewardSettings
from .score import score_episode
from .settings import is_number
from .sources import Chunking, ReadingTasks, TaskSource
from .state import STATE_COLUMNS, state_of
from .workflow import Call, Role, Workflow

OUTSIDE = ("backend_error", "calls", "seconds", "agents", "max_cycles")
"""Reasons that truncate: too many calls failed, or a budget from outside is spent."""

WorkflowMaker = Callable[[str, Chunks], Workflow]
"""From a question and chunks to a workflow."""

Infos = dict[str, Info]


class Ending(EpisodeEnd):
    """Why an episode is over: "answered", or a reason of `OUTSIDE`; empty while it runs."""

    __slots__ = ()
    OUTSIDE = OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What everybody is shown of a moment; made before the moment counts."""

    observations: Mapping[str, Observation]
    """Of those that are asked."""
    idle: Observation
    """Of all others."""
    cut: frozenset[str]
    """Whose observation was cut."""
    state: NDArray[np.float32]


class MemoryShell(Shell):
    """What all forms have in common; `ParallelMemoryEnv` explains the options."""

    metadata: ClassVar[dict[str, Any]] = {
        **Shell.metadata,
        "shared_reward": True,
        "request_info_keys": REQUEST_FIELDS,
    }

    def __init__(
        self,
        *,
        start: WorkflowMaker,
        pools: Mapping[Role, Sequence[str]],
        tasks: TaskSource,
        chunking: Chunking,
        reward: RewardSettings,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        max_cycles: int | None = None,
        render_mode: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(render_mode=render_mode, max_cycles=max_cycles)
        self._max_calls = whole_limit("max_calls", max_calls)
        if max_seconds is not None and not (is_number(max_seconds) and max_seconds > 0):
            raise InvalidSetting(f"max_seconds must be above 0, or None, got {max_seconds!r:.80}")
        if not callable(clock):
            raise InvalidSetting(
                f"clock must be a function that returns seconds, got {clock!r:.80}"
            )
        self._max_seconds = max_seconds
        self._start_workflow = start
        self._pools = {role: tuple(pool) for role, pool in pools.items()}
        self._reward = reward
        # Found wrong, an option is refused here and not at the first reset.
        check_sizes(start("?", chunking.cut("A text.")), "a task")
        self._chunking = chunking
        self._tasks = ReadingTasks(tasks, chunking)
        self._clock = clock
        self._watch = Stopwatch(clock)
        self.possible_agents = [agent for pool in self._pools.values() for agent in pool]
        self._names = frozenset(self.possible_agents)
        self.agents: list[str] = []
        # Made when first asked for: those of a thousand readers take a second.
        self._observation_spaces: dict[str, gymnasium.Space[Observation]] = {}
        self._action_spaces: dict[str, gymnasium.Space[str]] = {}
        self.state_space = gymnasium.spaces.Box(0.0, 1.0, (len(STATE_COLUMNS),), np.float32)
        # The running episode: its task, what happened, and what follows from these two.
        self._index: int | None = None
        self._log: list[tuple[Mapping[str, Outcome], int]] = []
        self._cycles = 0
        self._ending = Ending()
        self._score = Score()
        self._made: Episode | None = None
        self._shown: _Shown | None = None
        # What infos are copied from: of each agent, by its last call, as if nothing were asked.
        self._drafts: dict[str, tuple[LastCall | None, Info]] = {}
        self._shared: Info = {}

    # What can be looked at ------------------------------------------------------------------------

    @property
    def workflow(self) -> Workflow:
        """The workflow of the current or last episode; look, but change nothing."""
        return self._episode.workflow

    @property
    def task(self) -> ReadingTask:
        """The task of the current or last episode."""
        return self._episode.task

    @property
    def tasks(self) -> Sequence[ReadingTask]:
        """The tasks that episodes are drawn from; may be set between episodes.

        What is set is of the same kinds as the option `tasks`. An episode that runs is over without
        an end: `reset` is next.

        Raises:
            InvalidTask: what is set cannot be used; nothing has changed.
        """
        return self._tasks.tasks

    @tasks.setter
    def tasks(self, source: TaskSource) -> None:
        self._tasks = ReadingTasks(source, self._chunking)
        # The log of an episode means nothing with other tasks.
        self._index = self._made = self._shown = None
        self.agents = []

    def observation_space(self, agent: str) -> gymnasium.Space[Observation]:
        """Return the space of what `agent` sees, the same object every time."""
        self._check_agent(agent)
        if agent not in self._observation_spaces:
            self._observation_spaces[agent] = observation_space()
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[str]:
        """Return the space of texts, the same object every time."""
        self._check_agent(agent)
        if agent not in self._action_spaces:
            self._action_spaces[agent] = UnicodeText(TEXT_LIMIT)
        return self._action_spaces[agent]

    def state(self) -> NDArray[np.float32]:
        """Return where the episode stands as numbers in [0, 1]: [8], see `state.STATE_COLUMNS`."""
        return self._look.state.copy()

    def _to_image(self) -> NDArray[np.uint8]:
        return memory_to_image(self._episode)

    def _to_text(self) -> str:
        return memory_to_text(self._episode, stop_reason=self._ending.reason)

    def close(self) -> None:
        """Do nothing: an environment holds no resources."""

    # The course of an episode ---------------------------------------------------------------------

    @abstractmethod
    def _width(self, episode: Episode) -> int:
        """Return how many agents are asked at once."""

    @property
    def _episode(self) -> Episode:
        """The episode as it stands, made anew from the log where it was lost."""
        if self._made is None:
            if self._index is None:
                raise ProtocolError("there is no episode yet; call reset() first")
            episode = self._new_episode(self._index)
            for outcomes, k in self._log:
                episode.settle(outcomes)
                episode.ask(k)
            self._made = episode
        return self._made

    @property
    def _look(self) -> _Shown:
        """What is shown of this moment."""
        if self._shown is None:
            self._shown = _show(self._episode, self._ending)
        return self._shown

    def _begin(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Draw a task and start it; where anything raises, nothing has changed."""
        chosen = self._tasks.find(reset_options(options, "task"))
        with draws_or_nothing(self):
            self._seed(seed)
            # Drawn whatever the options say, so that they do not shift later episodes.
            drawn = int(self.np_random.integers(len(self._tasks)))
            index = drawn if chosen is None else chosen
            episode = self._new_episode(index)
            watch = Stopwatch(self._clock)
            watch.start()
            k = self._width(episode)
            episode.ask(k)
            ending = Ending(episode.stop_reason)
            shown = _show(episode, ending)
        self._index, self._log, self._made, self._watch = index, [({}, k)], episode, watch
        self._cycles, self._score, self._ending = 0, Score(), ending
        self._shown, self._drafts = shown, {}
        self.agents = episode.agents

    def _new_episode(self, index: int) -> Episode:
        readable = self._tasks.get(index)
        workflow = self._start_workflow(readable.task.question, readable.chunks)
        check_sizes(workflow, readable.task.task_id)
        pools = dict(self._pools)
        if "reader" in pools:
            # Readers without a chunk would have nothing to do in all of the episode.
            pools["reader"] = pools["reader"][: max(1, workflow.n_chunks)]
        # Some ways of reading cut a document anew.
        chunks = getattr(workflow, "chunks", readable.chunks)
        gold = chunks_holding(chunks, readable.task.evidence)
        return Episode(readable.task, workflow, pools, gold=gold, max_calls=self._max_calls)

    def _go_on(self, outcomes: Mapping[str, Outcome], *, cycles: int = 1) -> None:
        """Take what the agents said, and ask the next ones; all of it or nothing.

        Args:
            outcomes: agent -> its reply or failure.
            cycles: what this counts against `max_cycles`.
        """
        episode = self._episode
        # Until the end of this method the episode is not what the log says.
        self._made = None
        self._watch.start()
        episode.settle(outcomes)
        ending = self._ending_of(episode, self._cycles + cycles)
        k = 0 if ending.over else self._width(episode)
        episode.ask(k)
        if not ending.over:
            ending = self._ending_of(episode, self._cycles + cycles)
        score = self._score
        if ending.terminated:
            score = score_episode(episode.workflow, episode.task, self._reward)
        shown = _show(episode, ending)
        self._log.append((dict(outcomes), k))
        self._cycles += cycles
        self._ending, self._score, self._shown, self._made = ending, score, shown, episode

    def _ending_of(self, episode: Episode, cycles: int) -> Ending:
        reason = episode.stop_reason
        if not reason and self.max_cycles is not None and cycles >= self.max_cycles:
            reason = "max_cycles"
        if not reason and self._max_seconds is not None:
            reason = "seconds" if self._watch.elapsed >= self._max_seconds else ""
        return Ending(reason)

    def _asked(self) -> dict[str, Call]:
        """Return who must act now."""
        return {} if self._ending.over else self._episode.asked

    def _infos(self) -> Infos:
        """Return every agent's info, made afresh."""
        episode, asked, cut = self._episode, self._asked(), self._look.cut
        shared = episode_facts(episode, self._score, self._ending.reason)
        # Of a thousand agents, one has another last call after a call of the AEC form, and of the
        # facts that all share few change. Drafts that follow along make a copy cheap.
        changed = {key: value for key, value in shared.items() if self._shared.get(key) != value}
        self._shared = {}  # so that after an interruption all of them count as changed
        infos = {}
        for agent in self.agents:
            last = episode.last.get(agent)
            draft = self._drafts.get(agent)
            if draft is None or draft[0] is not last:
                call = call_facts(last, episode.tally)
                draft = last, {**request_facts(None, truncated=False), **call, **shared}
                self._drafts[agent] = draft
            else:
                draft[1].update(changed)
            infos[agent] = draft[1].copy()
        self._shared = shared
        for agent, asked_call in asked.items():
            infos[agent].update(request_facts(asked_call, truncated=agent in cut))
        return infos

    def _observation(self, agent: str) -> Observation:
        """Return what an agent sees, made afresh."""
        look = self._look
        return dict(look.observations.get(agent, look.idle))

    def _check_agent(self, agent: str) -> None:
        if agent not in self._names:
            raise KeyError(f"no agent {agent!r}; the agents are {self.possible_agents[:3]}, …")

    def __getstate__(self) -> dict[str, Any]:
        # The log says it all; a workflow may hold a document.
        return {**self.__dict__, "_made": None, "_shown": None, "_drafts": {}}


def _show(episode: Episode, ending: Ending) -> _Shown:
    workflow = episode.workflow
    seen: dict[str, Observation] = {}
    cut = set()
    for agent, call in ({} if ending.over else episode.asked).items():
        seen[agent], shortened = see_call(workflow, call)
        if shortened:
            cut.add(agent)
    return _Shown(
        observations=seen,
        idle=see_nothing(workflow),
        cut=frozenset(cut),
        state=state_of(workflow, episode.tally),
    )

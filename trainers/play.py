"""One episode, played: asks policies, steps the environment, keeps the books.

`Game` is a single pass through one episode. It knows nothing of other episodes, except that a gate,
where one is given, makes it wait before every round of requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from .errors import ConfigError
from .policies.base import GenerationFailed, Policy, PolicyExhausted
from .rollout import Generation, Outcome, Request, Rollout, Sampling, Scalar, Turn
from .text_envs import Ask, Driver, Frame, step_reward

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode to play."""

    episode_id: str
    """Unique within a run; becomes the rollout's id."""
    group_id: str
    """Episodes of one group are compared with each other; for a tree, which is a group by itself,
    any name will do."""
    seed: int
    """Of the environment."""
    options: Mapping[str, Any] | None = None
    """Passed to the environment's `reset`, e.g. which task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often trouble is put up with before a rollout is given up as `failed`."""

    step_retries: int = 3
    """Further tries of a step, or reset, that raised."""
    first_delay_s: float = 0.5
    """Before the first further try; doubled before every next one."""
    failures_in_a_row: int = 8
    """Generations of one episode that may fail one after the other."""


def request_seed(run_seed: int, episode_id: str, index: int, agent: str) -> int:
    """Return the seed of an episode's `index`-th request: a hash, the same on every machine.

    Returns:
        An integer in [0, 2**63).
    """
    key = json.dumps([run_seed, episode_id, index, agent]).encode()
    return int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 1


def assigned(table: Mapping[str, _T], agent: str) -> _T | None:
    """Look `agent` up in a table of names and globs: its name first, then globs in order."""
    if agent in table:
        return table[agent]
    return next((value for glob, value in table.items() if fnmatchcase(agent, glob)), None)


class Players:
    """Who speaks for whom, and how."""

    def __init__(
        self,
        policies: Mapping[str, Policy],
        roles: Mapping[str, str],
        sampling: Sampling | Mapping[str, Sampling],
        run_seed: int,
    ) -> None:
        self._policies = policies
        self._roles = roles
        self._sampling = {"*": sampling} if isinstance(sampling, Sampling) else sampling
        self._run_seed = run_seed

    def policy(self, agent: str) -> Policy:
        """The policy of `agent`; a ConfigError where it has none."""
        name = assigned(self._roles, agent)
        if name is None:
            raise ConfigError(
                f"agent {agent!r} has no policy; roles cover {sorted(self._roles)}. Add "
                f"roles={{{agent!r}: <policy name>}} or a glob that matches it"
            )
        return self._policies[name]

    async def ask(self, ask: Ask, *, episode: Episode, env_id: str, index: int) -> Generation:
        """Have `ask` answered by its agent's policy; `index` counts the episode's requests."""
        return await self.policy(ask.agent).generate(
            Request(
                prompt=ask.prompt,
                agent=ask.agent,
                env_id=env_id,
                task_id=str(ask.info.get("task_id", "")),
                observation=ask.observation,
                info=ask.info,
                episode_id=episode.episode_id,
                sampling=assigned(self._sampling, ask.agent) or Sampling(),
                seed=request_seed(self._run_seed, episode.episode_id, index, ask.agent),
            )
        )


@dataclass(slots=True)
class _OpenTurn:
    """A turn whose reward is still growing."""

    ask: Ask
    generation: Generation
    reward: float = 0.0
    info: Mapping[str, Scalar] = field(default_factory=dict)

    def close(self) -> Turn:
        return Turn(
            agent=self.ask.agent,
            prompt=self.ask.prompt,
            generation=self.generation,
            reward=self.reward,
            info=self.info,
        )


class _GaveUp(Exception):
    """This rollout ends as `failed`."""


class Game:
    """One episode in one environment; call `play` once.

    Args:
        driver: of the environment, which is reset first.
        episode: what to play.
        players: who speaks for whom.
        threads: where the environment's methods run.
        patience: with trouble.
        before_round: awaited before each round of requests.
    """

    def __init__(
        self,
        driver: Driver,
        episode: Episode,
        *,
        players: Players,
        threads: ThreadPoolExecutor,
        patience: Patience,
        before_round: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._driver = driver
        self._episode = episode
        self._players = players
        self._threads = threads
        self._patience = patience
        self._before_round = before_round
        self._turns: list[_OpenTurn] = []
        self._last_turn: dict[str, _OpenTurn] = {}
        self._first_ask: Ask | None = None
        self._reward = 0.0
        self._requests = 0
        self._failures = 0
        self._failures_in_a_row = 0
        self._summary: dict[str, Scalar] = {}

    async def play(self) -> Rollout:
        """Play the episode to its end and return what happened."""
        outcome: Outcome
        try:
            outcome = "truncated" if await self._play() else "terminated"
        except _GaveUp as reason:
            outcome = "failed"
            self._summary["failure"] = str(reason)
            _log.warning("episode %s failed: %s", self._episode.episode_id, reason)
        prompt, task_id = "", ""
        if self._first_ask is not None:
            prompt = self._first_ask.prompt
            task_id = str(self._first_ask.info.get("task_id", ""))
        return Rollout(
            rollout_id=self._episode.episode_id,
            group_id=self._episode.group_id,
            env_id=self._driver.env_id,
            task_id=task_id,
            seed=self._episode.seed,
            prompt_hash=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
            turns=tuple(turn.close() for turn in self._turns),
            outcome=outcome,
            episode_reward=self._reward,
            summary={**self._summary, "failed_generations": self._failures},
        )

    async def _play(self) -> bool:
        """Play on until nobody is asked any more; return whether the episode was truncated."""
        reset = partial(self._driver.reset, seed=self._episode.seed, options=self._episode.options)
        frame = await self._advance(reset)
        for agent in frame.infos:
            self._players.policy(agent)  # an agent without one is found before any work
        self._first_ask = next(iter(frame.asks), None)
        while frame.asks:
            if self._before_round is not None:
                await self._before_round()
            answers = await self._ask_all(frame.asks)
            turns: dict[str, _OpenTurn] = {}
            for ask, answer in zip(frame.asks, answers, strict=True):
                if isinstance(answer, GenerationFailed):
                    await self._fail(ask.agent, answer)
                else:
                    self._failures_in_a_row = 0
                    turns[ask.agent] = _OpenTurn(ask, answer)
            actions = {agent: turn.generation.text for agent, turn in turns.items()}
            last_asked = frame.asks[-1].agent
            frame = await self._advance(partial(self._driver.step, actions))
            self._book(turns, frame)
            self._summary = dict(frame.infos.get(last_asked, {}))
        return frame.truncated

    async def _ask_all(self, asks: Sequence[Ask]) -> list[Generation | GenerationFailed]:
        async def answer(ask: Ask, index: int) -> Generation | GenerationFailed:
            try:
                return await self._players.ask(
                    ask, episode=self._episode, env_id=self._driver.env_id, index=index
                )
            except GenerationFailed as failure:
                return failure

        first, self._requests = self._requests, self._requests + len(asks)
        # Tasks of their own even for one: all requests of a round then reach the policies in the
        # same pass of the event loop, in order, whatever the number of agents.
        tasks = [asyncio.ensure_future(answer(ask, first + i)) for i, ask in enumerate(asks)]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _fail(self, agent: str, failure: GenerationFailed) -> None:
        """Tell the environment that `agent` will not answer, or give the rollout up."""
        self._failures += 1
        self._failures_in_a_row += 1
        reason = str(failure) or type(failure).__name__
        if self._failures_in_a_row > self._patience.failures_in_a_row:
            raise _GaveUp(f"{self._failures_in_a_row} generations failed in a row: {reason}")
        permanent = isinstance(failure, PolicyExhausted)
        tell = partial(self._driver.fail, agent, reason, permanent=permanent)
        if not await in_thread(self._threads, tell):
            raise _GaveUp(
                f"{agent} did not answer ({reason}) and {self._driver.env_id} cannot go on without"
            )

    async def _advance(self, call: Callable[[], None]) -> Frame:
        """Make `call` succeed, which is atomic by contract, and return the frame after it."""
        delay = self._patience.first_delay_s
        for tries_left in range(self._patience.step_retries, -1, -1):
            try:
                await in_thread(self._threads, call)
                break
            except ConfigError:
                raise
            except Exception as error:
                if not tries_left:
                    raise _GaveUp(
                        f"{type(error).__name__}: {error} ({self._patience.step_retries + 1} tries)"
                    ) from error
                _log.info("trying again in %.1f s after %r", delay, error)
            await asyncio.sleep(delay)
            delay *= 2
        return await in_thread(self._threads, self._driver.frame)

    def _book(self, turns: Mapping[str, _OpenTurn], frame: Frame) -> None:
        """Enter the turns just taken and what their step gave to whom."""
        for agent, turn in turns.items():
            turn.info = frame.infos.get(agent, {})
            self._turns.append(turn)
            self._last_turn[agent] = turn
        for agent, reward in frame.rewards.items():
            # A reward before an agent's first action belongs to the episode but to no turn.
            if agent in self._last_turn:
                self._last_turn[agent].reward += reward
        self._reward += step_reward(frame.rewards, self._driver.shared_reward)


async def in_thread(threads: ThreadPoolExecutor, call: Callable[[], _T]) -> _T:
    """Run `call` in a thread; when cancelled, let it end first: two calls must not overlap."""
    future = asyncio.get_running_loop().run_in_executor(threads, call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        future.exception()  # marks it as seen
        raise

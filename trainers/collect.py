"""The collector: policies play episodes of any text environment; out come rollouts.

Every episode runs at its own pace. What its agents must say is asked of their policies, all at once
(policies batch by themselves), and environments step in threads, so a slow judgement or a slow
episode holds up nobody else. Rollouts are handed over as they end, in any order.

Failures come in three kinds. A *bad answer* is data and the environment's business. A *generation*
that fails (`GenerationFailed`) is told to environments that support it and otherwise ends the
rollout as `failed`. A *step* that raises (no judge is left, say) is tried again and then ends the
rollout as `failed`. A failed rollout is kept but must never be scored or trained on. Everything
else that raises, a policy's bug for instance, ends the collection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Required, TypedDict, Unpack

from .errors import CollectionFailed, ConfigError
from .play import Episode, Game, Patience, Players, in_thread, request_seed
from .policies.base import Policy
from .rollout import Rollout, Sampling
from .text_envs import Driver, make_driver

__all__ = ["CollectOptions", "Episode", "Patience", "collect", "collect_all", "request_seed"]


class CollectOptions(TypedDict, total=False):
    """The keyword arguments of `collect`, for functions that pass them on."""

    roles: Required[Mapping[str, str]]
    concurrency: int
    run_seed: int
    sampling: Sampling | Mapping[str, Sampling] | None
    deterministic: bool
    patience: Patience | None


async def collect(
    env_fn: Callable[[], Any],
    episodes: Iterable[Episode],
    policies: Mapping[str, Policy],
    *,
    roles: Mapping[str, str],
    concurrency: int = 16,
    run_seed: int = 0,
    sampling: Sampling | Mapping[str, Sampling] | None = None,
    deterministic: bool = False,
    patience: Patience | None = None,
) -> AsyncIterator[Rollout]:
    """Play `episodes` and yield their rollouts as they end.

    Args:
        env_fn: makes an environment (PettingZoo AEC or Parallel, or Gymnasium). It is called at
            most `concurrency` times; environments are reset and used again.
        episodes: what to play; drawn one by one as environments become free.
        policies: policy name -> policy.
        roles: agent, or glob such as "reader_*", -> policy name. A full name wins over a glob.
        concurrency: how many episodes are alive, and threads step environments, at a time.
        run_seed: with the episode's id, the request's place and the agent it seeds each request.
        sampling: for all agents, or agent or glob -> sampling.
        deterministic: let the requests of all live episodes through together, round by round and in
            the order of the episodes, so that a policy that batches what is waiting sees the same
            batches in every run. Then episodes do wait for each other.
        patience: with trouble.

    Raises:
        ConfigError: an agent without a policy, a role without its policy, an environment that is
            none of the three kinds or breaks their rules.
        CollectionFailed: all episodes ended as `failed`, after they were yielded.
    """
    _check(policies, roles, concurrency)
    sampling = sampling if sampling is not None else Sampling()
    players = Players(policies, roles, sampling, run_seed)
    queue: asyncio.Queue[Rollout | Exception | None] = asyncio.Queue(concurrency)
    numbered = enumerate(episodes)
    gate = _Gate(concurrency) if deterministic else None
    threads = ThreadPoolExecutor(concurrency, thread_name_prefix="text-env")
    workers = [
        asyncio.create_task(
            _work(env_fn, numbered, players, queue, gate, threads, patience or Patience())
        )
        for _ in range(concurrency)
    ]
    working, played, failed, reason = concurrency, 0, 0, ""
    try:
        while working:
            item = await queue.get()
            if item is None:
                working -= 1
            elif isinstance(item, Exception):
                raise item
            else:
                played += 1
                if item.outcome == "failed":
                    failed += 1
                    reason = reason or str(item.summary.get("failure", ""))
                yield item
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        threads.shutdown(wait=False)
    if played and failed == played:
        raise CollectionFailed(
            f"all {played} episodes failed; the first one because: {reason or 'not known'}"
        )


def collect_all(
    env_fn: Callable[[], Any],
    episodes: Sequence[Episode],
    policies: Mapping[str, Policy],
    **options: Unpack[CollectOptions],
) -> list[Rollout]:
    """Play `episodes` to the end and return their rollouts in the order of the episodes.

    For use outside of an event loop; the arguments are those of `collect`.
    """

    async def run() -> list[Rollout]:
        return [rollout async for rollout in collect(env_fn, episodes, policies, **options)]

    place = {episode.episode_id: index for index, episode in enumerate(episodes)}
    if len(place) != len(episodes):
        raise ConfigError("the episodes' ids must differ from each other")
    return sorted(asyncio.run(run()), key=lambda rollout: place[rollout.rollout_id])


def _check(policies: Mapping[str, Policy], roles: Mapping[str, str], concurrency: int) -> None:
    if concurrency < 1:
        raise ConfigError(f"concurrency must be at least 1, got {concurrency}")
    for agent, name in roles.items():
        if name not in policies:
            raise ConfigError(
                f"role {agent!r} is given to policy {name!r}, which does not exist; "
                f"known: {sorted(policies)}"
            )


class _Gate:
    """Holds every worker until all have come, then lets them through in the order of their keys."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def wait(self, key: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting[key] = turn
        self._open_if_complete()
        await turn

    def leave(self) -> None:
        """Say that this worker will not come again."""
        self._workers -= 1
        self._open_if_complete()

    def _open_if_complete(self) -> None:
        if self._waiting and len(self._waiting) == self._workers:
            turns = [turn for _, turn in sorted(self._waiting.items())]
            self._waiting = {}
            # Later, not now: the last to come would find its turn done already and go first.
            asyncio.get_running_loop().call_soon(_let_through, turns)


def _let_through(turns: Sequence[asyncio.Future[None]]) -> None:
    for turn in turns:
        if not turn.done():  # else its worker has been cancelled
            turn.set_result(None)


async def _work(
    env_fn: Callable[[], Any],
    episodes: Iterator[tuple[int, Episode]],
    players: Players,
    queue: asyncio.Queue[Rollout | Exception | None],
    gate: _Gate | None,
    threads: ThreadPoolExecutor,
    patience: Patience,
) -> None:
    """Play one episode after the other in one environment; put rollouts, then None or an error."""
    driver: Driver | None = None
    end: Exception | None = None
    try:
        try:
            for index, episode in episodes:
                if driver is None:
                    driver = await in_thread(threads, lambda: make_driver(env_fn()))
                game = Game(
                    driver,
                    episode,
                    players=players,
                    threads=threads,
                    patience=patience,
                    before_round=None if gate is None else partial(gate.wait, index),
                )
                await queue.put(await game.play())
        finally:
            if gate is not None:
                gate.leave()
            if driver is not None:
                await in_thread(threads, driver.close)
    except Exception as error:
        end = error
    await queue.put(end)

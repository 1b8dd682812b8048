"""The collector: every episode at its own pace, nothing lost, nothing counted twice."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gymnasium
import pytest
from pettingzoo import ParallelEnv

from trainers import Generation, Request, Rollout, Sampling
from trainers.collect import Episode, Patience, collect, collect_all, request_seed
from trainers.errors import CollectionFailed, ConfigError
from trainers.policies import GenerationFailed, PolicyExhausted

QUICK = Patience(step_retries=2, first_delay_s=0.001, failures_in_a_row=3)
BOTH = {"coder_*": "p"}


class Scripted:
    """Answers by a function of the request and remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], str] = lambda request: "w") -> None:
        self.name = "p"
        self.version = 0
        self.answer = answer
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Generation:
        self.requests.append(request)
        return Generation(text=self.answer(request))


def episodes(count: int, **options: Any) -> list[Episode]:
    return [
        Episode(episode_id=f"e{i}", group_id=f"g{i}", seed=i, options=options or None)
        for i in range(count)
    ]


def by_seed(request: Request) -> str:
    return "abcdwxyz"[request.seed % 8]


def test_a_tree_becomes_one_rollout_with_a_turn_per_node(toy: ModuleType) -> None:
    (rollout,) = collect_all(toy.ToyTree, episodes(1, task="a"), {"p": Scripted()}, roles=BOTH)
    assert rollout.outcome == "terminated"
    assert rollout.env_id == "toy_tree_v0"
    assert rollout.task_id == "a"
    assert [turn.info["node_id"] for turn in rollout.turns] == list(range(8))
    assert all(turn.reward == 1.0 and turn.info["solved"] for turn in rollout.turns)
    assert rollout.episode_reward == 8.0
    assert rollout.summary["node_id"] == 7
    assert rollout.summary["failed_generations"] == 0
    assert rollout.prompt_hash == hashlib.sha256(b"a>").hexdigest()[:16]
    assert rollout.turns[0].prompt == "a>"


def test_reward_of_a_turn_is_what_its_agent_alone_received(toy: ModuleType) -> None:
    policies = {"good": Scripted(), "bad": Scripted(lambda request: "x")}
    (rollout,) = collect_all(
        toy.ToyTree,
        episodes(1, task="a"),
        policies,
        roles={"coder_0": "good", "coder_1": "bad"},
    )
    agents = Counter(turn.agent for turn in rollout.turns)
    assert len(agents) == 2
    assert all(turn.reward == float(turn.agent == "coder_0") for turn in rollout.turns)
    assert rollout.episode_reward == agents["coder_0"]


def test_rollouts_do_not_depend_on_concurrency(toy: ModuleType) -> None:
    runs = [
        collect_all(
            toy.ToyTree,
            episodes(6),
            {"p": Scripted(by_seed)},
            roles=BOTH,
            concurrency=concurrency,
            run_seed=3,
        )
        for concurrency in (1, 4, 9)
    ]
    assert runs[0] == runs[1] == runs[2]
    assert [rollout.rollout_id for rollout in runs[0]] == [f"e{i}" for i in range(6)]


def test_every_request_has_its_own_reproducible_seed(toy: ModuleType) -> None:
    policy = Scripted()
    collect_all(toy.ToyTree, episodes(3), {"p": policy}, roles=BOTH, run_seed=5)
    seeds = [request.seed for request in policy.requests]
    assert len(set(seeds)) == len(seeds) == 24
    first = next(request for request in policy.requests if request.episode_id == "e1")
    assert first.seed == request_seed(5, "e1", 0, first.agent)
    # A golden value: the seed must not change with the machine or the release.
    digest = hashlib.sha256(b'[5, "e1", 0, "coder_0"]').digest()
    assert request_seed(5, "e1", 0, "coder_0") == int.from_bytes(digest[:8], "big") >> 1


def test_requests_carry_what_scripted_agents_need(toy: ModuleType) -> None:
    policy = Scripted()
    collect_all(
        toy.ToyTree,
        episodes(1, task="b"),
        {"p": policy},
        roles=BOTH,
        sampling={"coder_0": Sampling(max_tokens=3), "*": Sampling(max_tokens=4)},
    )
    request = policy.requests[0]
    assert (request.env_id, request.task_id, request.episode_id) == ("toy_tree_v0", "b", "e0")
    assert request.observation["prompt"] == request.prompt == "b>"
    assert request.info["node_id"] == -2
    for request in policy.requests:
        assert request.sampling.max_tokens == (3 if request.agent == "coder_0" else 4)


def test_a_slow_episode_does_not_hold_up_the_others(toy: ModuleType) -> None:
    release = threading.Event()

    class Slow(toy.ToyTree):  # type: ignore[misc, name-defined]
        def step(self, action: str | None) -> None:
            if self.task == "a":
                release.wait(10)
            super().step(action)

    tasks = [Episode(episode_id=t, group_id=t, seed=0, options={"task": t}) for t in "abcd"]

    async def main() -> list[str]:
        order = []
        async for rollout in collect(Slow, tasks, {"p": Scripted()}, roles=BOTH, concurrency=2):
            order.append(rollout.rollout_id)
            if len(order) == 3:
                release.set()
        return order

    assert asyncio.run(main()) == ["b", "c", "d", "a"]


def test_environments_step_at_the_same_time_in_threads(toy: ModuleType) -> None:
    barrier = threading.Barrier(4, timeout=10)

    class Meeting(toy.ToyTree):  # type: ignore[misc, name-defined]
        def step(self, action: str | None) -> None:
            if self.agents and not self.nodes:
                barrier.wait()  # passes only if four steps run at once
            super().step(action)

    rollouts = collect_all(
        Meeting, episodes(4), {"p": Scripted()}, roles=BOTH, concurrency=4, patience=QUICK
    )
    assert [rollout.outcome for rollout in rollouts] == ["terminated"] * 4


class Coalescing(Scripted):
    """Answers what came in since it last looked as one batch, and notes the batches."""

    def __init__(self) -> None:
        super().__init__(by_seed)
        self.batches: list[list[str]] = []
        self._open: list[str] | None = None

    async def generate(self, request: Request) -> Generation:
        if self._open is None:
            self._open = []
            self.batches.append(self._open)
            asyncio.get_running_loop().call_soon(self._close)
        self._open.append(request.episode_id)
        return await super().generate(request)

    def _close(self) -> None:
        self._open = None


def test_deterministic_collection_fixes_the_batches(toy: ModuleType) -> None:
    lag = iter([0.02, 0.0, 0.01, 0.0, 0.03] * 100)
    lock = threading.Lock()

    class Jittery(toy.ToyTree):  # type: ignore[misc, name-defined]
        def step(self, action: str | None) -> None:
            with lock:
                pause = next(lag)
            time.sleep(pause / 5)
            super().step(action)

    def batches() -> list[list[str]]:
        policy = Coalescing()
        collect_all(
            Jittery, episodes(5), {"p": policy}, roles=BOTH, concurrency=3, deterministic=True
        )
        return policy.batches

    first = batches()
    assert first[:8] == [["e0", "e1", "e2"]] * 8
    assert first[8:] == [["e3", "e4"]] * 8
    assert batches() == first


def test_an_agent_without_policy_is_a_clear_error(toy: ModuleType) -> None:
    policy = Scripted()
    with pytest.raises(ConfigError, match=r"agent 'coder_1' has no policy; roles cover \['c"):
        collect_all(toy.ToyTree, episodes(1), {"p": policy}, roles={"coder_0": "p"})
    assert policy.requests == []


def test_a_role_without_its_policy_is_a_clear_error(toy: ModuleType) -> None:
    with pytest.raises(ConfigError, match=r"role 'coder_\*' is given to policy 'q'"):
        collect_all(toy.ToyTree, episodes(1), {"p": Scripted()}, roles={"coder_*": "q"})


def test_a_full_name_wins_over_a_glob(toy: ModuleType) -> None:
    general, special = Scripted(), Scripted()
    collect_all(
        toy.ToyTree,
        episodes(1),
        {"g": general, "s": special},
        roles={"*": "g", "coder_1": "s"},
    )
    assert {request.agent for request in general.requests} == {"coder_0"}
    assert {request.agent for request in special.requests} == {"coder_1"}


def failing(agent: str, error: type[Exception], times: int = 10**9) -> Callable[[Request], str]:
    left = [times]

    def answer(request: Request) -> str:
        if request.agent == agent and left[0]:
            left[0] -= 1
            raise error("no answer came")
        return "w"

    return answer


def test_a_failed_generation_is_told_to_the_environment_which_goes_on(toy: ModuleType) -> None:
    policy = Scripted(failing("coder_0", GenerationFailed, times=2))
    (rollout,) = collect_all(toy.ToyTree, episodes(1), {"p": policy}, roles=BOTH)
    assert rollout.outcome == "terminated"
    assert len(rollout.turns) == 8
    assert rollout.summary["failed_generations"] == 2
    seeds = [request.seed for request in policy.requests]
    assert len(set(seeds)) == 10  # a new try has a new seed


def test_an_exhausted_agent_leaves_and_the_others_go_on(toy: ModuleType) -> None:
    policy = Scripted(failing("coder_0", PolicyExhausted))
    (rollout,) = collect_all(toy.ToyTree, episodes(1), {"p": policy}, roles=BOTH)
    assert rollout.outcome == "terminated"
    assert {turn.agent for turn in rollout.turns} == {"coder_1"}
    assert sum(request.agent == "coder_0" for request in policy.requests) <= 1


def test_an_episode_ends_when_all_agents_are_exhausted(toy: ModuleType) -> None:
    def answer(request: Request) -> str:
        raise PolicyExhausted

    (rollout,) = collect_all(toy.ToyTree, episodes(1), {"p": Scripted(answer)}, roles=BOTH)
    assert rollout.outcome == "terminated"
    assert rollout.turns == ()


def test_generations_that_keep_failing_end_the_rollout_as_failed(toy: ModuleType) -> None:
    def answer(request: Request) -> str:
        if request.episode_id == "e0":
            raise GenerationFailed("server gone")
        return "w"

    rollouts = collect_all(
        toy.ToyTree, episodes(2), {"p": Scripted(answer)}, roles=BOTH, patience=QUICK
    )
    assert [rollout.outcome for rollout in rollouts] == ["failed", "terminated"]
    assert rollouts[0].summary["failure"] == "4 generations failed in a row: server gone"


def test_without_fail_a_failed_generation_fails_the_rollout(toy: ModuleType) -> None:
    class NoFail(toy.ToyTree):  # type: ignore[misc, name-defined]
        metadata = {"name": "no_fail_v0"}  # noqa: RUF012

    policy = Scripted(failing("coder_0", GenerationFailed, times=1))
    rollouts = collect_all(NoFail, episodes(3), {"p": policy}, roles=BOTH, concurrency=1)
    assert [rollout.outcome for rollout in rollouts] == ["failed", "terminated", "terminated"]
    assert "no_fail_v0 cannot go on" in str(rollouts[0].summary["failure"])


def test_a_step_that_raises_is_tried_again(toy: ModuleType) -> None:
    class Flaky(toy.ToyTree):  # type: ignore[misc, name-defined]
        trouble = 2

        def step(self, action: str | None) -> None:
            if action is not None and Flaky.trouble:
                Flaky.trouble -= 1
                raise RuntimeError("no judge")
            super().step(action)

    policy = Scripted()
    (rollout,) = collect_all(Flaky, episodes(1), {"p": policy}, roles=BOTH, patience=QUICK)
    assert rollout.outcome == "terminated"
    assert len(rollout.turns) == len(policy.requests) == 8


def test_a_step_that_keeps_raising_fails_its_rollout_only(toy: ModuleType) -> None:
    class Broken(toy.ToyTree):  # type: ignore[misc, name-defined]
        def step(self, action: str | None) -> None:
            if self.task == "a" and len(self.nodes) == 2:
                raise RuntimeError("no judge")
            super().step(action)

    tasks = [Episode(episode_id=t, group_id=t, seed=0, options={"task": t}) for t in "ab"]
    bad, good = collect_all(Broken, tasks, {"p": Scripted()}, roles=BOTH, patience=QUICK)
    assert bad.outcome == "failed"
    assert bad.summary["failure"] == "RuntimeError: no judge (3 tries)"
    assert len(bad.turns) == 2  # what was played is kept
    assert good.outcome == "terminated"


def test_when_every_episode_fails_the_collection_raises(toy: ModuleType) -> None:
    class Broken(toy.ToyTree):  # type: ignore[misc, name-defined]
        def reset(self, seed: int | None = None, options: Any = None) -> None:
            raise RuntimeError("no judge")

    with pytest.raises(CollectionFailed, match=r"all 3 episodes failed.*RuntimeError: no judge"):
        collect_all(Broken, episodes(3), {"p": Scripted()}, roles=BOTH, patience=QUICK)


def test_a_bug_in_a_policy_ends_the_collection(toy: ModuleType) -> None:
    def answer(request: Request) -> str:
        raise ZeroDivisionError

    for deterministic in (False, True):
        with pytest.raises(ZeroDivisionError):
            collect_all(
                toy.ToyTree,
                episodes(5),
                {"p": Scripted(answer)},
                roles=BOTH,
                deterministic=deterministic,
            )


def test_environments_are_reused_and_all_closed(toy: ModuleType) -> None:
    counts: Counter[str] = Counter()

    class Counted(toy.ToyTree):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            counts["made"] += 1

        def close(self) -> None:
            counts["closed"] += 1

    async def stop_early() -> None:
        stream = collect(Counted, episodes(9), {"p": Scripted()}, roles=BOTH, concurrency=2)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]

    collect_all(Counted, episodes(9), {"p": Scripted()}, roles=BOTH, concurrency=3)
    assert counts == {"made": 3, "closed": 3}
    counts.clear()
    asyncio.run(stop_early())
    assert counts["made"] == counts["closed"]


def test_episode_ids_must_differ(toy: ModuleType) -> None:
    with pytest.raises(ConfigError, match="ids must differ"):
        collect_all(toy.ToyTree, episodes(1) * 2, {"p": Scripted()}, roles=BOTH)


# --- Parallel and Gymnasium environments -------------------------------------------------------


class Relay(ParallelEnv[str, Any, Any]):
    """Two readers speak first, then an answerer; at the end all three share one reward."""

    metadata = {"name": "relay_v0"}  # noqa: RUF012

    def __init__(self, final: dict[str, float] | None = None, *, truncate: bool = False) -> None:
        self.possible_agents = ["reader_0", "reader_1", "answerer_0"]
        self.final = final or dict.fromkeys(self.possible_agents, 2.0)
        self.truncate = truncate
        self.heard: list[dict[str, str]] = []

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        self.agents = list(self.possible_agents)
        self.turn = 0
        return self._view()

    def step(self, actions: dict[str, str]) -> Any:
        self.heard.append(actions)
        self.turn += 1
        over = self.turn == 2
        agents = self.agents
        rewards = self.final if over else dict.fromkeys(agents, 0.25)
        observations, infos = self._view()
        ended = dict.fromkeys(agents, over and not self.truncate)
        cut = dict.fromkeys(agents, over and self.truncate)
        self.agents = [] if over else agents
        return observations, rewards, ended, cut, infos

    def _view(self) -> tuple[Any, Any]:
        active = ["reader_0", "reader_1"] if self.turn == 0 else ["answerer_0"]
        infos = {
            agent: {"active": agent in active, "turn": self.turn, "task_id": "t"}
            for agent in self.agents
        }
        observations = {a: {"prompt": f"{a}?" if a in active else ""} for a in self.agents}
        return observations, infos


TEAM = {"reader_*": "p", "answerer_0": "p"}


def test_parallel_agents_speak_when_active_and_the_others_stay_silent() -> None:
    env = Relay()
    (rollout,) = collect_all(
        lambda: env, episodes(1), {"p": Scripted(lambda r: r.agent)}, roles=TEAM
    )
    assert env.heard == [
        {"answerer_0": "", "reader_0": "reader_0", "reader_1": "reader_1"},
        {"reader_0": "", "reader_1": "", "answerer_0": "answerer_0"},
    ]
    assert [turn.agent for turn in rollout.turns] == ["reader_0", "reader_1", "answerer_0"]
    assert rollout.outcome == "terminated"
    assert rollout.summary["turn"] == 2


def test_a_turn_collects_rewards_until_its_agent_acts_again() -> None:
    (rollout,) = collect_all(Relay, episodes(1), {"p": Scripted()}, roles=TEAM)
    assert [turn.reward for turn in rollout.turns] == [2.25, 2.25, 2.0]


def test_a_shared_reward_is_counted_once_per_step() -> None:
    (rollout,) = collect_all(Relay, episodes(1), {"p": Scripted()}, roles=TEAM)
    assert rollout.episode_reward == 2.25  # not 6.75


def test_different_rewards_add_up() -> None:
    final = {"reader_0": 1.0, "reader_1": 0.0, "answerer_0": 1.0}
    (rollout,) = collect_all(lambda: Relay(final), episodes(1), {"p": Scripted()}, roles=TEAM)
    assert rollout.episode_reward == 0.25 + 2.0


def test_an_environment_may_declare_its_rewards_not_shared() -> None:
    class Own(Relay):
        metadata = {"name": "own_v0", "shared_reward": False}  # noqa: RUF012

    (rollout,) = collect_all(Own, episodes(1), {"p": Scripted()}, roles=TEAM)
    assert rollout.episode_reward == 3 * 2.25


def test_a_declared_shared_reward_that_differs_is_an_error() -> None:
    class Torn(Relay):
        metadata = {"name": "torn_v0", "shared_reward": True}  # noqa: RUF012

    final = {"reader_0": 1.0, "reader_1": 0.0, "answerer_0": 1.0}
    with pytest.raises(ConfigError, match="shared_reward=True but gave different rewards"):
        collect_all(lambda: Torn(final), episodes(1), {"p": Scripted()}, roles=TEAM)


def test_truncation_is_told_from_termination() -> None:
    (rollout,) = collect_all(
        lambda: Relay(truncate=True), episodes(1), {"p": Scripted()}, roles=TEAM
    )
    assert rollout.outcome == "truncated"


def test_a_parallel_agent_that_failed_is_left_out_of_the_step() -> None:
    class Lenient(Relay):
        metadata = {"name": "lenient_v0", "supports_fail": True}  # noqa: RUF012

    env = Lenient()
    policy = Scripted(failing("reader_1", GenerationFailed))
    (rollout,) = collect_all(lambda: env, episodes(1), {"p": policy}, roles=TEAM)
    assert env.heard[0] == {"answerer_0": "", "reader_0": "w"}
    assert [turn.agent for turn in rollout.turns] == ["reader_0", "answerer_0"]


def test_an_environment_in_which_nobody_is_active_is_an_error() -> None:
    class Stuck(Relay):
        def _view(self) -> tuple[Any, Any]:
            observations, infos = super()._view()
            return observations, {agent: {"active": False} for agent in infos}

    with pytest.raises(ConfigError, match="3 agents are alive but none is active"):
        collect_all(Stuck, episodes(1), {"p": Scripted()}, roles=TEAM)


class Guess(gymnasium.Env[Any, Any]):
    """A text environment of two steps, for one agent."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)

    def __init__(self, *, truncate: bool = False) -> None:
        self.truncate = truncate

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return "first", {"task_id": "t"}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.count += 1
        over = self.count == 2
        return (
            "second",
            float(action == "w"),
            over and not self.truncate,
            over and self.truncate,
            {"task_id": "t", "count": self.count},
        )


def play_guess(truncate: bool = False, **options: Any) -> Rollout:
    (rollout,) = collect_all(
        lambda: Guess(truncate=truncate), episodes(1), {"p": Scripted()}, roles={"*": "p"}
    )
    return rollout


def test_gymnasium_environments_are_played_too() -> None:
    rollout = play_guess()
    assert [(turn.agent, turn.prompt, turn.reward) for turn in rollout.turns] == [
        ("agent_0", "first", 1.0),
        ("agent_0", "second", 1.0),
    ]
    assert rollout.turns[1].info["count"] == rollout.summary["count"] == 2
    assert (rollout.outcome, rollout.episode_reward) == ("terminated", 2.0)
    assert play_guess(truncate=True).outcome == "truncated"


def test_things_that_are_no_environment_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected a PettingZoo AEC or Parallel.*got int"):
        collect_all(lambda: 3, episodes(1), {"p": Scripted()}, roles={"*": "p"})


def test_observations_without_a_prompt_are_refused() -> None:
    class Mute(Guess):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return 3, {}

    with pytest.raises(ConfigError, match="\"prompt\" string for agent 'agent_0', got int"):
        collect_all(Mute, episodes(1), {"p": Scripted()}, roles={"*": "p"})

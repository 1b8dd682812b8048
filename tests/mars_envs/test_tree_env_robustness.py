"""Evidence for the tree environments: conversions, odd texts, copies, a thousand at once."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import (
    aec_to_parallel,
    parallel_to_aec,
    turn_based_aec_to_parallel,
)

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv, tree_search_v0
from mars_envs.spaces import TEXT_LIMIT
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import tree_to_html, tree_to_text

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
}
SEARCHED = [{}, {"select": "agent"}]


# Conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", SEARCHED, ids=["search", "agent"])
def test_both_forms_convert_into_each_other(options: dict[str, Any]) -> None:
    turns = turn_based_aec_to_parallel(tree_search_v0.raw_env(**STUBS, **options))
    parallel_api_test(turns, num_cycles=20)
    rounds = tree_search_v0.parallel_env(**STUBS, **options)
    assert aec_to_parallel(parallel_to_aec(rounds)) is rounds
    api_test(parallel_to_aec(rounds), num_cycles=20)


def test_a_search_that_picks_the_agent_cannot_become_a_cycle() -> None:
    with pytest.raises(AssertionError, match="is not generally safe"):
        aec_to_parallel(tree_search_v0.raw_env(**STUBS))


def test_rounds_keep_to_max_cycles() -> None:
    """PettingZoo's test wants every agent to act in every cycle.

    `tree_search_v0.env` cannot pass it, since the search chooses who acts; the rounds can, in both
    forms.
    """

    def rounds(**options: Any) -> ParallelTreeSearchEnv:
        return tree_search_v0.parallel_env(**STUBS, budget=100, **options)

    max_cycles_test(
        SimpleNamespace(
            parallel_env=rounds, env=lambda **options: parallel_to_aec(rounds(**options))
        )
    )


def test_converted_environments_repeat_with_their_seeds() -> None:
    parallel_seed_test(lambda: turn_based_aec_to_parallel(tree_search_v0.raw_env(**STUBS)))


# Odd texts ------------------------------------------------------------------------------------

FENCE = "`" * 3
BOMBS = [
    "",
    "\0",
    "\0" * 1000,
    "\ud800",
    "\udfff" * 1000,
    "a\udc80b\ud83d\ude00",
    "\u202e\u2066 right to left \u2069",
    FENCE * 20_000,
    f"{FENCE}python\n" * 5_000,
    f"{FENCE}\n{FENCE}python\nprint(1)\n" * 1_000 + "~~~" * 10_000,
    "> " * 20_000,
    "[" * 20_000 + "](x)",
    "<pre>" * 5_000 + "</details>" * 5_000,
    "Parent: 0\n" * 3_000,
    "Parent: " + "9" * 5_000,
    "\r\n\x0b\x0c\x1c\x85\u2028\u2029" * 500,
    "x" * TEXT_LIMIT,
    "é" * (TEXT_LIMIT + 1),
    "👩‍👩‍👧‍👦" * 30_000,
]
ODD = st.one_of(
    st.sampled_from(BOMBS),
    st.text(max_size=200),
    st.text(alphabet=st.characters(codec=None, categories=["Cs", "Cc", "Zl", "Lo"]), max_size=50),
    st.lists(st.sampled_from([FENCE, "python", "\n", "print(1)", "Parent: 1", "\0"])).map("".join),
)
ROW = st.one_of(st.none(), st.integers(0, 6))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(st.tuples(ODD, ROW), min_size=6, max_size=6), agents=st.booleans())
def test_whatever_is_written_is_data(texts: list[tuple[str, int | None]], agents: bool) -> None:
    """Any text becomes a node; observations stay in their spaces, and everything can be encoded."""
    env = TreeSearchEnv(**STUBS, budget=6, select="agent" if agents else "search", max_tokens=10**9)
    env.reset(seed=0)
    for text, row in texts:
        agent = env.agent_selection
        env.step({"parent": row, "text": text} if agents and row is not None else text)
        for other in env.agents:
            assert env.observation_space(other).contains(env.observe(other))
        env.tree[env.infos[agent]["node_id"]].reply.encode()
        assert env.state_space.contains(env.state())
    assert len(env.tree) == 6
    tree_to_text(env.tree, programs=True).encode()
    tree_to_html(env.tree).encode()
    assert pickle.loads(pickle.dumps(env)).tree == env.tree


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_every_bomb_is_survived_by_all_agents_at_once(text: str) -> None:
    env = ParallelTreeSearchEnv(**STUBS, agents=3, budget=6)
    env.reset(seed=0)
    while env.agents:
        returned = env.step(dict.fromkeys(env.agents, text))
        for agent, observation in returned[0].items():
            assert env.observation_space(agent).contains(observation)
    assert len(env.tree) == 6


# Copies in mid-episode ------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    cut=st.integers(0, 11),
    selector=st.sampled_from(["default", "paper", "marti_code", "ucb"]),
    budget=st.integers(1, 12),
    select=st.sampled_from(["search", "agent"]),
)
def test_a_copy_at_any_point_goes_on_identically(
    seed: int, cut: int, selector: str, budget: int, select: str
) -> None:
    env = TreeSearchEnv(**STUBS, selector=selector, budget=budget, select=select)
    env.reset(seed=seed)
    for turn in range(min(cut, budget)):
        env.step(f"print({turn})")
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        original = copy.deepcopy(env)
        while not any(original.terminations.values()):
            assert twin.agent_selection == original.agent_selection
            agent = original.agent_selection
            assert twin.observe(agent)["prompt"] == original.observe(agent)["prompt"]
            text = f"print({len(original.tree)})"
            original.step(text)
            twin.step(text)
        assert twin.tree == original.tree


# A thousand at once ---------------------------------------------------------------------------

MANY, BUDGET = 1000, 8


def trace_of(env: Any) -> tuple[Any, ...]:
    """What an episode has come to."""
    return (
        env.task.task_id,
        tuple((node.parent_id, node.agent, node.reply, node.solved) for node in env.tree),
        tuple(sorted(env.infos[env.possible_agents[0]].items())),
    )


def advance(env: TreeSearchEnv) -> bool:
    """Take one turn; return whether the episode goes on."""
    agent = env.agent_selection
    prompt = env.observe(agent)["prompt"]
    env.step(f"{agent} {len(env.tree)} {hash_of(prompt)}")
    return not (env.terminations[agent] or env.truncations[agent])


def hash_of(text: str) -> int:
    return sum(map(ord, text)) % 1000


def one_after_another() -> list[tuple[Any, ...]]:
    env = TreeSearchEnv(**STUBS, budget=BUDGET)
    traces = []
    for seed in range(MANY):
        env.reset(seed=seed)
        while advance(env):
            pass
        traces.append(trace_of(env))
    return traces


def live_envs(many: int = MANY) -> list[TreeSearchEnv]:
    tasks, judge = stub_tasks(), StubJudge()
    envs = [TreeSearchEnv(tasks=tasks, judge=judge, budget=BUDGET) for _ in range(many)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    return envs


@pytest.fixture(scope="module")
def alone() -> list[tuple[Any, ...]]:
    return one_after_another()


@pytest.mark.slow
def test_a_thousand_episodes_at_once_are_those_one_after_another(
    alone: list[tuple[Any, ...]],
) -> None:
    envs = live_envs()
    order = random.Random(0)
    going = list(range(MANY))
    while going:
        place = order.randrange(len(going))
        if not advance(envs[going[place]]):
            going[place] = going[-1]
            going.pop()
    assert [trace_of(env) for env in envs] == alone


@pytest.mark.slow
def test_a_thousand_episodes_in_threads_are_those_one_after_another(
    alone: list[tuple[Any, ...]],
) -> None:
    envs = live_envs()
    switch, threads = sys.getswitchinterval(), threading.active_count()
    sys.setswitchinterval(1e-5)  # let threads meet as often as they can
    try:
        with ThreadPoolExecutor(16) as pool:
            going = envs
            while going:
                still = list(pool.map(advance, going))
                going = [env for env, goes_on in zip(going, still, strict=True) if goes_on]
    finally:
        sys.setswitchinterval(switch)
    assert [trace_of(env) for env in envs] == alone
    assert threading.active_count() == threads


@pytest.mark.slow
def test_the_memory_of_an_environment_is_bounded() -> None:
    """Episodes leave nothing behind, and an environment with a finished tree stays small."""
    tracemalloc.start()
    envs = live_envs(50)
    sizes = []
    for _ in range(3):
        for env in envs:
            env.reset()
            while advance(env):
                pass
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0] / len(envs))
    tracemalloc.stop()
    assert sizes[0] < 100 * 1024  # bytes
    assert sizes[2] < 1.1 * sizes[0]


def test_rounds_leave_no_thread_behind() -> None:
    threads = threading.active_count()
    for seed in range(20):
        env = ParallelTreeSearchEnv(**STUBS, agents=4)
        env.reset(seed=seed)
        while env.agents:
            env.step(dict.fromkeys(env.agents, "print(1)"))
    assert threading.active_count() == threads

"""ParallelTreeSearchEnv: all agents expand the tree at once, round by round."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
import time
from typing import Any

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from mars_envs import JudgeUnavailable, ParallelTreeSearchEnv, ProtocolError, tree_search_v0
from mars_envs.judging import Verdict
from mars_envs.tasks import CodeTask
from mars_envs.testing import StubJudge, check_tree_search
from mars_envs.tree_search import NOTHING, ROOT

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
}


def make(**options: Any) -> ParallelTreeSearchEnv:
    return ParallelTreeSearchEnv(**{**STUBS, **options})


def active(env: ParallelTreeSearchEnv, infos: dict[str, Any]) -> list[str]:
    return [agent for agent in env.agents if infos[agent]["active"]]


def say(agents: list[str], round_: int = 0) -> dict[str, str]:
    return {agent: f"{agent} in round {round_}" for agent in agents}


def play(env: ParallelTreeSearchEnv, seed: int | None = 0) -> list[tuple[Any, ...]]:
    """Play an episode; return what each step returned."""
    _, infos = env.reset(seed=seed)
    steps: list[tuple[Any, ...]] = []
    while env.agents:
        steps.append(env.step(say(active(env, infos), len(steps))))
        infos = steps[-1][4]
    return steps


# Standard checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", ["default", "paper", "best_of_n"])
def test_pettingzoo_s_parallel_api_test_passes(selector: str) -> None:
    parallel_api_test(make(selector=selector, agents=3, budget=10), num_cycles=20)


def test_pettingzoo_s_parallel_seed_test_passes() -> None:
    parallel_seed_test(make)


def test_as_an_aec_environment_it_passes_pettingzoo_s_api_test() -> None:
    api_test(parallel_to_aec(make()), num_cycles=20)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selector": "paper", "agents": 4, "agent_mix": 0.3, "budget": 11},
        {"selector": "marti_code", "expand_solved": False},
        {"selector": "best_of_n", "agents": ["coder_7"]},
        {"stop_on_solved": True},
        {"max_cycles": 2},
        {"budget": 1},
        {"agent_budgets": {"coder_0": 1}, "max_tokens": 30, "feedback_level": "none"},
    ],
)
def test_whole_episodes_keep_the_contract_and_repeat_exactly(options: dict[str, Any]) -> None:
    check_tree_search(lambda: make(**options))


def test_the_factory_takes_the_options_of_the_class() -> None:
    assert tree_search_v0.parallel_env(**STUBS, max_cycles=3).max_cycles == 3


# Rounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "best_of_n"])
def test_every_agent_makes_one_node_in_a_round(selector: str) -> None:
    env = make(agents=3, budget=12, selector=selector)
    steps = play(env)
    assert len(steps) == 4
    assert [node.agent for node in env.tree] == ["coder_0", "coder_1", "coder_2"] * 4


def test_every_agent_sees_the_prompt_of_its_own_parent() -> None:
    env = make(agents=4, budget=40)
    observations, infos = env.reset(seed=2)
    parents = set()
    for round_ in range(9):
        for agent in env.agents:
            prompt, parent_id = observations[agent]["prompt"], infos[agent]["expand_id"]
            assert prompt.startswith(env.task.statement)
            if parent_id != ROOT:
                assert env.tree[parent_id].reply in prompt
                parents.add(parent_id)
        observations, _, _, _, infos = env.step(say(env.agents, round_))
        for agent in env.agents:
            assert env.tree[infos[agent]["node_id"]].reply == f"{agent} in round {round_}"
    assert len(parents) > 5


def test_the_last_round_asks_only_as_many_as_the_budget_allows() -> None:
    env = make(agents=3, budget=5)
    _, infos = env.reset(seed=0)
    _, _, _, _, infos = env.step(say(env.agents))
    asked = active(env, infos)
    assert len(asked) == 2
    (idle,) = set(env.agents) - set(asked)
    assert infos[idle]["expand_id"] == NOTHING
    observations, rewards, terminations, truncations, infos = env.step(say(asked, 1))
    everyone = {"coder_0", "coder_1", "coder_2"}
    assert all(
        set(part) == everyone for part in (observations, rewards, terminations, truncations, infos)
    )
    assert terminations == dict.fromkeys(sorted(everyone), True)
    assert not any(truncations.values())
    assert infos["coder_0"]["stop_reason"] == "nodes"
    assert len(env.tree) == 5
    assert env.agents == []


def test_the_action_of_an_idle_agent_is_ignored() -> None:
    env, twin = make(agents=3, budget=4), make(agents=3, budget=4)
    for other in (env, twin):
        other.reset(seed=0)
    infos = env.step(say(env.agents))[4]
    twin.step(say(twin.agents))
    asked = active(env, infos)
    assert len(asked) == 1
    full = {**dict.fromkeys(twin.agents, ""), **say(asked, 1)}
    assert env.step(say(asked, 1))[1:] == twin.step(full)[1:]
    assert env.tree == twin.tree


def test_pending_expansions_spread_the_agents() -> None:
    """With a pseudo-observation for each pending one, late choosers are drawn elsewhere."""

    def distinct(env: ParallelTreeSearchEnv) -> int:
        _, infos = env.reset(seed=11)
        for round_ in range(6):
            infos = env.step(say(env.agents, round_))[4]
        return len({infos[agent]["expand_id"] for agent in env.agents})

    assert distinct(make(agents=6, budget=60)) > 1


def test_the_actors_are_paid_for_their_own_nodes() -> None:
    env = make(agents=3, budget=30, judge=StubJudge(solve_rate=0.5))
    for _, rewards, _, _, infos in play(env):
        for agent, reward in rewards.items():
            assert reward == float(infos[agent]["solved"])


def test_rounds_can_be_limited_from_outside() -> None:
    env = make(max_cycles=2, budget=30)
    steps = play(env)
    assert len(steps) == 2
    _, _, terminations, truncations, infos = steps[-1]
    assert all(truncations.values())
    assert not any(terminations.values())
    assert infos["coder_0"]["stop_reason"] == "max_cycles"


# The order in which verdicts come -------------------------------------------------------------


class Slow(StubJudge):
    """Is late with the texts of the agents that come first."""

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        time.sleep(0.03 if completion.startswith("coder_0") else 0.0)
        return super().judge(task, completion)


def test_who_is_judged_first_changes_nothing() -> None:
    traces = [
        play(make(agents=4, budget=12, judge=judge, judge_threads=threads), seed=5)
        for judge, threads in ((StubJudge, 1), (StubJudge, None), (Slow, None), (Slow, 2))
    ]
    for trace in traces[1:]:
        for left, right in zip(traces[0], trace, strict=True):
            assert left[1:] == right[1:]
            for agent, observation in left[0].items():
                assert observation["prompt"] == right[0][agent]["prompt"]
                assert (observation["features"] == right[0][agent]["features"]).all()


def test_texts_are_judged_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=20)

    class Meeting(StubJudge):
        def judge(self, task: CodeTask, completion: str) -> Verdict:
            meeting.wait()
            return super().judge(task, completion)

    play(make(agents=3, budget=6, judge=Meeting))


# Judges that fail, agents that fail -----------------------------------------------------------


class FailsOnce(StubJudge):
    """Fails once on every text of coder_1, after coder_0's was judged."""

    seen: set[str] = set()  # noqa: RUF012

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        if completion.startswith("coder_1") and completion not in self.seen:
            self.seen.add(completion)
            raise JudgeUnavailable("no sandbox")
        return super().judge(task, completion)


def test_a_step_with_one_failing_verdict_changes_nothing_and_may_be_repeated() -> None:
    FailsOnce.seen.clear()
    bumpy, smooth = make(judge=FailsOnce(), budget=9, agents=3), make(budget=9, agents=3)
    for env in (bumpy, smooth):
        env.reset(seed=1)
    for round_ in range(3):
        before = pickle.dumps(bumpy.search.save()), bumpy.state().tobytes()
        with pytest.raises(JudgeUnavailable):
            bumpy.step(say(bumpy.agents, round_))
        assert (pickle.dumps(bumpy.search.save()), bumpy.state().tobytes()) == before
        actions = say(smooth.agents, round_)
        assert bumpy.step(actions)[1:] == smooth.step(actions)[1:]
        assert bumpy.search.save() == smooth.search.save()


class Wild(StubJudge):
    def judge(self, task: CodeTask, completion: str) -> Verdict:
        score = float("nan") if completion.startswith("coder_1") else 0.0
        return dataclasses.replace(super().judge(task, completion), score=score)


def test_a_score_that_is_no_share_is_refused_before_anything_changes() -> None:
    env = make(judge=Wild)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"scores in \[0, 1\], got nan for coder_1"):
        env.step(say(env.agents))
    assert len(env.tree) == 0


def test_a_missing_agent_has_failed_and_is_asked_again() -> None:
    env = make(agents=2, budget=3)
    env.reset(seed=0)
    _, rewards, _, _, infos = env.step({"coder_1": "mine"})
    assert [node.agent for node in env.tree] == ["coder_1"]
    assert infos["coder_0"]["node_id"] == NOTHING
    assert rewards["coder_0"] == 0.0
    assert infos["coder_0"]["nodes_left"] == 2
    assert active(env, infos) == ["coder_0", "coder_1"]
    assert list(env.search.abandoned.values()) == ["no action was given"]


def test_an_agent_may_say_why_it_failed() -> None:
    env = make(agents=2)
    env.reset(seed=0)
    env.fail("coder_0", "the server went away")
    with pytest.raises(ProtocolError, match="'coder_0' cannot fail: it is the turn of coder_1"):
        env.fail("coder_0", "twice")
    env.step({"coder_0": "too late", "coder_1": "mine"})
    assert [node.reply for node in env.tree] == ["mine"]
    assert list(env.search.abandoned.values()) == ["the server went away"]


def test_a_failure_for_good_retires_the_agent_but_keeps_its_place() -> None:
    env = make(agents=2, budget=4)
    _, infos = env.reset(seed=0)
    env.fail("coder_0", "nothing left to say", permanent=True)
    while env.agents:
        assert env.agents == ["coder_0", "coder_1"]
        infos = env.step({"coder_1": "mine"})[4]
        assert not infos["coder_0"]["active"]
    assert [node.agent for node in env.tree] == ["coder_1"] * 4
    assert env.reset()[1]["coder_0"]["active"]


def test_a_team_that_has_failed_for_good_ends_truncated() -> None:
    env = make(agents=2)
    env.reset(seed=0)
    for agent in env.agents:
        env.fail(agent, "exhausted", permanent=True)
    _, _, terminations, truncations, infos = env.step({})
    assert all(truncations.values())
    assert not any(terminations.values())
    assert infos["coder_0"]["stop_reason"] == "agents"


def test_a_round_without_any_answer_goes_on() -> None:
    env = make()
    env.reset(seed=0)
    _, _, terminations, _, infos = env.step({})
    assert not any(terminations.values())
    assert len(active(env, infos)) == 2


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ({"coder_0": None, "coder_1": "a"}, TypeError, "an action is a text"),
        ({"coder_7": "a"}, ValueError, r"actions for \['coder_7'\], but the agents are"),
    ],
)
def test_actions_that_make_no_sense_are_refused(
    actions: Any, error: type[Exception], message: str
) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(actions)
    assert len(env.tree) == 0


def test_stepping_out_of_order_is_a_clear_error() -> None:
    env = make(budget=2)
    with pytest.raises(ProtocolError, match="no episode is running; call reset"):
        env.step({})
    play(env)
    with pytest.raises(ProtocolError, match="no episode is running; call reset"):
        env.step({})


def test_a_number_of_threads_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="judge_threads must be at least 1 or None, got 0"):
        make(judge_threads=0)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_episode_continues_identically(clone: Any) -> None:
    env = make(budget=20)
    env.reset(seed=3)
    for round_ in range(4):
        env.step(say(env.agents, round_))
    twin = clone(env)
    while env.agents:
        assert env.step(say(env.agents))[1:] == twin.step(say(twin.agents))[1:]
    assert env.tree == twin.tree

"""The single-agent view: whose reward, whose info, and partners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import pytest

from mars_envs import JudgeUnavailable, ProtocolError, SingleAgentView, TreeSearchEnv
from mars_envs.judging import Verdict
from mars_envs.tasks import CodeTask
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search.view import TreeSearchView


def make(**options: Any) -> TreeSearchView:
    return TreeSearchView(**{"tasks": stub_tasks(), "judge": StubJudge(), **options})


def echo(observation: Any, info: Mapping[str, Any]) -> str:
    """A partner that can be named."""
    return f"partner at {info['nodes_left']}"


def test_a_step_returns_the_node_just_made_and_the_request_that_follows() -> None:
    env = make(budget=12)
    _, info = env.reset(seed=0)
    judge = StubJudge()
    for turn in range(12):
        actor, asked = info["agent"], info["expand_id"]
        observation, reward, terminated, truncated, info = env.step(f"print({turn})")
        assert info["node_id"] == turn
        assert info["node_parent_id"] == asked
        assert env.env.tree[turn].agent == actor
        assert reward == float(judge.judge(env.env.task, f"print({turn})").solved)
        assert terminated is (turn == 11)
        assert truncated is False
        if not terminated:
            assert info["active"]
            assert info["agent"] == env.env.agent_selection
            assert observation["prompt"]
    assert info["agent"] == actor
    assert not info["active"]
    assert observation["prompt"] == ""


def test_partners_speak_between_the_learner_s_turns() -> None:
    env = make(budget=30, partners={"coder_1": echo})
    _, info = env.reset(seed=1)
    over = False
    while not over:
        assert info["agent"] == "coder_0"
        _, _, terminated, truncated, info = env.step("mine")
        over = terminated or truncated
    replies = {(node.agent, node.reply.split()[0]) for node in env.env.tree}
    assert replies == {("coder_0", "mine"), ("coder_1", "partner")}


def test_the_learner_is_paid_for_its_own_nodes_only() -> None:
    env = make(budget=30, partners={"coder_1": echo}, judge=StubJudge(solve_rate=0.6))
    env.reset(seed=1)
    over, total, turn = False, 0.0, 0
    while not over:
        _, reward, terminated, truncated, _ = env.step(f"mine {turn}")
        over, total, turn = terminated or truncated, total + reward, turn + 1
    solved = [node.agent for node in env.env.tree if node.solved]
    assert total == solved.count("coder_0")
    assert solved.count("coder_1") > 0


def test_in_rounds_the_learner_is_told_of_its_own_node() -> None:
    env = make(parallel=True, agents=3, budget=10, partners={"coder_0": echo, "coder_2": echo})
    _, info = env.reset(seed=0)
    judge, tree = StubJudge(), env.env.unwrapped.tree
    over, turn = False, 0
    while not over:
        assert info["agent"] == "coder_1"
        _, reward, terminated, truncated, info = env.step(f"mine {turn}")
        node = tree[info["node_id"]]
        assert (node.agent, node.reply) == ("coder_1", f"mine {turn}")
        assert reward == float(judge.judge(env.env.unwrapped.task, f"mine {turn}").solved)
        over, turn = terminated or truncated, turn + 1
    assert len(tree) == 10
    assert [node.agent for node in tree].count("coder_1") == turn


def test_in_rounds_one_agent_can_learn() -> None:
    with pytest.raises(ValueError, match=r"agents act at once, so one can learn, not"):
        make(parallel=True)


class Flaky(StubJudge):
    """Fails once for each text that starts with `partner`."""

    failed: set[str] = set()  # noqa: RUF012

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        if completion.startswith("partner") and completion not in self.failed:
            self.failed.add(completion)
            raise JudgeUnavailable("no sandbox")
        return super().judge(task, completion)


def test_a_step_interrupted_in_a_partner_s_turn_may_be_repeated() -> None:
    def play(judge: StubJudge, retry: bool) -> tuple[list[Any], int]:
        env = make(budget=20, partners={"coder_1": echo}, judge=judge)
        while True:
            try:
                env.reset(seed=3)
                break
            except JudgeUnavailable:
                assert retry
        seen: list[Any] = []
        errors, over = 0, False
        while not over:
            try:
                _, reward, terminated, truncated, info = env.step(f"mine {len(seen)}")
            except JudgeUnavailable:
                errors += 1
                continue
            over = terminated or truncated
            seen.append((reward, terminated, truncated, info))
        return seen, errors

    Flaky.failed.clear()
    bumpy, errors = play(Flaky(), retry=True)
    smooth, none = play(StubJudge(), retry=False)
    assert errors > 2
    assert none == 0
    assert bumpy == smooth


def test_a_partner_can_be_named() -> None:
    env = make(partners={"coder_1": "mars_envs.testing:odd_partner"}, budget=20)
    env.reset(seed=0)
    assert env.step("mine")[4]["agent"] == "coder_0"


def test_equal_seeds_repeat_and_unseeded_resets_go_on() -> None:
    env = make()
    first = env.reset(seed=3)[1]["task_id"], env.reset()[1]["task_id"], env.reset()[1]["task_id"]
    again = env.reset(seed=3)[1]["task_id"], env.reset()[1]["task_id"], env.reset()[1]["task_id"]
    assert first == again


def test_options_reach_the_environment() -> None:
    assert make().reset(seed=0, options={"task": "stub/1"})[1]["task_id"] == "stub/1"


def test_a_learner_that_is_never_asked_is_a_clear_error() -> None:
    env = make(budget=1, selector="best_of_n", partners={"coder_0": echo})
    with pytest.raises(ProtocolError, match="partners alone finished 100 episodes in a row"):
        env.reset(seed=0)


def test_stepping_out_of_order_is_a_clear_error() -> None:
    env = make(budget=1)
    with pytest.raises(ProtocolError, match="no episode is running; call reset"):
        env.step("a")
    env.reset(seed=0)
    env.step("a")
    with pytest.raises(ProtocolError, match="no episode is running; call reset"):
        env.step("a")


@pytest.mark.parametrize(
    ("partners", "message"),
    [
        ({"coder_9": echo}, r"partners for unknown agents \['coder_9'\]"),
        ({"coder_0": echo, "coder_1": echo}, "no agent is left to learn"),
        ({"coder_0": "nonsense"}, "expected 'module:name', got 'nonsense'"),
    ],
)
def test_impossible_partners_are_refused(partners: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(partners=partners)


def test_learners_with_different_spaces_are_refused() -> None:
    inner = TreeSearchEnv(tasks=stub_tasks(), judge=StubJudge())
    inner.action_spaces["coder_1"] = gym.spaces.Discrete(2)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="coder_1 and coder_0 have different spaces"):
        SingleAgentView(inner)


def test_the_longest_episode_is_known() -> None:
    assert make(budget=5).max_turns == 5
    assert make(budget=5, max_cycles=3).max_turns == 3

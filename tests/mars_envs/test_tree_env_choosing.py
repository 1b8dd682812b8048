"""select="agent": the acting agent also chooses the node that it expands."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec, turn_based_aec_to_parallel

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv, tree_search_v0
from mars_envs.judging import Verdict
from mars_envs.tasks import CodeTask
from mars_envs.testing import ODD_TEXTS, StubJudge, check_tree_search
from mars_envs.tree_search import ROOT
from mars_envs.tree_search.view import TreeSearchView

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
    "select": "agent",
}


def make(**options: Any) -> TreeSearchEnv:
    return TreeSearchEnv(**{**STUBS, **options})


def chain(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> dict[str, Any]:
    """Refine the newest node that may be refined."""
    mask = info["action_mask"]["parent"]
    return {"parent": int(np.flatnonzero(mask)[-1]), "text": ODD_TEXTS[turn % len(ODD_TEXTS)]}


def best_first(observation: Any) -> int:
    """Choose by numbers alone: the row of the highest score, of equals the least visited."""
    tree = observation["tree"]
    valid = np.flatnonzero(tree[:, 5])
    return int(max(valid, key=lambda row: (tree[row, 3], -tree[row, 4])))


# Standard checks ------------------------------------------------------------------------------


def test_the_spaces_are_those_of_a_masked_choice() -> None:
    env = make(budget=5)
    space = env.action_space("coder_0")
    assert isinstance(space, gym.spaces.Dict)
    assert space["parent"] == gym.spaces.Discrete(6)
    assert set(env.observation_space("coder_0").spaces) == {"prompt", "features", "tree"}


def test_pettingzoo_s_tests_pass() -> None:
    api_test(tree_search_v0.env(**STUBS, agents=3), num_cycles=20)
    seed_test(lambda: tree_search_v0.env(**STUBS))
    parallel_api_test(ParallelTreeSearchEnv(**STUBS), num_cycles=20)
    parallel_seed_test(lambda: ParallelTreeSearchEnv(**STUBS))
    parallel_api_test(turn_based_aec_to_parallel(make()), num_cycles=20)
    state_test(make(), ParallelTreeSearchEnv(**STUBS))
    api_test(parallel_to_aec(ParallelTreeSearchEnv(**STUBS)), num_cycles=20)


def test_gymnasium_s_checker_passes_and_vectors_work() -> None:
    check_env(TreeSearchView(**STUBS), skip_render_check=True)
    envs = gym.make_vec(
        "mars_envs:mars_envs/TreeSearch-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False},
        **STUBS,
    )
    observations, infos = envs.reset(seed=0)
    assert observations["tree"].shape == (2, 9, 6)
    assert infos["action_mask"]["parent"].tolist() == [[1] + [0] * 8] * 2
    infos = envs.step({"parent": np.array([0, 0]), "text": ("a", "b")})[4]
    assert infos["action_mask"]["parent"].sum(axis=1).tolist() == [2, 2]
    envs.close()


@pytest.mark.parametrize("policy", [None, chain])
@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv, TreeSearchView])
def test_whole_episodes_keep_the_contract(kind: Any, policy: Any) -> None:
    options = {} if policy is None else {"policy": policy}
    check_tree_search(lambda: kind(**STUBS, agents=3, expand_solved=False), **options)


# Choices --------------------------------------------------------------------------------------


def test_the_agent_s_parent_is_expanded() -> None:
    env = make(budget=20)
    env.reset(seed=0)
    parents = [0, 1, 0, 2, 2, 5, 0, 7]
    for row in parents:
        env.step({"parent": row, "text": f"below {row}"})
    assert [node.parent_id + 1 for node in env.tree] == parents
    assert not any(info["parent_refused"] for info in env.infos.values())


def test_following_the_proposals_is_the_search_itself() -> None:
    chosen, searched = make(budget=25, agents=3), make(budget=25, agents=3, select="search")
    for env in (chosen, searched):
        env.reset(seed=8)
    for turn in range(25):
        agent = chosen.agent_selection
        assert agent == searched.agent_selection
        row = chosen.infos[agent]["expand_id"] + 1
        text = f"print({turn})"
        chosen.step(text if turn % 2 else {"parent": row, "text": text})
        searched.step(text)
    assert chosen.tree == searched.tree


def test_the_search_learns_from_what_agents_chose() -> None:
    """A solved branch that agents insisted on is where the search's own proposals go."""

    class Deep(StubJudge):
        def judge(self, task: CodeTask, completion: str) -> Verdict:
            passed = 3 if completion == "good" else 0
            return dataclasses.replace(
                super().judge(task, completion), score=passed / 3, public_passed=passed
            )

    env = make(judge=Deep, budget=60, agents=1)
    env.reset(seed=0)
    env.step({"parent": 0, "text": "bad"})
    for _ in range(20):
        env.step({"parent": 1, "text": "good"})
        env.step({"parent": 0, "text": "bad"})
    proposals = []
    for _ in range(15):
        proposals.append(env.infos["coder_0"]["expand_id"])
        env.step("good")
    assert sum(parent == ROOT for parent in proposals) < 5


def test_the_mask_allows_the_root_and_the_nodes_that_there_are() -> None:
    env = make(budget=4)
    env.reset(seed=0)
    for turn in range(4):
        mask = env.infos[env.agent_selection]["action_mask"]
        assert mask["text"] is None
        assert mask["parent"].dtype == np.int8
        assert mask["parent"].tolist() == [1] * (turn + 1) + [0] * (4 - turn)
        env.step({"parent": 0, "text": str(turn)})


def test_the_mask_leaves_out_what_may_not_be_refined() -> None:
    env = make(budget=30, expand_solved=False, judge=StubJudge(solve_rate=0.5))
    env.reset(seed=0)
    for turn in range(30):
        mask = env.infos[env.agent_selection]["action_mask"]["parent"]
        closed = [node.id + 1 for node in env.tree if node.solved_public]
        assert [row for row in range(turn + 1) if not mask[row]] == closed
        env.step({"parent": 0, "text": str(turn)})
    assert closed


def test_who_is_not_asked_may_choose_the_root_alone() -> None:
    env = make(budget=4)
    env.reset(seed=0)
    (other,) = set(env.agents) - {env.agent_selection}
    assert env.infos[other]["action_mask"]["parent"].tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("action", [{"parent": 7, "text": "x"}, "Parent: 6\nx", f"parent: {9**99}"])
def test_a_masked_parent_is_refused_and_the_proposal_expanded(action: Any) -> None:
    env = make(budget=9)
    env.reset(seed=0)
    env.step({"parent": 0, "text": "first"})
    agent = env.agent_selection
    proposal = env.infos[agent]["expand_id"]
    env.step(action)
    assert env.infos[agent]["parent_refused"] is True
    assert env.tree[1].parent_id == proposal


def test_a_solved_parent_is_refused_where_it_may_not_be_refined() -> None:
    env = make(budget=9, expand_solved=False, judge=StubJudge(solve_rate=1.0))
    env.reset(seed=0)
    env.step("first")
    agent = env.agent_selection
    env.step("Parent: 0\nagain")
    assert env.infos[agent]["parent_refused"] is True
    assert env.tree[1].parent_id == ROOT


def test_nodes_of_the_same_round_are_no_choice_yet() -> None:
    env = ParallelTreeSearchEnv(**STUBS, agents=2)
    env.reset(seed=0)
    infos = env.step({"coder_0": "first", "coder_1": "Parent: 0\nsecond"})[4]
    assert infos["coder_1"]["parent_refused"] is True
    assert env.tree[1].parent_id == ROOT


@pytest.mark.parametrize(
    ("text", "parent", "reply"),
    [
        ("Parent: 1\nprint(2)", 1, "print(2)"),
        ("parent:0\n\nprint(2)", 0, "\nprint(2)"),
        ("\n PARENT : root\r\nprint(2)", ROOT, "print(2)"),
        ("Parent: 1", 1, ""),
        ("Parent: 1 and more\nprint(2)", None, "Parent: 1 and more\nprint(2)"),
        ("# Parent: 1\nprint(2)", None, "# Parent: 1\nprint(2)"),
        ("Parent: two\nprint(2)", None, "Parent: two\nprint(2)"),
        ("print(2)\nParent: 1", None, "print(2)\nParent: 1"),
    ],
)
def test_a_text_names_its_parent_in_its_first_line(
    text: str, parent: int | None, reply: str
) -> None:
    env = make(budget=9)
    env.reset(seed=0)
    env.step("Parent: root\na")
    env.step("Parent: root\nb")
    agent = env.agent_selection
    proposal = env.infos[agent]["expand_id"]
    env.step(text)
    assert env.tree[2].parent_id == (proposal if parent is None else parent)
    assert env.tree[2].reply == reply
    assert env.infos[agent]["parent_refused"] is False


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ({"parent": 0}, TypeError, r"got keys \['parent'\]"),
        (3, TypeError, "got int"),
        ({"parent": "0", "text": "a"}, TypeError, r'action\["parent"\] is a whole number, got str'),
        ({"parent": 0, "text": None}, TypeError, r'action\["text"\] is a text'),
        ({"parent": 9, "text": "a"}, ValueError, "at most 8; got 9"),
        ({"parent": -1, "text": "a"}, ValueError, "at most 8; got -1"),
    ],
)
def test_what_is_no_action_at_all_is_refused(
    action: Any, error: type[Exception], message: str
) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(action)
    assert len(env.tree) == 0


def test_numpy_rows_are_rows() -> None:
    env = make()
    env.reset(seed=0)
    env.step({"parent": np.int64(0), "text": "a"})
    assert len(env.tree) == 1


# What one has to know to choose ---------------------------------------------------------------


def test_a_scripted_agent_can_choose_by_numbers() -> None:
    env = make(budget=30, agents=1, judge=StubJudge(solve_rate=0.0))
    env.reset(seed=0)
    for turn in range(30):
        observation = env.observe("coder_0")
        assert (observation["tree"] == env.state()).all()
        env.step({"parent": best_first(observation), "text": str(turn)})
    best = env.tree.best
    assert best is not None
    assert best.score == pytest.approx(2 / 3)
    assert env.tree.max_depth > 3


def prompt_after(*replies: str, **options: Any) -> str:
    env = make(budget=100, **options)
    env.reset(seed=0)
    for reply in replies:
        env.step(reply)
    text: str = env.observe(env.agent_selection)["prompt"]
    return text


def test_a_prompt_lists_the_answers_and_says_how_to_choose() -> None:
    text = prompt_after("Parent: root\nalpha", "Parent: 0\nbeta", "Parent: 0\ngamma")
    assert text.startswith("Print ")
    assert [line.split()[:2] for line in text.splitlines() if "of 3 tests" in line] == [
        ["0", "root"],
        ["1", "0"],
        ["2", "0"],
    ]
    for number, reply in enumerate(("alpha", "beta", "gamma")):
        assert f"Answer {number}:\n\n{reply}\n" in text
    assert "Begin your reply with a line `Parent: N`" in text


def test_the_first_prompt_is_that_of_a_fresh_answer() -> None:
    assert prompt_after() == prompt_after(select="search")


def test_a_long_list_is_cut_to_the_best_and_latest() -> None:
    text = prompt_after(*(f"Parent: root\nreply {n}" for n in range(60)))
    lines = re.findall(r"^(\d+)  root  coder_\d  (\d) of 3", text, re.MULTILINE)
    shown = re.findall(r"^Answer (\d+):$", text, re.MULTILINE)
    assert len(lines) == 40
    assert len(shown) == 4
    assert "(20 more are not listed.)" in text
    scores = dict(lines)
    assert min(int(scores[number]) for number in shown) == max(map(int, scores.values()))


def test_only_what_may_be_refined_is_listed() -> None:
    text = prompt_after("one", "two", expand_solved=False, judge=StubJudge(solve_rate=1.0))
    assert "Earlier answers" not in text


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        ("none", ["coder_"], ["of 3", "right", "wrong", "passes", "first public test"]),
        ("verdict", ["wrong"], ["of 3", "Actual"]),
        ("summary", ["of 3 tests, wrong_answer"], ["Actual"]),
        ("full", ["of 3 tests, wrong_answer", "Actual output:\nnothing"], []),
    ],
)
def test_the_list_tells_no_more_than_the_feedback_level_allows(
    level: str, shown: list[str], hidden: list[str]
) -> None:
    judge = StubJudge(solve_rate=0.0)
    text = prompt_after("one", "two", feedback_level=level, judge=judge)
    assert [part for part in shown if part not in text] == []
    assert [part for part in hidden if part in text] == []


def test_without_feedback_the_shown_answers_are_the_latest() -> None:
    replies = [f"Parent: root\nreply {n}" for n in range(10)]
    text = prompt_after(*replies, feedback_level="none")
    assert re.findall(r"^Answer (\d+):$", text, re.MULTILINE) == ["6", "7", "8", "9"]


def test_a_role_stays_last() -> None:
    text = prompt_after("one", roles={"coder_0": "Be brief.", "coder_1": "Be brief."})
    assert text.endswith("Be brief.\n")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="select must be 'search' or 'agent', got 'user'"):
        make(select="user")

"""The search as a control problem: what the learner sees, may do and is paid."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from mars_envs import ProtocolError, SearchTree
from mars_envs.errors import PoolExhausted
from mars_envs.judging.base import Feedback, Verdict
from mars_envs.testing import check_info
from mars_envs.tree_search import TreeControlEnv
from mars_envs.tree_search.selection import Choice
from mars_envs.tree_search.simulated import RecordedTasks

GYM_ID = "mars_envs/TreeControl-v0"
OUTCOMES = [
    (0.25, False),
    (0.75, False),
    (0.5, False),
    (1.0, False),
    (0.25, False),
    (1.0, True),
    (0.0, False),
    (1.0, True),
]


@dataclass
class Script:
    """A task source that gives these (score, solved) pairs in turn, whoever is asked."""

    outcomes: Sequence[tuple[float, bool]]
    agents: tuple[str, ...] = ("a", "b")
    asked: list[tuple[int, str]] = field(default_factory=list)

    def draw(self, rng: np.random.Generator) -> Script:
        return self

    def answer(
        self, tree: SearchTree, parent_id: int, agent: str, rng: np.random.Generator
    ) -> Verdict:
        self.asked.append((parent_id, agent))
        score, solved = self.outcomes[len(tree)]
        return verdict(score, solved)


def verdict(score: float, solved: bool) -> Verdict:
    passed = round(score * 4)
    status = "accepted" if passed == 4 else "wrong_answer"
    return Verdict(
        score=score,
        solved=solved,
        status=status,
        public_passed=passed,
        public_total=4,
        feedback=Feedback(passed=passed, total=4, status=status),
    )


def play(env: TreeControlEnv, seed: int) -> list[tuple[Any, float, bool, dict[str, Any]]]:
    """Play uniformly among the possible actions."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    steps, over = [], False
    while not over:
        action = int(rng.choice(np.flatnonzero(env.action_masks())))
        observation, reward, over, truncated, info = env.step(action)
        assert truncated is False
        steps.append((observation, reward, over, info))
    return steps


@pytest.mark.parametrize("mode", [None, "ansi", "human", "rgb_array"])
def test_gymnasium_s_checker_passes_and_no_warning_is_left(mode: str | None) -> None:
    check_env(gym.make(GYM_ID, render_mode=mode, budget=3).unwrapped)


@pytest.mark.parametrize("expand_solved", [True, False])
def test_the_mask_allows_the_root_and_every_node_that_may_be_refined(expand_solved: bool) -> None:
    env = TreeControlEnv(coders=Script(OUTCOMES), budget=8, expand_solved=expand_solved)
    rng = np.random.default_rng(5)
    _, info = env.reset(seed=0)
    for _ in range(8):
        allowed = {(-1, "a"), (-1, "b")}
        for node in env.tree:
            if expand_solved or node.score < 1.0:
                allowed |= {(node.id, "a"), (node.id, "b")}
        mask = env.action_masks()
        assert mask.shape == (16,)
        assert mask.dtype == np.bool_
        assert {tuple(env.choice(action)) for action in np.flatnonzero(mask)} == allowed
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].tolist() == mask.astype(int).tolist()
        *_, info = env.step(int(rng.choice(np.flatnonzero(mask))))
    assert np.flatnonzero(env.action_masks()).tolist() == [0]


def test_an_action_is_a_row_and_an_agent() -> None:
    script = Script(OUTCOMES)
    env = TreeControlEnv(coders=script, budget=4)
    env.reset(seed=0)
    for action in (1, 0 * 2 + 0, 2 * 2 + 1, 1 * 2 + 0):
        assert env.action(env.choice(action)) == action
        env.step(action)
    assert script.asked == [(-1, "b"), (-1, "a"), (1, "b"), (0, "a")]
    assert [(node.parent_id, node.agent) for node in env.tree] == script.asked


def test_the_answer_pays_at_the_end_if_it_is_solved() -> None:
    for outcomes, paid in (
        (OUTCOMES, 1.0),  # the latest of the best, node 7, is solved
        ([*OUTCOMES[:7], (1.0, False)], 0.0),  # a later answer is as good in public, and wrong
        ([(0.5, False)] * 8, 0.0),
    ):
        steps = play(TreeControlEnv(coders=Script(outcomes), reward="answer"), seed=1)
        assert [reward for _, reward, _, _ in steps] == [0.0] * 7 + [paid]


def test_coverage_pays_the_first_solved_node() -> None:
    steps = play(TreeControlEnv(coders=Script(OUTCOMES), reward="coverage"), seed=1)
    assert [reward for _, reward, _, _ in steps] == [0.0] * 5 + [1.0, 0.0, 0.0]
    assert [info["covered"] for *_, info in steps] == [False] * 5 + [True] * 3


def test_new_best_pays_what_the_best_public_score_gains() -> None:
    steps = play(TreeControlEnv(coders=Script(OUTCOMES), reward="new_best"), seed=1)
    assert [reward for _, reward, _, _ in steps] == [0.25, 0.5, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0]


def test_hidden_success_is_not_observed() -> None:
    seen = []
    for solved in (False, True):
        outcomes = [(1.0, solved), (0.5, False), (1.0, solved)]
        steps = play(TreeControlEnv(coders=Script(outcomes), budget=3), seed=0)
        seen.append([(step[0].tolist(), step[3]["action_mask"].tolist()) for step in steps])
        assert steps[-1][3]["best_solved"] is solved
    assert seen[0] == seen[1]


def test_a_forbidden_action_spends_an_expansion_and_makes_no_node() -> None:
    env = TreeControlEnv(coders=Script(OUTCOMES), budget=3)
    env.reset(seed=0)
    observation, reward, over, _, info = env.step(5)
    assert (reward, over, info["invalid"], info["node_id"]) == (0.0, False, True, -2)
    assert (len(env.tree), info["nodes_left"]) == (0, 2)
    assert env.layout.totals(observation)[0] == pytest.approx(2 / 3)
    _, _, _, _, info = env.step(0)
    assert (info["invalid"], info["node_id"]) == (False, 0)
    _, _, over, _, info = env.step(5)
    assert (over, info["invalid"]) == (True, True)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (4, "there is no node 1; the tree has 1 nodes"),
        (2, "node 0 passes every public test, and expand_solved is False"),
    ],
)
def test_a_forbidden_action_can_be_an_error_that_changes_nothing(action: int, reason: str) -> None:
    env = TreeControlEnv(
        coders=Script([(1.0, True)] * 3), budget=3, expand_solved=False, invalid_action="error"
    )
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ValueError, match=reason):
        env.step(action)
    assert (len(env.tree), env.nodes_left) == (1, 2)


@pytest.mark.parametrize("action", [-1, 16, 0.0, "0", None, [0, 1]])
def test_what_is_no_action_is_an_error(action: Any) -> None:
    env = TreeControlEnv(budget=8)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"expected an action in 0\.\.15"):
        env.step(action)


def test_numpy_s_integers_are_actions() -> None:
    env = TreeControlEnv(budget=3)
    env.reset(seed=0)
    for action in (np.int64(0), np.array(1), np.array([0])):
        env.step(action)
    assert [node.agent for node in env.tree] == ["drafter", "mender", "drafter"]


def test_steps_out_of_order_are_errors() -> None:
    env = TreeControlEnv(budget=1)
    with pytest.raises(ProtocolError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ProtocolError, match="reset"):
        env.step(0)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"reward": "score"}, "reward must be one of 'answer', 'coverage', 'new_best'"),
        ({"invalid_action": "skip"}, "invalid_action must be one of 'waste', 'error'"),
        ({"render_mode": "html"}, "render_mode must be one of"),
        ({"budget": 0}, "budget is a number of expansions"),
        ({"coders": "nobody"}, "unknown coders 'nobody'; expected one of specialists"),
    ],
)
def test_options_that_cannot_be_are_errors(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeControlEnv(**option)


def test_the_same_seed_and_actions_give_the_same_episode() -> None:
    first, second = (play(TreeControlEnv(), seed=4) for _ in range(2))
    for (seen, *paid, info), (seen_again, *paid_again, info_again) in zip(
        first, second, strict=True
    ):
        assert seen.tolist() == seen_again.tolist()
        assert paid == paid_again
        assert info.pop("action_mask").tolist() == info_again.pop("action_mask").tolist()
        assert info == info_again


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_episode_continues_alike(twin_of: Any) -> None:
    env = TreeControlEnv(coders="repair")
    env.reset(seed=2)
    for action in (0, 3):
        env.step(action)
    twin = twin_of(env)
    for action in (2, 5, 1, 9, 4, 0):
        ours, theirs = env.step(action), twin.step(action)
        assert ours[0].tolist() == theirs[0].tolist()
        assert ours[1:4] == theirs[1:4]
    assert env.tree == twin.tree
    assert env.reset()[0].tolist() == twin.reset()[0].tolist()


def test_what_an_expansion_yields_does_not_depend_on_what_else_was_expanded() -> None:
    """Common random numbers: policies that are compared meet the same luck."""
    scores = []
    for before in ([], [1, 1, 1]):
        env = TreeControlEnv(coders="specialists", budget=12)
        for seed in range(40):
            env.reset(seed=seed)
            for action in before:
                env.step(action)
            env.step(0)
            first = len(env.tree) - 1
            env.step(env.action(Choice(first, "mender")))
            env.step(0)
            env.step(env.action(Choice(first, "mender")))
            scores.append([node.score for node in list(env.tree)[first:]])
    assert scores[:40] == scores[40:]
    # Repeated expansions are new draws, not the same one again.
    assert any(row[0] != row[2] for row in scores)
    assert any(row[1] != row[3] for row in scores)


def test_recorded_pools_run_dry_and_then_the_mask_says_so() -> None:
    pools = RecordedTasks([{"a": [(0.0, False), (0.5, False)], "b": [(1.0, True)]}])
    env = TreeControlEnv(coders=pools, budget=8)
    env.reset(seed=0)
    env.step(env.action(Choice(-1, "b")))
    agents = {env.choice(action).agent for action in np.flatnonzero(env.action_masks())}
    assert agents == {"a"}
    env.step(env.action(Choice(0, "a")))
    _, reward, over, truncated, info = env.step(env.action(Choice(-1, "a")))
    assert (reward, over, truncated, info["nodes_left"]) == (1.0, True, False, 5)


def test_a_recorded_task_can_be_asked_for() -> None:
    pools = RecordedTasks([{"a": [(0.0, False)]}, {"a": [(1.0, True)]}])
    env = TreeControlEnv(coders=pools, budget=1)
    for index, paid in ((0, 0.0), (1, 1.0)):
        env.reset(seed=0, options={"task": index})
        assert env.step(0)[1] == paid
    with pytest.raises(ValueError, match="no such task"):
        env.reset(options={"task": 7})
    with pytest.raises(ValueError, match="none to ask for"):
        TreeControlEnv().reset(options={"task": 0})


class Unannounced(Script):
    """Has one answer of each agent, and does not say so before."""

    def answer(
        self, tree: SearchTree, parent_id: int, agent: str, rng: np.random.Generator
    ) -> Verdict:
        if any(node.agent == agent for node in tree):
            raise PoolExhausted("that was all")
        return super().answer(tree, parent_id, agent, rng)


def test_an_agent_that_runs_dry_unannounced_costs_one_expansion_and_is_masked() -> None:
    env = TreeControlEnv(coders=Unannounced(OUTCOMES), budget=8)
    env.reset(seed=0)
    env.step(0)
    *_, info = env.step(0)
    assert (info["invalid"], info["nodes_left"]) == (True, 6)
    assert {env.choice(action).agent for action in np.flatnonzero(info["action_mask"])} == {"b"}


def test_the_spec_survives_pickle_and_json() -> None:
    spec = gym.make(GYM_ID, budget=3, reward="coverage").spec
    assert spec is not None
    assert not spec.nondeterministic
    assert pickle.loads(pickle.dumps(spec)).make().unwrapped.budget == 3
    assert json.loads(spec.to_json())["kwargs"] == {"budget": 3, "reward": "coverage"}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_runs_in_vector_environments_with_shared_memory(mode: str) -> None:
    envs = gym.make_vec(f"mars_envs:{GYM_ID}", num_envs=3, vectorization_mode=mode, budget=2)
    observations, infos = envs.reset(seed=0)
    assert infos["action_mask"].shape == (3, 4)
    for over in (False, True):
        actions = [int(np.flatnonzero(mask)[0]) for mask in infos["action_mask"]]
        observations, rewards, terminated, _, infos = envs.step(np.array(actions))
        assert observations.shape == (3, *envs.single_observation_space.shape)
        assert terminated.tolist() == [over] * 3
    assert rewards.shape == (3,)
    envs.close()


def test_the_tree_is_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    env = TreeControlEnv(coders=Script([(0.5, False)] * 2), budget=2, render_mode="ansi")
    env.reset(seed=0)
    env.step(1)
    text = env.render()
    assert text is not None
    assert text.splitlines()[0] == "1 of 2 expansions left"
    assert "0  b  0.50  wrong_answer" in text
    human = TreeControlEnv(coders=Script([(0.5, False)] * 2), budget=2, render_mode="human")
    human.reset(seed=0)
    human.step(1)
    assert "0  b  0.50  wrong_answer" in capsys.readouterr().out


def test_a_file_of_recorded_pools_is_a_team(tmp_path: Path) -> None:
    path = tmp_path / "pools.jsonl"
    path.write_text(
        '{"task_id": "t/0", "pools": {"a": [[0.5, false]], "b": []}}\n\n'
        '{"task_id": "t/1", "pools": {"a": [], "b": [[1.0, true]]}}\n'
    )
    env = TreeControlEnv(coders=str(path), budget=4)
    assert env.agents == ("a", "b")
    _, info = env.reset(seed=0, options={"task": 1})
    assert info["action_mask"].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "line",
    ['{"task_id": "t"}', "[]", "not json", '{"pools": {"a": [[0.5, 1]]}}', '{"pools": {"a": [0]}}'],
)
def test_a_broken_line_of_pools_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pools.jsonl"
    path.write_text('{"pools": {"a": []}}\n' + line + "\n")
    with pytest.raises(ValueError, match=r"pools\.jsonl:2: expected"):
        TreeControlEnv(coders=str(path))


def test_coders_can_be_named_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_team.py").write_text(
        "from mars_envs.tree_search.simulated import Coder, SimulatedTasks\n"
        "def team():\n"
        "    return SimulatedTasks({'solver': Coder(fresh=1.0, refine=1.0)})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = gym.make(GYM_ID, coders="my_team:team", budget=1)
    env.reset(seed=0)
    assert env.step(0)[1] == 1.0
    with pytest.raises(ValueError, match="no source of tasks: it lacks agents, draw"):
        TreeControlEnv(coders="mars_envs.tree_search.tree:SearchTree")


def test_the_contract_names_every_number_and_every_info(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text().split("## `TreeControl-v0`")[1]
    env = TreeControlEnv()
    _, info = env.reset(seed=0)
    fields = {key: type(value) for key, value in info.items() if key != "action_mask"}
    check_info(info, fields, env.action_space)
    names = {name.split(".")[0] for name in (*env.layout.row_fields, *env.layout.total_fields)}
    documented = {name.split(".")[0] for name in re.findall(r"`([\w.<>]+)`", text)}
    assert names | info.keys() <= documented


@pytest.mark.parametrize("index", [-1, 2, True, 1.5, "x"])
def test_a_recorded_task_that_there_is_not_is_refused(index: Any) -> None:
    env = TreeControlEnv(coders=RecordedTasks([{"a": [(1.0, True)]}, {"a": [(0.0, False)]}]))
    with pytest.raises(ValueError, match="no such task"):
        env.reset(seed=0, options={"task": index})


def test_a_recorded_task_without_any_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="task 1 has no recorded answer by any agent"):
        RecordedTasks([{"a": [(1.0, True)]}, {"a": []}])

"""Who plays the control environment: the selectors of `TreeSearch`, chance, and MaskablePPO."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from mars_envs import ProtocolError, TreeControlEnv, TreeSearch, TreeSearchEnv
from mars_envs.tree_search import (
    FAMILIES,
    PRESETS,
    Layout,
    LearnedSelector,
    MaskInObservation,
    SelectorPolicy,
    UniformPolicy,
    play_control,
)
from mars_envs.tree_search.rows import ROW_FIELDS
from mars_envs.tree_search.selection import Choice
from mars_envs.tree_search.simulated import RecordedTasks


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("expand_solved", [True, False])
def test_a_selector_plays_exactly_as_tree_search_chooses(preset: str, expand_solved: bool) -> None:
    options: dict[str, Any] = {"coders": "repair", "budget": 12, "expand_solved": expand_solved}
    for seed in range(3):
        played, env = TreeControlEnv(**options), TreeControlEnv(**options)
        play_control(played, SelectorPolicy(preset), seed)
        env.reset(seed=seed)
        search = TreeSearch(env.agents, preset, 12, seed, expand_solved=expand_solved)
        while not search.done:
            [expansion] = search.ask()
            env.step(env.action(Choice(expansion.parent_id, expansion.agent)))
            search.tell(expansion.id, env.tree[len(env.tree) - 1].verdict)
        assert len(search.tree) == 12
        assert [(n.parent_id, n.agent, n.score) for n in played.tree] == [
            (n.parent_id, n.agent, n.score) for n in search.tree
        ]


def test_a_selector_chooses_no_agent_whose_pool_is_dry() -> None:
    pools = RecordedTasks([{"a": [(0.0, False)], "b": [(0.0, False)] * 4}])
    for seed in range(10):
        env = TreeControlEnv(coders=pools, budget=8, invalid_action="error")
        result = play_control(env, SelectorPolicy("default"), seed)
        assert (result.nodes, sorted(node.agent for node in env.tree)) == (5, [*"abbbb"])


def test_a_policy_needs_an_episode() -> None:
    with pytest.raises(ProtocolError, match="begin"):
        SelectorPolicy().act(np.zeros(1, np.float32), np.ones(1, np.bool_))


def test_chance_chooses_every_possible_action_alike() -> None:
    env = TreeControlEnv(coders="alike", budget=2)
    counts = np.zeros(4)
    for seed in range(800):
        play_control(env, UniformPolicy(), seed)
        counts[env.action(Choice(env.tree[1].parent_id, env.tree[1].agent))] += 1
    # Four standard errors of a share of 1/4 among 800.
    assert np.abs(counts / 800 - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / 800)


def refine_the_best(observation: Any, mask: Any) -> int:
    """Refine the best node with the second agent, or answer afresh with the first."""
    rows = Layout(("x", "y"), 6).rows(observation)
    best = np.flatnonzero(rows[:, ROW_FIELDS.index("best")])
    action = int(best[0]) * 2 + 1 if best.size else 0
    return action if mask[action] else 0


class Greedy:
    def begin(self, env: TreeControlEnv, seed: int) -> None:
        """Remember nothing."""

    def act(self, observation: Any, mask: Any) -> int:
        return refine_the_best(observation, mask)


@pytest.mark.parametrize("expand_solved", [True, False])
def test_a_learned_policy_selects_in_a_search_as_it_did_in_training(expand_solved: bool) -> None:
    agents = ("drafter", "mender")
    selector = LearnedSelector(predict=refine_the_best, agents=agents, budget=6)
    for seed in range(10):
        env = TreeControlEnv(budget=6, expand_solved=expand_solved)
        play_control(env, Greedy(), seed)
        search = TreeSearch(agents, selector, 6, seed, expand_solved=expand_solved)
        for node in env.tree:
            [expansion] = search.ask()
            assert (expansion.parent_id, expansion.agent) == (node.parent_id, node.agent)
            search.tell(expansion.id, node.verdict)


def test_a_learned_policy_leads_the_coders_of_the_text_environment() -> None:
    selector = LearnedSelector(predict=refine_the_best, agents=("coder_0", "coder_1"), budget=6)
    env = TreeSearchEnv(
        tasks="mars_envs.testing:stub_tasks",
        judge="mars_envs.testing:StubJudge",
        budget=5,
        selector=selector,
    )
    env.reset(seed=1)
    for turn, _ in enumerate(env.agent_iter()):
        over = any(env.last()[2:4])
        env.step(None if over else f"print({turn})")
    best = [max(range(n), key=lambda i: (env.tree[i].score, i)) for n in range(1, 5)]
    assert [node.parent_id for node in env.tree] == [-1, *best]
    assert [node.agent for node in env.tree] == ["coder_0"] + ["coder_1"] * 4


def test_a_search_by_a_learned_policy_is_resumed() -> None:
    def selector() -> LearnedSelector:
        return LearnedSelector(
            predict=lambda observation, mask: int(np.flatnonzero(mask)[-1]),
            agents=("a", "b"),
            budget=4,
        )

    search = TreeSearch(("a", "b"), selector(), 4)
    search.tell(search.ask()[0].id, 0.5)
    resumed = TreeSearch.load(search.save(), selector())
    assert resumed.ask() == search.ask() == [(1, 0, "b")]


def test_a_learned_policy_is_held_to_its_agents_its_budget_and_its_mask() -> None:
    def search(budget: int, agents: tuple[str, ...], action: int) -> TreeSearch:
        selector = LearnedSelector(predict=lambda *_: action, agents=("a", "b"), budget=2)
        return TreeSearch(agents, selector, budget)

    with pytest.raises(ValueError, match="knows the agents"):
        search(2, ("a", "c"), 0).ask()
    with pytest.raises(ValueError, match="expand 0 with b, which its mask forbids"):
        search(2, ("a", "b"), 3).ask()
    larger = search(4, ("a", "b"), 0)
    for _ in range(2):
        larger.tell(larger.ask()[0].id, 0.5)
    with pytest.raises(ValueError, match="trained for trees of 2 nodes"):
        larger.ask()


def test_the_mask_can_stand_in_the_observation() -> None:
    env = MaskInObservation(gym.make("mars_envs/TreeControl-v0", budget=3), observation="obs")
    observation, info = env.reset(seed=0)
    assert observation["action_mask"].tolist() == info["action_mask"].tolist() == [1, 1, 0, 0, 0, 0]
    observation, _, _, _, info = env.step(0)
    assert observation["action_mask"].tolist() == info["action_mask"].tolist() == [1, 1, 1, 1, 0, 0]
    assert observation in env.observation_space
    twin = pickle.loads(pickle.dumps(env.spec)).make()
    assert twin.reset(seed=0)[0].keys() == {"obs", "action_mask"}
    with pytest.raises(ValueError, match="needs discrete actions and a method action_masks"):
        MaskInObservation(gym.make("CartPole-v1"))


@pytest.mark.slow
def test_where_nothing_matters_every_policy_covers_what_the_formula_says() -> None:
    """In "alike" each of 8 nodes solves with 0.15 times an ease from Beta(2, 1), density 2e."""
    middles = (np.arange(100_000) + 0.5) / 100_000
    expected = float((2 * middles * (1 - (1 - 0.15 * middles) ** 8)).mean())
    assert expected == pytest.approx(0.54993, abs=1e-5)
    env = TreeControlEnv(coders="alike")
    for policy in (UniformPolicy(), SelectorPolicy("default")):
        covered = [play_control(env, policy, seed).covered for seed in range(400)]
        # Four standard errors of a share.
        assert np.mean(covered) == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 400))


class Plan:
    """Takes these actions in turn."""

    def __init__(self, *actions: int) -> None:
        self.actions = actions

    def begin(self, env: TreeControlEnv, seed: int) -> None:
        self.waiting = list(self.actions)

    def act(self, observation: Any, mask: Any) -> int:
        return self.waiting.pop(0)


def test_a_result_says_how_the_episode_ended() -> None:
    task = {"a": [(1.0, True)] * 3, "b": [(0.5, False), (1.0, False), (0.25, False)]}
    env = TreeControlEnv(coders=RecordedTasks([task]), budget=3, reward="coverage")
    # a answers, b refines that, b answers: b's outcomes come in the order that the seed shuffles.
    result = play_control(env, Plan(0, 3, 1), seed=0)
    scores = [node.score for node in env.tree]
    assert (result.seed, result.covered, result.first_solved) == (0, True, 1)
    assert (result.nodes, result.refinements, result.reward) == (3, 1, 1.0)
    assert (result.best_score, result.answer_solved) == (1.0, scores[1:].count(1.0) == 0)
    assert play_control(env, Plan(1, 3, 1), seed=0).first_solved == 0


def test_the_mixed_family_gives_every_name_to_every_coder() -> None:
    family = FAMILIES["mixed"]
    tasks = [family.draw(np.random.default_rng(seed)) for seed in range(100)]
    skills = [{name: task.coders[name] for name in family.agents} for task in tasks]
    # Only the mender of "specialists" is ever as close to solving as 0.1 or more.
    menders = [n for skill in skills for n in skill if skill[n].closeness > 0.1]
    assert set(menders) == {"coder_0", "coder_1"}
    # "no_repair" is drawn as well.
    assert any(all(coder.refine == 0.0 for coder in skill.values()) for skill in skills)


def test_every_family_can_be_played() -> None:
    for name in FAMILIES:
        assert play_control(TreeControlEnv(coders=name), UniformPolicy(), 0).nodes == 8


def test_maskable_ppo_learns_here_and_obeys_the_mask() -> None:
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(
        "mars_envs/TreeControl-v0",
        n_envs=4,
        seed=0,
        env_kwargs={"coders": "no_repair", "budget": 4, "invalid_action": "error"},
    )
    model = MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=64, seed=0, device="cpu")
    before = [parameter.clone() for parameter in model.policy.parameters()]
    model.learn(256)  # a forbidden action would raise
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    env = TreeControlEnv(coders="no_repair", budget=4, invalid_action="error")
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        action, _ = model.predict(observation, action_masks=env.action_masks())
        observation, _, over, _, _ = env.step(action)
    assert len(env.tree) == 4

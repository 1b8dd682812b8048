"""TreeSearchEnv: the shell around the search, with a stub judge."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, render_test, seed_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec

from mars_envs import JudgeUnavailable, ParallelTreeSearchEnv, ProtocolError, TreeSearchEnv
from mars_envs.judging import Verdict
from mars_envs.spaces import TEXT_LIMIT
from mars_envs.tasks import CodeTask
from mars_envs.testing import ODD_TEXTS, StubJudge, check_tree_search, stub_tasks
from mars_envs.tree_search import NOTHING, ROOT, SearchTree, TreeSearch, tree_from_infos
from mars_envs.tree_search.env import env, raw_env

STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
}


def make(**options: Any) -> TreeSearchEnv:
    return TreeSearchEnv(**{**STUBS, **options})


def text(turn: int) -> str:
    return f"print({turn})"


def play(environment: TreeSearchEnv, seed: int | None = 0) -> list[tuple[str, dict[str, Any]]]:
    """Play one episode; return each actor with its info after the action."""
    environment.reset(seed=seed)
    turns = []
    while environment.agents:
        agent = environment.agent_selection
        if environment.terminations[agent] or environment.truncations[agent]:
            environment.step(None)
            continue
        environment.step(text(len(turns)))
        turns.append((agent, environment.infos[agent]))
    return turns


class Broken(RuntimeError):
    pass


class Scripted:
    """Gives the verdicts that it is told to give, or raises."""

    def __init__(self, *outcomes: tuple[float, bool] | Exception) -> None:
        self.outcomes = list(outcomes)

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        verdict = StubJudge().judge(task, completion)
        score, solved = outcome
        passed = round(score * verdict.public_total)
        return dataclasses.replace(verdict, score=score, solved=solved, public_passed=passed)

    def close(self) -> None:
        pass


# Standard checks ------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "best_of_n"])
def test_pettingzoo_s_api_test_passes(selector: str) -> None:
    api_test(env(**STUBS, selector=selector), num_cycles=20)


def test_pettingzoo_s_seed_test_passes() -> None:
    seed_test(lambda: env(**STUBS))


def test_pettingzoo_s_state_test_passes() -> None:
    state_test(env(**STUBS, agents=3), ParallelTreeSearchEnv(**STUBS))
    state_test(parallel_to_aec(ParallelTreeSearchEnv(**STUBS)), ParallelTreeSearchEnv(**STUBS))


def test_pettingzoo_s_render_test_passes(capsys: pytest.CaptureFixture[str]) -> None:
    render_test(lambda render_mode=None: env(**STUBS, render_mode=render_mode))
    assert "task" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selector": "paper", "agents": 3, "agent_mix": 0.3},
        {"selector": "marti_code", "expand_solved": False},
        {"selector": "best_of_n", "agents": ["coder_7"]},
        {"stop_on_solved": True},
        {"max_cycles": 3},
        {"budget": 1},
    ],
)
def test_whole_episodes_keep_the_contract_and_repeat_exactly(options: dict[str, Any]) -> None:
    check_tree_search(lambda: make(**options))


def test_factories_take_the_options_of_the_class() -> None:
    assert raw_env(**STUBS, budget=3).budget == 3
    assert env(**STUBS, max_cycles=2).unwrapped.max_cycles == 2


# Who acts, and what it sees -------------------------------------------------------------------


def test_the_environment_asks_in_the_order_of_the_search() -> None:
    environment = make(budget=12, selector="paper", agents=3)
    turns = play(environment, seed=4)
    search = environment.search
    twin = TreeSearch(search.agents, "paper", 12, _search_seed(environment, 4))
    judge = StubJudge()
    for turn, (agent, info) in enumerate(turns):
        (expansion,) = twin.ask()
        assert (expansion.agent, expansion.parent_id) == (agent, info["node_parent_id"])
        twin.tell(expansion.id, judge.judge(environment.task, text(turn)), text(turn))
    assert twin.tree == environment.tree


def _search_seed(environment: TreeSearchEnv, seed: int) -> int:
    rng = np.random.default_rng(seed)
    rng.integers(len(environment.tasks))
    return int(rng.integers(2**31))


def test_only_the_selected_agent_sees_a_prompt() -> None:
    environment = make(agents=3)
    environment.reset(seed=0)
    prompts = {agent: environment.observe(agent)["prompt"] for agent in environment.agents}
    selected = environment.agent_selection
    assert prompts[selected].startswith(environment.task.statement)
    assert all(not prompt for agent, prompt in prompts.items() if agent != selected)
    assert [a for a in environment.agents if environment.infos[a]["active"]] == [selected]


def test_every_agent_stays_to_the_end_and_sees_it() -> None:
    environment = make(agents=3)
    environment.reset(seed=0)
    for turn in range(8):
        assert environment.agents == environment.possible_agents
        environment.step(text(turn))
    assert environment.terminations == dict.fromkeys(environment.possible_agents, True)
    assert not any(info["active"] for info in environment.infos.values())
    assert all(environment.observe(agent)["prompt"] == "" for agent in environment.agents)


def test_a_refinement_shows_the_parent_s_reply_after_the_statement() -> None:
    environment = make(budget=20)
    environment.reset(seed=1)
    seen = 0
    for turn in range(20):
        agent = environment.agent_selection
        info, prompt = environment.infos[agent], environment.observe(agent)["prompt"]
        if info["expand_id"] != ROOT:
            seen += 1
            parent = environment.tree[info["expand_id"]]
            assert prompt.index(environment.task.statement) == 0
            assert 0 < prompt.index(parent.reply) < prompt.index("public tests")
            assert info["expand_depth"] == parent.depth
        environment.step(text(turn))
    assert seen > 3


def test_features_say_where_the_search_stands() -> None:
    environment = make(budget=4, agents=1, judge=lambda: Scripted(*[(2 / 3, False)] * 4))
    environment.reset(seed=0)
    expected = [[0, 0, 0, 1, 0]]
    environment.step("a")
    for turn in range(1, 4):
        parent = environment.infos["coder_0"]["expand_id"]
        tree = environment.tree
        if parent == ROOT:
            expected = [0, 0, turn / 4]
        else:
            expected = [tree[parent].depth / 4, 2 / 3, tree.descendants(parent) / 4]
        features = environment.observe("coder_0")["features"]
        assert features == pytest.approx([*expected, 1 - turn / 4, turn / 4])
        environment.step("a")


def test_a_task_can_be_chosen() -> None:
    environment = make()
    environment.reset(seed=0, options={"task": "stub/2"})
    assert environment.infos["coder_0"]["task_id"] == "stub/2"


def test_choosing_a_task_does_not_shift_later_episodes() -> None:
    free, chosen = make(), make()
    free.reset(seed=0)
    chosen.reset(seed=0, options={"task": free.task.task_id})
    assert play(free, seed=None) == play(chosen, seed=None)


def test_an_unknown_task_is_a_clear_error_and_leaves_the_episode_alone() -> None:
    environment = make()
    environment.reset(seed=0)
    environment.step("a")
    with pytest.raises(ValueError, match=r"no task 'x' among 3 tasks .the first are 'stub/0'"):
        environment.reset(options={"task": "x"})
    assert len(environment.tree) == 1


def test_tasks_differ_between_episodes_and_repeat_with_the_seed() -> None:
    environment = make()
    ids = []
    for episode in range(12):
        environment.reset(seed=0 if episode == 0 else None)
        ids.append(environment.task.task_id)
    assert len(set(ids)) == 3
    environment.reset(seed=0)
    assert environment.task.task_id == ids[0]


def test_the_state_is_the_tree_in_numbers() -> None:
    environment = make(budget=12, agents=3)
    play(environment, seed=3)
    state, tree = environment.state(), environment.tree
    assert state.shape == (13, 6)
    assert state[0].tolist() == [0, 0, 0, 0, 12, 1]
    for node in tree:
        assert state[node.id + 1] == pytest.approx(
            [
                node.parent_id + 1,
                environment.possible_agents.index(node.agent) + 1,
                node.depth,
                node.score,
                tree.descendants(node.id) + 1,
                1,
            ]
        )


def test_rows_of_nodes_to_come_are_empty_and_states_are_copies() -> None:
    environment = make(budget=4)
    environment.reset(seed=0)
    first = environment.state()
    environment.step("a")
    assert environment.state()[2:].any() == np.False_
    assert first[1:].any() == np.False_
    assert environment.state_space.contains(first)


def test_the_state_does_not_know_hidden_tests() -> None:
    one = make(judge=lambda: Scripted((1.0, False)), budget=2)
    other = make(judge=lambda: Scripted((1.0, True)), budget=2)
    for environment in (one, other):
        environment.reset(seed=0)
        environment.step("a")
    assert (one.state() == other.state()).all()


# Rewards and endings --------------------------------------------------------------------------


def test_the_actor_is_paid_for_a_solved_node_on_its_own_step() -> None:
    environment = make(agents=3, budget=30)
    environment.reset(seed=0)
    owed = dict.fromkeys(environment.possible_agents, 0.0)
    judge = StubJudge()
    for turn in range(30):
        agent = environment.agent_selection
        assert environment.last()[1] == owed[agent]
        environment.step(text(turn))
        reward = float(judge.judge(environment.task, text(turn)).solved)
        assert environment.rewards == {
            other: reward if other == agent else 0.0 for other in environment.possible_agents
        }
        owed[agent] = reward
    assert 0 < sum(node.solved for node in environment.tree) < 30


def test_hidden_tests_decide_the_reward_and_public_ones_the_search() -> None:
    environment = make(judge=lambda: Scripted((1.0, False), (0.0, True)), budget=2, agents=1)
    turns = play(environment)
    assert [info["solved"] for _, info in turns] == [False, True]
    assert turns[-1][1]["best_node_id"] == 0
    assert turns[-1][1]["best_score"] == 1.0
    assert turns[-1][1]["best_solved"] is False


def test_hidden_tests_change_neither_prompts_nor_choices() -> None:
    class Hidden(StubJudge):
        def judge(self, task: CodeTask, completion: str) -> Verdict:
            return dataclasses.replace(super().judge(task, completion), solved=self.flip)

    class Yes(Hidden):
        flip = True

    class No(Hidden):
        flip = False

    options = {"expand_solved": False, "stop_on_solved": False, "budget": 16}
    seen = []
    for judge in (Yes, No):
        environment = make(judge=judge, **options)
        environment.reset(seed=2)
        prompts = []
        for turn in range(16):
            agent = environment.agent_selection
            prompts.append((agent, environment.observe(agent)["prompt"]))
            environment.step(text(turn))
        seen.append(prompts)
    assert seen[0] == seen[1]


def test_a_spent_budget_terminates() -> None:
    environment = make(budget=2)
    environment.reset(seed=0)
    environment.step("a")
    environment.step("b")
    assert all(environment.terminations.values())
    assert not any(environment.truncations.values())


def test_a_limit_from_outside_truncates() -> None:
    environment = make(budget=9, max_cycles=2)
    environment.reset(seed=0)
    environment.step("a")
    assert not any(environment.truncations.values())
    environment.step("b")
    assert all(environment.truncations.values())
    assert not any(environment.terminations.values())


def test_a_budget_spent_at_the_limit_is_a_termination() -> None:
    environment = make(budget=2, max_cycles=2)
    environment.reset(seed=0)
    environment.step("a")
    environment.step("b")
    assert all(environment.terminations.values())
    assert not any(environment.truncations.values())


@pytest.mark.parametrize(("stop", "nodes"), [(True, 2), (False, 4)])
def test_an_episode_may_stop_once_every_public_test_passes(stop: bool, nodes: int) -> None:
    judge = Scripted((0.0, False), (1.0, False), (0.0, False), (0.0, False))
    environment = make(judge=judge, budget=4, stop_on_solved=stop)
    play(environment)
    assert len(environment.tree) == nodes


def test_a_second_episode_starts_clean() -> None:
    environment = make(agents=2)
    play(environment)
    environment.reset(seed=1)
    assert len(environment.tree) == 0
    assert environment.infos[environment.agents[0]]["node_id"] == NOTHING
    assert environment._cumulative_rewards == {"coder_0": 0.0, "coder_1": 0.0}


# Infos ----------------------------------------------------------------------------------------


def test_infos_describe_the_node_that_the_agent_just_made() -> None:
    environment = make(budget=16, agents=2)
    turns = play(environment, seed=3)
    assert [info["node_id"] for _, info in turns] == list(range(16))
    for agent, info in turns:
        node = environment.tree[info["node_id"]]
        assert node.agent == agent
        parent_id = info["node_parent_id"]
        assert (parent_id, info["depth"]) == (node.parent_id, node.depth)
        assert (info["score"], info["solved"]) == (node.score, node.solved)
        assert info["refine"] is (parent_id != ROOT)
        assert info["parent_solved"] is (parent_id != ROOT and environment.tree[parent_id].solved)
        assert info["nodes_left"] == 15 - node.id


def test_an_agent_without_a_node_has_the_sentinels() -> None:
    environment = make()
    environment.reset(seed=0)
    info = environment.infos["coder_0"]
    assert (info["node_id"], info["node_parent_id"], info["best_node_id"]) == (NOTHING,) * 3
    assert (info["depth"], info["status"]) == (NOTHING, "")


def test_the_inactive_are_asked_for_nothing() -> None:
    environment = make()
    environment.reset(seed=0)
    (other,) = set(environment.agents) - {environment.agent_selection}
    assert environment.infos[other]["expand_id"] == NOTHING
    assert environment.infos[environment.agent_selection]["expand_id"] == ROOT


def test_a_tree_can_be_rebuilt_from_what_a_trainer_keeps() -> None:
    environment = make(budget=12)
    turns = play(environment)
    rebuilt = tree_from_infos((agent, "", info) for agent, info in reversed(turns))
    for ours, theirs in zip(rebuilt, environment.tree, strict=True):
        assert (ours.parent_id, ours.agent, ours.depth) == (
            theirs.parent_id,
            theirs.agent,
            theirs.depth,
        )
        assert (ours.score, ours.solved, ours.solved_public) == (
            theirs.score,
            theirs.solved,
            theirs.solved_public,
        )


def test_a_tree_with_a_missing_turn_cannot_be_rebuilt() -> None:
    turns = [(agent, "", info) for agent, info in play(make(budget=3))]
    with pytest.raises(ValueError, match="expected the turn that made node 1, got node 2"):
        tree_from_infos([turns[0], turns[2]])


# Odd actions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ODD_TEXTS)
def test_odd_texts_are_data(action: str) -> None:
    environment = env(**STUBS, budget=2, agents=1)
    environment.reset(seed=0)
    environment.step(action)
    info = environment.infos["coder_0"]
    assert info["node_id"] == 0
    assert info["action_truncated"] is False
    assert info["action_repaired"] is any("\ud800" <= char <= "\udfff" for char in action)
    environment.unwrapped.tree[0].reply.encode()


def test_an_overlong_text_is_cut_and_flagged() -> None:
    environment = make(agents=1, budget=2)
    environment.reset(seed=0)
    environment.step("é" * (TEXT_LIMIT + 1))
    assert environment.infos["coder_0"]["action_truncated"] is True
    assert len(environment.tree[0].reply) == TEXT_LIMIT
    environment.step("short")
    assert environment.infos["coder_0"]["action_truncated"] is False


def test_a_prompt_longer_than_the_space_is_cut_in_the_middle() -> None:
    environment = make(agents=1, budget=8, judge=lambda: Scripted(*[(1 / 3, False)] * 8))
    environment.reset(seed=0)
    for _ in range(7):
        environment.step("é" * TEXT_LIMIT)
        observation = environment.observe("coder_0")
        assert environment.observation_space("coder_0").contains(observation)
        if environment.infos["coder_0"]["expand_id"] != ROOT:
            break
    assert observation["prompt"].startswith(environment.task.statement)
    assert "characters left out" in observation["prompt"]
    assert observation["prompt"].rstrip().endswith("fence.")


def test_a_prompt_with_lone_surrogates_is_repaired() -> None:
    task = dataclasses.replace(stub_tasks(1)[0], statement="odd \ud800 statement")
    environment = make(tasks=[task])
    environment.reset(seed=0)
    assert "odd \ufffd statement" in environment.observe(environment.agent_selection)["prompt"]


@pytest.mark.parametrize("action", [None, 3, b"bytes"])
def test_an_action_that_is_no_text_is_refused(action: Any) -> None:
    environment = make()
    environment.reset(seed=0)
    with pytest.raises(TypeError, match="an action is a text"):
        environment.step(action)


def test_stepping_before_reset_is_a_clear_error() -> None:
    with pytest.raises(ProtocolError, match="no episode is running; call reset"):
        make().step("a")


def test_stepping_after_the_end_is_a_clear_error() -> None:
    environment = make(budget=1)
    play(environment)
    with pytest.raises(ProtocolError, match="no episode is running"):
        environment.step("a")


# Judges that fail, agents that fail -----------------------------------------------------------


@pytest.mark.parametrize("error", [JudgeUnavailable("no sandbox"), Broken("bug")])
def test_a_step_whose_judge_raises_changes_nothing_and_may_be_repeated(error: Exception) -> None:
    outcomes: list[Any] = [(0.0, False), (1.0, True), (1 / 3, False)]
    smooth = make(judge=Scripted(*outcomes), budget=3)
    bumpy = make(judge=Scripted(outcomes[0], error, error, *outcomes[1:]), budget=3)
    for environment in (smooth, bumpy):
        environment.reset(seed=5)
        environment.step("first")
    for _ in range(2):
        before = pickle.dumps(bumpy.search.save()), copy.deepcopy(bumpy.infos), bumpy.rewards
        with pytest.raises(type(error)):
            bumpy.step("second")
        after = pickle.dumps(bumpy.search.save()), bumpy.infos, bumpy.rewards
        assert after == before
    for environment in (smooth, bumpy):
        environment.step("second")
        environment.step("third")
    assert bumpy.search.save() == smooth.search.save()
    assert bumpy.infos == smooth.infos
    assert bumpy.np_random.bit_generator.state == smooth.np_random.bit_generator.state


def test_a_failed_generation_makes_no_node_and_spends_no_budget() -> None:
    environment = make(budget=3)
    environment.reset(seed=0)
    environment.step("a")
    agent = environment.agent_selection
    environment.fail(agent, "the server went away")
    assert environment.infos[environment.agent_selection]["active"]
    assert environment.infos[agent]["nodes_left"] == 2
    assert len(environment.tree) == 1
    environment.step("b")
    environment.step("c")
    assert all(environment.terminations.values())


def test_a_failure_does_not_pay_the_earlier_reward_again() -> None:
    environment = make(agents=1, judge=Scripted((1.0, True), (0.0, False)), budget=2)
    environment.reset(seed=0)
    environment.step("a")
    assert environment.last()[1] == 1.0
    environment.fail("coder_0", "no answer")
    assert environment.last()[1] == 0.0


def test_a_permanent_failure_retires_the_agent() -> None:
    environment = make(budget=20)
    environment.reset(seed=0)
    gone = environment.agent_selection
    environment.fail(gone, "nothing left to say", permanent=True)
    assert environment.agents == environment.possible_agents
    for turn in range(20):
        assert environment.agent_selection != gone
        environment.step(text(turn))
    assert all(environment.terminations.values())


def test_an_episode_without_agents_is_truncated() -> None:
    environment = make(agents=2)
    environment.reset(seed=0)
    environment.step("a")
    for _ in range(2):
        environment.fail(environment.agent_selection, "exhausted", permanent=True)
    assert all(environment.truncations.values())
    assert not any(environment.terminations.values())
    while environment.agents:
        environment.step(None)


def test_retirement_lasts_for_one_episode() -> None:
    environment = make(agents=1)
    environment.reset(seed=0)
    environment.fail("coder_0", "exhausted", permanent=True)
    environment.reset(seed=0)
    assert environment.infos["coder_0"]["active"]


def test_only_the_selected_agent_can_fail() -> None:
    environment = make()
    environment.reset(seed=0)
    (other,) = set(environment.agents) - {environment.agent_selection}
    with pytest.raises(ProtocolError, match=f"'{other}' cannot fail: it is the turn of coder_"):
        environment.fail(other, "why")


# Copies, judges and options -------------------------------------------------------------------


class Unpicklable(StubJudge):
    made = 0
    closed = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1

    def close(self) -> None:
        type(self).closed += 1


def test_a_judge_is_made_at_the_first_verdict_and_closed_by_its_maker() -> None:
    Unpicklable.made = Unpicklable.closed = 0
    environment = make(judge=Unpicklable)
    environment.reset(seed=0)
    assert Unpicklable.made == 0
    environment.step("a")
    environment.step("b")
    environment.close()
    environment.close()
    assert (Unpicklable.made, Unpicklable.closed) == (1, 1)


def test_a_judge_that_was_handed_in_is_not_closed() -> None:
    judge = Unpicklable()
    Unpicklable.closed = 0
    environment = make(judge=judge)
    play(environment)
    environment.close()
    assert Unpicklable.closed == 0


def test_a_pickled_environment_goes_on_without_its_live_judge() -> None:
    environment = make(judge="mars_envs.testing:StubJudge", prompts="prose")
    environment.reset(seed=0)
    environment.step("a")
    twin = pickle.loads(pickle.dumps(environment))
    environment.step("b")
    twin.step("b")
    assert twin.tree == environment.tree


def test_prompts_given_as_a_module_survive_pickle() -> None:
    from mars_envs.tree_search import prose_prompts

    environment = make(prompts=prose_prompts)
    environment.reset(seed=0)
    twin = pickle.loads(pickle.dumps(environment))
    agent = environment.agent_selection
    assert twin.observe(agent)["prompt"] == environment.observe(agent)["prompt"]


def test_copies_share_their_tasks() -> None:
    environment = make()
    environment.reset(seed=0)
    assert copy.deepcopy(environment).tasks is environment.tasks


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"render_mode": "html"},
            ValueError,
            "render_mode must be 'ansi', 'human', 'rgb_array' or None",
        ),
        ({"max_cycles": 0}, ValueError, "max_cycles must be a whole number of at least 1"),
        ({"budget": 0}, ValueError, "budget is a number of nodes"),
        ({"agents": 0}, ValueError, "agents must be at least 1, got 0"),
        ({"agents": "coder_0"}, ValueError, "agents is a number or a list of names"),
        ({"agents": ["a", "a"]}, ValueError, "different names"),
        ({"selector": "uct"}, ValueError, "unknown selector 'uct'"),
        ({"selector": "uct", "agent_mix": 0.5}, ValueError, "unknown selector 'uct'"),
        ({"agent_mix": 2.0}, ValueError, "agent_mix is a share"),
        ({"prompts": "haiku"}, ValueError, "unknown prompts 'haiku'"),
        ({"judge": "oracle"}, ValueError, "unknown judge 'oracle'"),
        ({"judge": 3}, ValueError, "unknown judge 3"),
        ({"tasks": []}, ValueError, "expected at least one task"),
        ({"tasks": "no/such/file.jsonl"}, ValueError, "no/such/file.jsonl"),
    ],
)
def test_bad_options_are_refused_at_once(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_something_that_makes_no_judge_is_found_out_at_the_first_verdict() -> None:
    environment = make(judge=dict)
    environment.reset(seed=0)
    with pytest.raises(ValueError, match="gave no judge but a dict"):
        environment.step("a")


# Golden trees ---------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "best_of_n"])
def test_a_seeded_tree_equals_the_golden_one(selector: str, repo_dir: Path) -> None:
    environment = make(selector=selector, agents=2, budget=12, agent_mix=0.25)
    play(environment, seed=7)
    golden = json.loads((repo_dir / "tests" / "golden" / f"tree_{selector}.json").read_text())
    assert SearchTree.from_json(golden) == environment.tree

"""Trees grown from recordings are those of the environment; smaller budgets are their prefixes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mars_envs.cli import tree_growth
from mars_envs.cli.grid import CellFailed, Finished
from mars_envs.cli.tree_curves import curve, pack
from mars_envs.cli.tree_growth import ReplayedTrees, TreeCell, agent_order
from mars_envs.cli.tree_live import play_trees
from mars_envs.judging.base import Verdict
from mars_envs.metrics import summarize
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import PRESETS, TreeSearch
from mars_envs.tree_search.tree import SearchTree, verdict_of_score
from trainers.policies.recordings import Recording
from trainers.policies.replay import ReplayPolicy
from trainers.rollout import Sampling
from trainers.statistics import pass_at_k

TASKS = stub_tasks(3)
JUDGE = StubJudge(solve_rate=0.4)
POOLS: dict[str, int] = {"many": 9, "few": 3}
RECORDINGS = {
    agent: {
        task.task_id: [
            Recording(text=f"print({n})  # {agent}", form="full_program", source=agent)
            for n in range(count)
        ]
        for task in TASKS
    }
    for agent, count in POOLS.items()
}


class AllJudged(dict[tuple[str, str], Any]):
    """Verdicts of a judge, made when they are looked up."""

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        task_id, reply = key
        return JUDGE.judge(next(task for task in TASKS if task.task_id == task_id), reply)


def trees(budgets: list[int], *agents: str, score_fn: str | None = None) -> ReplayedTrees:
    names = agents or tuple(POOLS)
    return ReplayedTrees(
        agents={"team": {name: RECORDINGS[name] for name in names}},
        prefixes={},
        judged=AllJudged(),
        budgets={"team": budgets},
        tasks={task.task_id: task for task in TASKS},
        score_fn=score_fn,
    )


def cell(selector: str = "default", seeds: int = 4, task: int = 0) -> TreeCell:
    return TreeCell(
        team="team", selector=selector, task_id=TASKS[task].task_id, seeds=tuple(range(seeds))
    )


@pytest.mark.parametrize("selector", PRESETS)
def test_the_first_nodes_of_a_tree_are_the_tree_of_a_smaller_budget(selector: str) -> None:
    largest = trees([1, 2, 5, 12])(cell(selector, seeds=10))["budgets"]
    for budget in (1, 2, 5):
        assert (
            trees([budget])(cell(selector, seeds=10))["budgets"][str(budget)]
            == (largest[str(budget)])
        )


@pytest.mark.parametrize("selector", PRESETS)
def test_a_replayed_tree_is_the_one_that_the_environment_grows(
    selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_the_environment_draws(seed: int, task_id: str) -> int:
        rng = np.random.Generator(np.random.PCG64(tree_seed(seed, task_id)))
        rng.integers(len(TASKS))  # which task, had none been asked for
        return int(rng.integers(2**31))

    tree_seed = tree_growth.tree_seed
    cells = {f"{task}/{seed}": (task, seed) for task in range(3) for seed in range(3)}
    finished: list[Finished[TreeCell]] = []
    play_trees(
        {
            name: TreeCell(
                team="team", selector=selector, task_id=TASKS[task].task_id, seeds=(seed,)
            )
            for name, (task, seed) in cells.items()
        },
        {agent: ReplayPolicy(found, name=agent) for agent, found in RECORDINGS.items()},
        finished.append,
        tasks=TASKS,
        judge=JUDGE,
        prompts="prose",
        budgets=[1, 4, 12],
        sampling=Sampling(),
        concurrency=2,
    )
    assert len(finished) == len(cells)
    monkeypatch.setattr(tree_growth, "tree_seed", as_the_environment_draws)
    for done in finished:
        task, seed = cells[done.name]
        alone = TreeCell(team="team", selector=selector, task_id=TASKS[task].task_id, seeds=(seed,))
        assert done.record == trees([1, 4, 12])(alone), done.name


def test_an_exhausted_agent_leaves_and_the_tree_ends_with_the_last_recording() -> None:
    found = trees([12, 40])(cell(seeds=5))["budgets"]
    assert found["40"] == found["12"]
    assert found["12"]["agents"]["few"][0] == 5 * POOLS["few"]
    assert found["12"]["agents"]["many"][0] == 5 * POOLS["many"]


def test_one_agent_is_drawn_alike_by_every_selector_and_as_often_as_chance_says() -> None:
    seeds = 400
    (task,) = TASKS[:1]
    replies = ReplayPolicy(RECORDINGS["many"]).answers(task.task_id)
    solved = sum(JUDGE.judge(task, reply).solved for reply in replies)
    assert 0 < solved < len(replies)
    by_selector = [
        trees([1, 3, 5], "many")(cell(selector, seeds=seeds))["budgets"] for selector in PRESETS
    ]
    for budget in (1, 3, 5):
        found = {(one[str(budget)]["chosen"], one[str(budget)]["any"]) for one in by_selector}
        assert len(found) == 1
        expected = float(pass_at_k(len(replies), solved, budget))
        share = by_selector[0][str(budget)]["any"].count("1") / seeds
        # Independent trees: four binomial standard errors.
        assert abs(share - expected) <= 4 * (expected * (1 - expected) / seeds) ** 0.5


def test_no_agent_is_always_asked_first() -> None:
    first = [agent_order(["a", "b", "c"], seed, "task")[0] for seed in range(300)]
    for agent in "abc":
        # Four standard errors of 1/3 in 300.
        assert abs(first.count(agent) / 300 - 1 / 3) < 4 * (2 / 9 / 300) ** 0.5
    assert agent_order(["a", "b", "c"], 0, "task") == agent_order(["a", "b", "c"], 0, "task")


def test_an_answer_without_a_verdict_fails_its_cell() -> None:
    unjudged = ReplayedTrees(
        agents={"team": RECORDINGS},
        prefixes={},
        judged={},
        budgets={"team": [2]},
        tasks={},
    )
    with pytest.raises(CellFailed, match="has no verdict"):
        unjudged(cell())


def test_a_reward_model_chooses_among_the_best_answers_of_the_same_tree() -> None:
    def judge(reply: str) -> Verdict:
        """All pass the public tests; the first six are right, the others wrong, each in its way."""
        number = int(reply.partition("print(")[2].partition(")")[0])
        behaviour = "right" if number < 6 else f"wrong {number}"
        return dataclasses.replace(verdict_of_score(1.0), solved=number < 6, signature=(behaviour,))

    replies = ReplayPolicy(RECORDINGS["many"]).answers(TASKS[0].task_id)
    judged = {(TASKS[0].task_id, reply): judge(reply) for reply in replies}
    agreeing = dataclasses.replace(trees([1, 4, 9], "many"), judged=judged, score_fn="agreement")
    found = agreeing(cell(seeds=50))["budgets"]
    without = dataclasses.replace(agreeing, score_fn=None)(cell(seeds=50))["budgets"]
    assert found["9"]["scored"] == "1" * 50
    assert found["1"]["scored"] == found["1"]["chosen"]
    assert found["9"]["chosen"] == without["9"]["chosen"] != "1" * 50
    assert without["9"]["scored"] == ""


@pytest.fixture
def grown() -> TreeSearch:
    search = TreeSearch(["a", "b"], "default", 12, seed=3)
    scores = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 12)
    while not search.done:
        (expansion,) = search.ask()
        search.tell(expansion.id, verdict_of_score(scores[len(search.tree)]))
    return search


def test_a_curve_says_of_each_prefix_what_the_metrics_say_of_it_as_a_tree(
    grown: TreeSearch,
) -> None:
    prefix = SearchTree()
    answers = []
    summaries: Mapping[int, Any] = {}
    for node in grown.tree:
        prefix.add(node.parent_id, node.agent, node.verdict)
        assert prefix.best is not None
        answers.append(prefix.best.id)
        summaries = {**summaries, len(prefix): summarize(prefix)}
    found = curve(list(grown.tree), answers, range(1, 13))
    for budget, summary in summaries.items():
        sums = found.sums[budget]
        assert found.chosen[budget] == summary.best_solved
        assert found.any[budget] == summary.any_solved
        assert sums["nodes"] == summary.nodes
        assert sums["solved"] == summary.solved_nodes
        assert sums["root_children"] == summary.root_children
        assert sums["refines"] == summary.refinements
        assert sums["depth"] == pytest.approx(summary.mean_depth * summary.nodes)
        assert sums["max_depth"] == summary.max_depth
        assert bool(sums["degenerate"]) == summary.degenerate
        agents = found.agents[budget]
        assert {name: nodes for name, (nodes, *_) in agents.items()} == summary.agent_nodes
        assert {name: solved for name, (_, solved, _) in agents.items()} == summary.agent_solved
        # The parts of all agents make up the whole: whether the tree is solved.
        assert round(sum(credit for *_, credit in agents.values()), 9) == found.any[budget]


def test_curves_of_several_seeds_are_summed_by_budget(grown: TreeSearch) -> None:
    one = curve(list(grown.tree), list(range(12)), [1, 12])
    packed = pack([one, one])
    assert packed["12"]["sums"]["nodes"] == 24
    assert len(packed["1"]["chosen"]) == 2

"""Selection against a slow oracle, which keeps lists of scores and draws arm by arm.

The oracle is written from the specification (§1.4-§1.7) and shares nothing with the selectors but
the prior's update on a list of scores, which is held against TreeQuest elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils import seeding
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.testing import stub_tasks
from mars_envs.tree_search import (
    ROOT,
    AgentThenNode,
    Beta,
    Expansion,
    Gaussian,
    NodeThenAgent,
    Posterior,
    SearchTree,
    SearchView,
)
from mars_envs.tree_search.tree import verdict_of_score

Arm = tuple[str, int, str]
Grown = list[tuple[int, str, float]]


class Oracle:
    """Chooses slowly."""

    def __init__(self, order: str, prior: Posterior, agent_mix: float, expand_solved: bool) -> None:
        self.order = order
        self.prior = prior
        self.agent_mix = agent_mix
        self.expand_solved = expand_solved

    def choose(
        self,
        nodes: Grown,
        pending: list[tuple[int, str]],
        agents: tuple[str, ...],
        rng: np.random.Generator,
    ) -> tuple[int, str]:
        """Return (parent, agent); a node is (parent, agent, score), its id is its place."""
        scores: dict[Arm, list[float]] = {}
        for node_id, (parent, agent, score) in enumerate(nodes):
            for arm in [*self._arms(nodes, parent, agent), ("child", node_id, "")]:
                scores.setdefault(arm, []).append(score)
        for parent, agent in pending:
            for arm in self._arms(nodes, parent, agent):
                earned = scores.setdefault(arm, [])
                earned.append(min(1.0, max(0.0, self.prior.updated(earned).mean)))

        def best(arms: list[Arm]) -> int:
            drawn = [self.prior.updated(scores.get(arm, [])).draw(rng) for arm in arms]
            return drawn.index(max(drawn))

        def agent_at(place: int) -> str:
            if len(agents) == 1:
                return agents[0]
            if self.agent_mix > 0 and rng.random() < self.agent_mix:
                return agents[int(rng.integers(len(agents)))]
            return agents[best([("agent", place, agent) for agent in agents])]

        def children(place: int, author: str | None) -> list[int]:
            return [
                node_id
                for node_id, (parent, agent, score) in enumerate(nodes)
                if parent == place
                and author in (None, agent)
                and (self.expand_solved or score < 1.0)
            ]

        place = ROOT
        while True:
            if self.order == "agent first":
                agent = author = agent_at(place)
                open_children = children(place, author)
                if not open_children or best([("gen", place, agent), ("cont", place, agent)]) == 0:
                    return place, agent
            else:
                open_children = children(place, None)
                if not open_children or best([("gen", place, ""), ("cont", place, "")]) == 0:
                    return place, agent_at(ROOT)
            place = open_children[best([("child", child, "") for child in open_children])]

    def _arms(self, nodes: Grown, parent: int, agent: str) -> list[Arm]:
        """Where the score of a new child of `parent` by `agent` goes (§1.6, §1.7)."""
        own = self.order == "agent first"
        arms: list[Arm] = [("gen", parent, agent if own else "")]
        arms.append(("agent", parent if own else ROOT, agent))
        while parent != ROOT:
            arms.append(("child", parent, ""))
            grandparent, author, _ = nodes[parent]
            arms.append(("cont", grandparent, author if own else ""))
            if own:
                arms.append(("agent", grandparent, author))
            parent = grandparent
        return arms


KINDS = {"node first": NodeThenAgent, "agent first": AgentThenNode}
scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
grown_trees = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abc"), scores), max_size=25
).map(lambda steps: [(pick % (i + 1) - 1, agent, s) for i, (pick, agent, s) in enumerate(steps)])


@settings(deadline=None, max_examples=150)
@given(
    grown_trees,
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abc")), max_size=4),
    st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([Beta(), Beta(2.0, 1.0), Gaussian(), Gaussian(0.5, 2.0, 3.0, 0.2)]),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_every_choice_equals_the_oracles(
    nodes: Grown,
    waiting: list[tuple[int, str]],
    agents: tuple[str, ...],
    order: str,
    prior: Posterior,
    agent_mix: float,
    expand_solved: bool,
    seed: int,
) -> None:
    pending = [(pick % (len(nodes) + 1) - 1, agent) for pick, agent in waiting]
    selector = KINDS[order](prior=prior, agent_mix=agent_mix)
    tree, statistics = SearchTree(), selector.statistics("abc")
    for parent, agent, score in nodes:
        node = tree.add(parent, agent, verdict_of_score(score))
        statistics.observe(node, opened=expand_solved or not node.solved_public)
    for parent, agent in pending:
        statistics.suppose(parent, agent)
    view = SearchView(
        tree=tree,
        statistics=statistics,
        agents=agents,
        pending=[Expansion(index, *item) for index, item in enumerate(pending)],
        expand_solved=expand_solved,
    )
    oracle = Oracle(order, prior, agent_mix, expand_solved)
    fast, slow = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(3):
        assert selector.select(view, fast) == oracle.choose(nodes, pending, agents, slow)


@pytest.mark.parametrize(
    ("preset", "order", "prior"),
    [
        ("default", "node first", Beta()),
        ("paper", "agent first", Beta()),
        ("marti_code", "node first", Gaussian()),
    ],
)
def test_the_golden_trees_are_what_the_oracle_grows(
    preset: str, order: str, prior: Posterior, repo_dir: Path
) -> None:
    golden = json.loads((repo_dir / "tests" / "golden" / f"tree_{preset}.json").read_text())
    # How a seeded environment draws the task and the seed of its search (its reset(seed=7)).
    source, _ = seeding.np_random(7)
    source.integers(len(stub_tasks()))
    rng = np.random.default_rng(int(source.integers(2**31)))
    oracle = Oracle(order, prior, agent_mix=0.25, expand_solved=True)
    nodes: Grown = []
    for record in golden["nodes"]:
        chosen = oracle.choose(nodes, [], ("coder_0", "coder_1"), rng)
        assert chosen == (record["parent_id"], record["agent"]), record["id"]
        nodes.append((*chosen, record["verdict"]["score"]))

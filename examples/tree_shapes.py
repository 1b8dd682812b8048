"""The shape of whole trees: beside TreeQuest, and beside what an independent simulator measured.

Which arm is drawn how often decides how wide and how deep trees become, so a search that differs
anywhere differs here. Both tables of docs/mars2.md:

    python examples/tree_shapes.py live          # beside TreeQuest; minutes
    python examples/tree_shapes.py specified     # beside the specification's table; a minute
    python examples/tree_shapes.py live --trees 20 --theirs 5 --nodes 8
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from mars_envs.tree_search import (
    ROOT,
    AgentThenNode,
    Beta,
    Gaussian,
    NodeThenAgent,
    Posterior,
    Selector,
    TreeSearch,
)

PRIORS: dict[str, Posterior] = {"beta": Beta(), "gaussian": Gaussian()}
ORDERS = {"node first": NodeThenAgent, "agent first": AgentThenNode}
STRATEGIES = {"node first": "multiarm_bandit_thompson", "agent first": "stack"}
"""What TreeQuest calls the orders."""
FRESH = {"a": 0.3, "b": 0.5}
"""Success from scratch, and after a wrong answer; a right one stays right with 0.9."""

Shape = tuple[float, float, float, float, float]
"""Children of the root, mean depth, greatest depth, share of agent a, mean score."""

SPECIFIED = {
    ("gaussian", 8, 1): [(4.5, 1.55, 0.64), (4.2, 1.58, 0.09), (5.2, 1.42, 0.10)],
    ("gaussian", 8, 4): [(6.2, 1.23, 0.69), (6.6, 1.17, 0.06), (7.2, 1.10, 0.05)],
    ("beta", 8, 1): [(4.0, 1.68, 0.66), (3.5, 1.75, 0.07), (4.2, 1.60, 0.12)],
    ("beta", 8, 4): [(4.8, 1.40, 0.66), (5.5, 1.31, 0.07), (6.5, 1.19, 0.07)],
    ("gaussian", 60, 1): [(15.5, 2.1, 0.02), (9.7, 2.3, 0.0), (17.8, 1.9, 0.0)],
    ("beta", 60, 1): [(15.4, 2.2, 0.07), (6.9, 2.5, 0.0), (14.5, 2.1, 0.0)],
}
"""Specification §1.8: by prior, nodes and batch, for each chance the root's children, the mean
depth and the share of trees in which all answers score alike."""
CHANCES = (0.05, 0.3, 0.7)


def answer(rng: np.random.Generator, agent: str, parent_right: bool) -> float:
    return float(rng.random() < (0.9 if parent_right else FRESH[agent]))


def shape(nodes: list[tuple[int, int, str, float]]) -> Shape:
    """Of (parent, depth, agent, score) per node: what is compared."""
    depths = [depth for _, depth, _, _ in nodes]
    return (
        sum(parent == ROOT for parent, *_ in nodes),
        sum(depths) / len(nodes),
        max(depths),
        sum(agent == "a" for *_, agent, _ in nodes) / len(nodes),
        sum(score for *_, score in nodes) / len(nodes),
    )


def our_shape(order: str, prior: str, nodes: int, seed: int) -> Shape:
    selector: Selector = ORDERS[order](prior=PRIORS[prior])
    search = TreeSearch(sorted(FRESH), selector, nodes, seed)
    rng = np.random.default_rng([seed, 1])
    while not search.done:
        (expansion,) = search.ask()
        parent = expansion.parent_id
        right = parent != ROOT and search.tree[parent].score == 1.0
        search.tell(expansion.id, answer(rng, expansion.agent, right))
    return shape([(n.parent_id, n.depth, n.agent, n.score) for n in search.tree])


def their_shape(order: str, prior: str, nodes: int, seed: int) -> Shape:
    import treequest

    np.random.seed(seed)
    rng = np.random.default_rng([seed, 2])
    algorithm = treequest.ABMCTSA(dist_type=prior, model_selection_strategy=STRATEGIES[order])

    def generator(agent: str) -> Callable[[Any], tuple[Any, float]]:
        def generate(parent: Any) -> tuple[Any, float]:
            score = answer(rng, agent, parent is not None and parent[1] == 1.0)
            return (agent, score), score

        return generate

    state = algorithm.init_tree()
    functions = {agent: generator(agent) for agent in sorted(FRESH)}
    for _ in range(nodes):
        state = algorithm.step(state, functions, inplace=True)
    return shape(
        [
            (node.parent.expand_idx, node.depth, node.state[0], node.score)
            for node in state.tree.get_nodes()[1:]
        ]
    )


def specified_shape(
    prior: str, nodes: int, batch: int, chance: float, seed: int
) -> tuple[float, float, float]:
    """The three figures of `SPECIFIED` for one tree of one agent."""
    selector = NodeThenAgent(prior=PRIORS[prior])
    # Like TreeQuest, the table's simulator draws a batch without knowing what is pending.
    search = TreeSearch(["a"], selector, nodes, seed, pseudo_observations=False)
    rng = np.random.default_rng([seed, 1])
    while not search.done:
        for expansion in search.ask(batch):
            parent = expansion.parent_id
            right = parent != ROOT and search.tree[parent].score == 1.0
            search.tell(expansion.id, float(rng.random() < (0.9 if right else chance)))
    tree = search.tree
    return (
        len(tree.children(ROOT)),
        sum(node.depth for node in tree) / len(tree),
        float(len({node.score for node in tree}) == 1),
    )


def print_live(sizes: list[int], trees: int | None, theirs: int | None) -> None:
    print("| order | prior | N | root's children | TreeQuest | mean depth | TreeQuest "
          "| greatest depth | TreeQuest |")  # fmt: skip
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for nodes in sizes:
        mine = trees or (1000 if nodes < 20 else 400)
        yours = theirs or (300 if nodes < 20 else 80)
        for order in ORDERS:
            for prior in PRIORS:
                shapes = [
                    np.array([our_shape(order, prior, nodes, seed) for seed in range(mine)]),
                    np.array([their_shape(order, prior, nodes, seed) for seed in range(yours)]),
                ]
                cells = [
                    f"{column.mean():.2f} ± {column.std(ddof=1) / len(column) ** 0.5:.2f}"
                    for index in range(3)
                    for column in (shapes[0][:, index], shapes[1][:, index])
                ]
                print(f"| {order} | {prior} | {nodes} | {' | '.join(cells)} |", flush=True)


def print_specified(sizes: list[int], trees: int | None) -> None:
    print("| prior | N | batch | " + " | ".join(f"p = {chance}" for chance in CHANCES) + " |")
    print("| --- | ---: | ---: | --- | --- | --- |")
    for (prior, nodes, batch), expected in SPECIFIED.items():
        if nodes not in sizes:
            continue
        count = trees or (600 if nodes < 20 else 300)
        cells = []
        for chance, (width, depth, alike) in zip(CHANCES, expected, strict=True):
            found = np.mean(
                [specified_shape(prior, nodes, batch, chance, seed) for seed in range(count)],
                axis=0,
            )
            cells.append(
                f"{found[0]:.1f} / {found[1]:.2f} / {100 * found[2]:.0f} % "
                f"({width} / {depth} / {100 * alike:.0f} %)"
            )
        print(f"| {prior} | {nodes} | {batch} | {' | '.join(cells)} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=["live", "specified"])
    parser.add_argument("--nodes", type=int, nargs="+", default=[8, 60])
    parser.add_argument("--trees", type=int, help="ours per cell; by default more of the small")
    parser.add_argument("--theirs", type=int, help="TreeQuest's per cell, of `live`")
    options = parser.parse_args(arguments)
    if options.table == "live":
        print_live(options.nodes, options.trees, options.theirs)
    else:
        print_specified(options.nodes, options.trees)


if __name__ == "__main__":
    main()

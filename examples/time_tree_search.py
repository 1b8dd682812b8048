"""Time the search itself beside TreeQuest: CPU per expansion, how it grows, memory per node.

Both grow trees for two agents on the same simulated answers: one from scratch is right with
probability 0.3, so is a refinement of a wrong one, and a refinement of a right one stays right with
0.9. Nothing is generated or judged, so all that is measured is choosing, attaching and backing up.
TreeQuest is told to work in place; by default it would copy the whole tree at every step.

    python examples/time_tree_search.py             # a minute
    python examples/time_tree_search.py --full      # the table of docs/mars2.md: minutes
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

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

AGENTS = ["a", "b"]
PRIORS: dict[str, Posterior] = {"beta": Beta(), "gaussian": Gaussian()}
STRATEGIES = {"node first": "multiarm_bandit_thompson", "agent first": "stack"}


def selector(order: str, prior: str) -> Selector:
    kind = NodeThenAgent if order == "node first" else AgentThenNode
    return kind(prior=PRIORS[prior])


def answer(rng: random.Random, parent_right: bool) -> float:
    return float(rng.random() < (0.9 if parent_right else 0.3))


class Timer:
    """CPU seconds of the parts of a run that are to be timed: all, and those of the last tenth."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.late = nodes - max(1, nodes // 10)
        self.begun = time.process_time()
        self.then = self.begun

    def tick(self, size: int) -> None:
        """Note the time when the last tenth begins."""
        if size == self.late:
            self.then = time.process_time()

    def result(self) -> tuple[float, float]:
        """Milliseconds per expansion: on average over the growth, and at full size."""
        now = time.process_time()
        return (
            1e3 * (now - self.begun) / self.nodes,
            1e3 * (now - self.then) / (self.nodes - self.late),
        )


def grow_ours(order: str, prior: str, nodes: int, seed: int) -> tuple[float, float]:
    rng = random.Random(seed)
    search = TreeSearch(AGENTS, selector(order, prior), nodes, seed)
    timer = Timer(nodes)
    while not search.done:
        timer.tick(len(search.tree))
        (expansion,) = search.ask()
        parent = expansion.parent_id
        right = parent != ROOT and search.tree[parent].score == 1.0
        search.tell(expansion.id, answer(rng, right))
    return timer.result()


def grow_theirs(
    order: str, prior: str, nodes: int, seed: int, *, step: bool
) -> tuple[float, float]:
    import numpy as np
    import treequest

    np.random.seed(seed)
    rng = random.Random(seed)
    algorithm = treequest.ABMCTSA(dist_type=prior, model_selection_strategy=STRATEGIES[order])

    def generate(parent: float | None) -> tuple[float, float]:
        score = answer(rng, parent == 1.0)
        return score, score

    state = algorithm.init_tree()
    timer = Timer(nodes)
    for size in range(nodes):
        timer.tick(size)
        if step:
            state = algorithm.step(state, dict.fromkeys(AGENTS, generate), inplace=True)
        else:
            state, (trial,) = algorithm.ask_batch(state, 1, AGENTS)
            state = algorithm.tell(state, trial.trial_id, generate(trial.parent_state))
    return timer.result()


def mean(
    measure: Callable[[int], tuple[float, float]], seeds: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Means over seeds and their standard errors: of the average, and at full size."""
    runs = [measure(seed) for seed in range(seeds)]
    columns = list(zip(*runs, strict=True))
    means = [math.fsum(column) / seeds for column in columns]
    errors = [
        math.sqrt(math.fsum((x - m) ** 2 for x in column) / max(1, seeds - 1) / seeds)
        for column, m in zip(columns, means, strict=True)
    ]
    return (means[0], errors[0]), (means[1], errors[1])


def bytes_per_node(order: str, prior: str, nodes: int) -> float:
    """What a search and its tree hold, replies and programs excepted."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    rng = random.Random(0)
    search = TreeSearch(AGENTS, selector(order, prior), nodes, 0)
    while not search.done:
        (expansion,) = search.ask()
        parent = expansion.parent_id
        right = parent != ROOT and search.tree[parent].score == 1.0
        search.tell(expansion.id, answer(rng, right))
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / nodes


def show(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[60, 1000])
    parser.add_argument("--seeds", type=int, default=2, help="trees per cell")
    parser.add_argument("--priors", nargs="+", choices=sorted(PRIORS), default=sorted(PRIORS))
    parser.add_argument(
        "--treequest-nodes", type=int, default=60, help="the largest tree that TreeQuest grows"
    )
    parser.add_argument(
        "--full", action="store_true", help="60, 1,000 and 10,000 nodes; TreeQuest up to 1,000"
    )
    options = parser.parse_args(arguments)
    if options.full:
        options.nodes, options.treequest_nodes = [60, 1000, 10_000], 1000
    if options.treequest_nodes:
        try:
            import treequest  # noqa: F401
        except ImportError:
            sys.exit("TreeQuest is not installed: pip install treequest, or --treequest-nodes 0")
        logging.getLogger("treequest").setLevel(logging.ERROR)

    print("CPU milliseconds per expansion: mean over the growth to N (standard error over trees),")
    print("and at size N (the last tenth). `ours` is ask + tell.\n")
    print("| order | prior | N | ours | at N | TreeQuest step | ask, tell | step at N | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for order in STRATEGIES:
        for prior in options.priors:
            late: dict[int, float] = {}
            for nodes in options.nodes:
                # Small trees are over in milliseconds; more of them make up for it.
                seeds = options.seeds * max(1, 600 // nodes)
                (ours, error), (at, _) = mean(partial(grow_ours, order, prior, nodes), seeds)
                late[nodes] = at
                cells = [f"{show(ours)} ({show(error)})", show(at)]
                if nodes <= options.treequest_nodes:
                    theirs = partial(grow_theirs, order, prior, nodes)
                    (step, _), (step_at, _) = mean(partial(theirs, step=True), options.seeds)
                    (told, _), _ = mean(partial(theirs, step=False), options.seeds)
                    ratio = min(step, told) / ours
                    cells += [show(step), show(told), show(step_at), f"{ratio:.0f}x"]
                else:
                    cells += ["", "", "", ""]
                print(f"| {order} | {prior} | {nodes:,} | {' | '.join(cells)} |", flush=True)
            first, last = min(late), max(late)
            if first < last:
                slope = math.log(late[last] / late[first]) / math.log(last / first)
                print(
                    f"| {order} | {prior} | {first:,} to {last:,} | cost at N grows with the power "
                    f"{slope:.2f} | | | | | |",
                    flush=True,
                )
    print("\nMemory per node, without replies and programs:")
    for order in STRATEGIES:
        size = bytes_per_node(order, options.priors[0], max(options.nodes))
        print(f"  {order}: {size:.0f} bytes at N = {max(options.nodes):,}")


if __name__ == "__main__":
    main()

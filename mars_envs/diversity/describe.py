"""All measures of diversity for trees, as plain data that goes into a file of results."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

from ..tree_search.tree import Node, SearchTree
from .contribution import contributions, solved_by_depth
from .counts import distinct, distinct_at_k
from .distances import shape, syntax_bag, syntax_distance, token_distance, tokens
from .pairs import MAX_PAIRS, PairMean, mean_between, mean_pairwise, mean_within

KS = (2, 4, 8, 16, 32, 60)
"""Numbers of programs for which DA@K is told, as far as a tree has so many."""
NOTE = "definitions of mars-envs (docs/mars2.md, Metrics): not those of the MARS² papers"


def describe_diversity(
    trees: Mapping[str, SearchTree],
    *,
    agents: Sequence[str] | None = None,
    among: Literal["all", "solved"] = "all",
    ks: Sequence[int] = KS,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the diversity of each tree, for `json.dumps`; see `describe_programs` for the terms.

    Args:
        trees: by a name, say of task and seed.
        agents: the team; None: in each tree those who have a node.
        among: of which nodes programs are compared: `solved` asks for different right answers.
        ks: numbers of programs for DA@K.
        max_pairs: see `mean_pairwise`.
        seed: likewise.

    Returns:
        `{"note", "among", "trees": {name: {"team": …, "agents": {name: …}, "between_agents": …,
        "within_agents": …, "contributions": {agent: …}, "solved_by_depth": {depth: [solved,
        nodes]}}}}`. `team` and each agent have what `describe_programs` returns.
    """
    options = {"max_pairs": max_pairs, "seed": seed}
    described: dict[str, Any] = {}
    for name, tree in trees.items():
        nodes = [node for node in tree if among == "all" or node.solved]
        groups: defaultdict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            groups[node.agent].append(node)
        team = agents if agents is not None else list(dict.fromkeys(node.agent for node in tree))
        described[name] = {
            "team": _of_nodes(nodes, ks, options),
            "agents": {agent: _of_nodes(groups[agent], ks, options) for agent in team},
            "within_agents": _distances(groups, mean_within, options),
            "between_agents": _distances(groups, mean_between, options),
            "contributions": {
                agent: dataclasses.asdict(each) for agent, each in contributions(tree, team).items()
            },
            "solved_by_depth": {
                str(depth): list(counts) for depth, counts in solved_by_depth(tree).items()
            },
        }
    return {"note": NOTE, "among": among, "trees": described}


def describe_programs(
    programs: Sequence[str],
    signatures: Sequence[tuple[str, ...]] | None = None,
    *,
    ks: Sequence[int] = KS,
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> dict[str, Any]:
    """Return how different programs are, as plain data.

    Args:
        programs: [n], empty where an answer held none.
        signatures: [n], of their behaviour, empty where it is not known; None: of none it is.
        ks: numbers of programs for DA@K.
        max_pairs: see `mean_pairwise`.
        seed: likewise.

    Returns:
        `answers` (n), `programs` (not empty), `unparsed` (of these, those that do not parse),
        `identical` (of these, those that repeat an earlier one to the letter), `token_distance`
        (over all programs) and `syntax_distance` (over those that parse), each with `mean` (None
        without a pair), `se`, `pairs` and `used`; `behaviours` and `shapes`, each with `known`,
        `distinct` and `at_k` `{k: DA@k}` over all n.

    Raises:
        ValueError: programs and signatures are not equally many.
    """
    known = [()] * len(programs) if signatures is None else list(signatures)
    if len(known) != len(programs):
        raise ValueError(f"{len(programs)} programs and {len(known)} signatures do not pair up")
    texts = [program for program in programs if program]
    bags = [bag for bag in map(syntax_bag, texts) if bag is not None]
    kinds: dict[str, list[Hashable | None]] = {
        "behaviours": [signature or None for signature in known],
        "shapes": [shape(program) if program else None for program in programs],
    }
    options = {"max_pairs": max_pairs, "seed": seed}
    return {
        "answers": len(programs),
        "programs": len(texts),
        "unparsed": len(texts) - len(bags),
        "identical": sum(count - 1 for count in Counter(texts).values()),
        "token_distance": _plain(
            mean_pairwise([tokens(text) for text in texts], token_distance, **options)
        ),
        "syntax_distance": _plain(mean_pairwise(bags, syntax_distance, **options)),
        **{name: _kinds(labels, ks) for name, labels in kinds.items()},
    }


def _of_nodes(nodes: Sequence[Node], ks: Sequence[int], options: dict[str, int]) -> dict[str, Any]:
    verdicts = [node.verdict for node in nodes]
    return describe_programs(
        [verdict.program for verdict in verdicts],
        [verdict.signature for verdict in verdicts],
        ks=ks,
        **options,
    )


def _distances(groups: Mapping[str, Sequence[Node]], mean: Any, options: dict[str, int]) -> Any:
    texts = {
        agent: [node.verdict.program for node in nodes if node.verdict.program]
        for agent, nodes in groups.items()
    }
    words = {agent: list(map(tokens, found)) for agent, found in texts.items()}
    bags = {
        agent: [bag for bag in map(syntax_bag, found) if bag is not None]
        for agent, found in texts.items()
    }
    return {
        "token_distance": _plain(mean(words, token_distance, **options)),
        "syntax_distance": _plain(mean(bags, syntax_distance, **options)),
    }


def _kinds(labels: Sequence[Hashable | None], ks: Sequence[int]) -> dict[str, Any]:
    return {
        "known": sum(label is not None for label in labels),
        "distinct": distinct(labels),
        "at_k": {str(k): distinct_at_k(labels, k) for k in ks if k <= len(labels)},
    }


def _plain(mean: PairMean) -> dict[str, Any]:
    return dataclasses.asdict(mean)

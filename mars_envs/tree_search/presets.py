"""Selectors by name."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from ..importing import import_object, is_importable
from .agent_rules import UCB, Turns
from .baselines import ChainOnly, RandomParent, RootOnly
from .classic import UCT, BestFirst, TreeOfThoughts
from .fresh_or_refine import FreshOrRefine
from .posteriors import Gaussian
from .selection import Selector
from .statistics import JEFFREYS
from .thompson import AgentThenNode, DepthGuide, NodeThenAgent

PRESETS: dict[str, Selector] = {
    "default": NodeThenAgent(prior=JEFFREYS),
    # The paper's text: a Beta prior for each pair of agent and node, agent first.
    "paper": AgentThenNode(prior=JEFFREYS),
    # What the released scripts run: node first, TreeQuest's Gaussian prior.
    "marti_code": NodeThenAgent(prior=Gaussian(0.0, 1.0, 1.0, 0.1)),
    # Inference of MARS²-T+: widening wears off, level by level.
    "t_plus": NodeThenAgent(prior=JEFFREYS, depth_guide=DepthGuide()),
    # Ablations of how the agent is chosen.
    "ucb": NodeThenAgent(prior=JEFFREYS, agent_rule=UCB()),
    "round_robin": NodeThenAgent(prior=JEFFREYS, agent_rule=Turns()),
    # Ablations of how the node is chosen.
    "best_of_n": RootOnly(),
    "chain": ChainOnly(),
    "random_parent": RandomParent(),
    # Ours: the kind of expansion that most probably passes; made to be fitted to earlier trees.
    "fresh_or_refine": FreshOrRefine(),
    # The classics.
    "mcts": UCT(),
    "best_first": BestFirst(),
    "tree_of_thoughts": TreeOfThoughts(),
}


def resolve_selector(selector: str | Selector, agent_mix: float = 0.0) -> Selector:
    """Return the selector that is named or given, with a share of uniform agent choice.

    Args:
        selector: a preset's name, "module:name" of a selector or of something callable that
            makes one, or the object itself.
        agent_mix: share in [0, 1] of choices in which the agent is drawn uniformly. 0 leaves the
            selector as it is.

    Raises:
        ValueError: an unknown name, no selector, or a mix that this selector cannot take.
    """
    found: Any = selector
    if isinstance(selector, str):
        if selector in PRESETS:
            found = PRESETS[selector]
        elif is_importable(selector):
            found = import_object(selector)
        else:
            raise ValueError(
                f"unknown selector {selector!r}; expected one of {', '.join(PRESETS)}, or "
                "'module:name'"
            )
    if isinstance(found, type) or (callable(found) and not hasattr(found, "select")):
        found = found()
    missing = [name for name in ("select", "statistics") if not hasattr(found, name)]
    if missing:
        raise ValueError(f"{selector!r} is no selector: it lacks {', '.join(missing)}")
    if agent_mix:
        if not (dataclasses.is_dataclass(found) and hasattr(found, "agent_mix")):
            raise ValueError(
                f"{type(found).__name__} takes no agent_mix; leave agent_mix at 0 and give the "
                "selector its own setting"
            )
        found = dataclasses.replace(cast(Any, found), agent_mix=agent_mix)
    return cast(Selector, found)

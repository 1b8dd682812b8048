"""MARS²: several coders grow one shared search tree of programs."""

from .control import TreeControlEnv
from .control_policies import ControlResult, SelectorPolicy, UniformPolicy, play
from .env import TreeSearchEnv
from .families import FAMILIES, resolve_coders
from .final import ScoreFn, final_answer
from .infos import INFO_FIELDS, tree_from_infos
from .parallel import ParallelTreeSearchEnv
from .posteriors import Beta, Gaussian, Posterior
from .presets import PRESETS, resolve_selector
from .prompts import ParentView, Prompts, resolve_prompts
from .rendering import tree_to_text
from .rows import Layout, observe_tree
from .search import TreeSearch
from .selection import (
    AgentThenNode,
    Choice,
    Expansion,
    NodeThenAgent,
    RootOnly,
    SearchView,
    Selector,
)
from .stopping import StopReason, StopRules
from .tree import NOTHING, ROOT, Node, SearchTree

__all__ = [
    "FAMILIES",
    "INFO_FIELDS",
    "NOTHING",
    "PRESETS",
    "ROOT",
    "AgentThenNode",
    "Beta",
    "Choice",
    "ControlResult",
    "Expansion",
    "Gaussian",
    "Layout",
    "Node",
    "NodeThenAgent",
    "ParallelTreeSearchEnv",
    "ParentView",
    "Posterior",
    "Prompts",
    "RootOnly",
    "ScoreFn",
    "SearchTree",
    "SearchView",
    "Selector",
    "SelectorPolicy",
    "StopReason",
    "StopRules",
    "TreeControlEnv",
    "TreeSearch",
    "TreeSearchEnv",
    "UniformPolicy",
    "final_answer",
    "observe_tree",
    "play",
    "resolve_coders",
    "resolve_prompts",
    "resolve_selector",
    "tree_from_infos",
    "tree_to_text",
]

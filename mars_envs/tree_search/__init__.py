"""MARS²: several coders grow one shared search tree of programs."""

from .env import TreeSearchEnv
from .infos import INFO_FIELDS, tree_from_infos
from .posteriors import Beta, Gaussian, Posterior
from .presets import PRESETS, resolve_selector
from .prompts import ParentView, Prompts, resolve_prompts
from .rendering import tree_to_text
from .search import Expansion, TreeSearch
from .selection import AgentThenNode, Choice, NodeThenAgent, RootOnly, SearchView, Selector
from .tree import NOTHING, ROOT, Node, SearchTree

__all__ = [
    "INFO_FIELDS",
    "NOTHING",
    "PRESETS",
    "ROOT",
    "AgentThenNode",
    "Beta",
    "Choice",
    "Expansion",
    "Gaussian",
    "Node",
    "NodeThenAgent",
    "ParentView",
    "Posterior",
    "Prompts",
    "RootOnly",
    "SearchTree",
    "SearchView",
    "Selector",
    "TreeSearch",
    "TreeSearchEnv",
    "resolve_prompts",
    "resolve_selector",
    "tree_from_infos",
    "tree_to_text",
]

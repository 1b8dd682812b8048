"""MARS²: several coders grow one shared search tree of programs."""

from .agent_rules import UCB, AgentRule, Thompson, Turns
from .baselines import ChainOnly, RandomParent, RootOnly
from .classic import UCT, BestFirst, TreeOfThoughts
from .consensus import agreement, clusters, resolve_score_fn
from .control import TreeControlEnv
from .control_policies import (
    ControlResult,
    LearnedSelector,
    SelectorPolicy,
    UniformPolicy,
    play_control,
)
from .env import TreeSearchEnv
from .families import FAMILIES, resolve_coders
from .final import ScoreFn, final_answer
from .fresh_or_refine import Chances, FreshOrRefine
from .html import tree_to_html
from .infos import INFO_FIELDS, tree_from_infos
from .masked import MaskInObservation
from .parallel import ParallelTreeSearchEnv
from .posteriors import Beta, Gaussian, Posterior
from .presets import PRESETS, resolve_selector
from .prompts import ParentView, Prompts, resolve_prompts
from .rendering import tree_to_text
from .rows import Layout, observe_tree
from .search import TreeSearch
from .selection import Choice, Expansion, SearchView, Selector
from .statistics import Statistics, Sums
from .stopping import StopReason, StopRules
from .thompson import AgentThenNode, DepthGuide, NodeThenAgent
from .tree import NOTHING, ROOT, Node, SearchTree

__all__ = [
    "FAMILIES",
    "INFO_FIELDS",
    "NOTHING",
    "PRESETS",
    "ROOT",
    "UCB",
    "UCT",
    "AgentRule",
    "AgentThenNode",
    "BestFirst",
    "Beta",
    "ChainOnly",
    "Chances",
    "Choice",
    "ControlResult",
    "DepthGuide",
    "Expansion",
    "FreshOrRefine",
    "Gaussian",
    "Layout",
    "LearnedSelector",
    "MaskInObservation",
    "Node",
    "NodeThenAgent",
    "ParallelTreeSearchEnv",
    "ParentView",
    "Posterior",
    "Prompts",
    "RandomParent",
    "RootOnly",
    "ScoreFn",
    "SearchTree",
    "SearchView",
    "Selector",
    "SelectorPolicy",
    "Statistics",
    "StopReason",
    "StopRules",
    "Sums",
    "Thompson",
    "TreeControlEnv",
    "TreeOfThoughts",
    "TreeSearch",
    "TreeSearchEnv",
    "Turns",
    "UniformPolicy",
    "agreement",
    "clusters",
    "final_answer",
    "observe_tree",
    "play_control",
    "resolve_coders",
    "resolve_prompts",
    "resolve_score_fn",
    "resolve_selector",
    "tree_from_infos",
    "tree_to_html",
    "tree_to_text",
]

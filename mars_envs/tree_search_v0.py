"""The search tree by PettingZoo's house pattern: one module with three factories.

from mars_envs import tree_search_v0

tree_search_v0.env(budget=8)            AEC, in PettingZoo's order checks
tree_search_v0.raw_env(budget=8)        AEC, bare
tree_search_v0.parallel_env(budget=8)   Parallel: all coders at once, round by round
"""

from .tree_search.env import env, raw_env
from .tree_search.parallel import parallel_env

__all__ = ["env", "parallel_env", "raw_env"]

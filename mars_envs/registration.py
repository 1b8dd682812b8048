"""The ids of the environments, in one table, for Gymnasium's registry and for PettingZoo's.

Importing `mars_envs` registers them; neither library discovers plug-ins by itself. Entry points are
strings, so nothing is imported before an environment is made, and specs pickle.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import gymnasium
import pettingzoo


class Row(NamedTuple):
    """One id in one registry."""

    registry: Literal["gymnasium", "aec", "parallel"]
    id: str
    entry_point: str
    deterministic: bool = False
    """Whether episodes repeat exactly; where programs really run, the machine's load has a say."""


TABLE = (
    Row("gymnasium", "mars_envs/TreeSearch-v0", "mars_envs.tree_search.view:TreeSearchView"),
    Row(
        "gymnasium",
        "mars_envs/TreeControl-v0",
        "mars_envs.tree_search.control:TreeControlEnv",
        deterministic=True,
    ),
    Row(
        "gymnasium",
        "mars_envs/ParallelMemory-v0",
        "mars_envs.parallel_memory.views:ParallelMemoryView",
        deterministic=True,
    ),
    Row(
        "gymnasium",
        "mars_envs/RecurrentMemory-v0",
        "mars_envs.parallel_memory.views:RecurrentMemoryView",
        deterministic=True,
    ),
    Row(
        "gymnasium",
        "mars_envs/SinglePass-v0",
        "mars_envs.parallel_memory.views:SinglePassView",
        deterministic=True,
    ),
    Row("aec", "mars_envs/tree_search_v0", "mars_envs.tree_search_v0:env"),
    Row("parallel", "mars_envs/tree_search_v0", "mars_envs.tree_search_v0:parallel_env"),
    Row("aec", "mars_envs/parallel_memory_v0", "mars_envs.parallel_memory_v0:env"),
    Row("parallel", "mars_envs/parallel_memory_v0", "mars_envs.parallel_memory_v0:parallel_env"),
    Row("aec", "mars_envs/recurrent_memory_v0", "mars_envs.recurrent_memory_v0:env"),
    Row("parallel", "mars_envs/recurrent_memory_v0", "mars_envs.recurrent_memory_v0:parallel_env"),
    Row("aec", "mars_envs/single_pass_v0", "mars_envs.single_pass_v0:env"),
    Row("parallel", "mars_envs/single_pass_v0", "mars_envs.single_pass_v0:parallel_env"),
)


def register_envs() -> None:
    """Register every id of `TABLE`; what is registered already stays."""
    for row in TABLE:
        if row.registry == "gymnasium":
            if row.id not in gymnasium.registry:
                gymnasium.register(row.id, row.entry_point, nondeterministic=not row.deterministic)
        else:
            registry = (
                pettingzoo.aec_registry if row.registry == "aec" else pettingzoo.parallel_registry
            )
            # PettingZoo stores `name_v0` as `name-v0`.
            if pettingzoo.EnvSpec(row.id, entry_point=row.entry_point).id not in registry:
                pettingzoo.register(row.registry, row.id, row.entry_point)

"""PI-Mem by PettingZoo's house pattern: one module with three factories.

from mars_envs import parallel_memory_v0

parallel_memory_v0.parallel_env(readers=64)   Parallel: a wave of readers at once
parallel_memory_v0.env(readers=64)            AEC, in PettingZoo's order checks: call by call
parallel_memory_v0.raw_env(readers=64)        AEC, bare
"""

from .parallel_memory.env import env, parallel_env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

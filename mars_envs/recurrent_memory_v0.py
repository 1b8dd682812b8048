"""Recurrent memory by PettingZoo's house pattern: one module with three factories.

from mars_envs import recurrent_memory_v0

recurrent_memory_v0.env(gates=False)            AEC, in PettingZoo's order checks
recurrent_memory_v0.raw_env(gates=False)        AEC, bare
recurrent_memory_v0.parallel_env(gates=False)   Parallel
"""

from .parallel_memory.recurrent_env import env, parallel_env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

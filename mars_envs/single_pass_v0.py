"""Reading at once by PettingZoo's house pattern: one module with three factories.

from mars_envs import single_pass_v0

single_pass_v0.env(method="direct")            AEC, in PettingZoo's order checks
single_pass_v0.raw_env(method="retrieval")     AEC, bare
single_pass_v0.parallel_env(method="direct")   Parallel
"""

from .parallel_memory.single_pass_env import env, parallel_env, raw_env

__all__ = ["env", "parallel_env", "raw_env"]

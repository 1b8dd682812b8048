"""What drives environments: rollouts, credit assignment and trainers.

An environment is known here only by its interface: observations are a `Dict` with a `"prompt"`
string, actions are strings, infos are flat scalars. So these trainers work with any such PettingZoo
or Gymnasium environment.
"""

from .rollout import SCHEMA_VERSION, Generation, Request, Rollout, Sampling, Turn

__distribution__ = "mars-envs"

__all__ = ["SCHEMA_VERSION", "Generation", "Request", "Rollout", "Sampling", "Turn"]

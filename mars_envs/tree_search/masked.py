"""The action mask inside the observation, where RLlib and Tianshou look for it.

    RLlib (its action-masking module)   MaskInObservation(env)
    Tianshou                            MaskInObservation(env, observation="obs", mask="mask")
    PettingZoo's classic games          MaskInObservation(env, observation="observation")

sb3-contrib asks `action_masks()` and CleanRL reads `info["action_mask"]`; neither needs this.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class MaskInObservation(
    gymnasium.ObservationWrapper[dict[str, Any], Any, Any], gymnasium.utils.RecordConstructorArgs
):
    """Turns the observation of an environment with `action_masks()` into a Dict of both.

    Args:
        env: the environment, wrapped or not.
        observation: key of the observation.
        mask: key of the mask, int8 zeros and ones, one for each action.

    Raises:
        ValueError: the actions are not discrete, or the environment has no `action_masks`.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        observation: str = "observations",
        mask: str = "action_mask",
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, observation=observation, mask=mask)
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Discrete) or not self.has_wrapper_attr(
            "action_masks"
        ):
            raise ValueError(
                "MaskInObservation needs discrete actions and a method action_masks(), "
                f"got {env.action_space} of {env.unwrapped}"
            )
        self._keys = (observation, mask)
        actions = (int(env.action_space.n),)
        self.observation_space = spaces.Dict(
            {observation: env.observation_space, mask: spaces.Box(0, 1, actions, np.int8)}
        )

    def observation(self, observation: Any) -> dict[str, Any]:
        """Return the observation with the mask beside it."""
        mask = self.get_wrapper_attr("action_masks")()
        return {self._keys[0]: observation, self._keys[1]: np.asarray(mask, np.int8)}

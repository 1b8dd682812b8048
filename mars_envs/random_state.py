"""The random generator of an environment, put back where a reset fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import gymnasium
import numpy as np


class Draws(Protocol):
    """Whatever draws as Gymnasium's environments do."""

    _np_random: np.random.Generator | None
    """None until it is first used."""


@contextmanager
def draws_or_nothing(env: Draws) -> Iterator[None]:
    """Leave the generator of `env` as it was if anything raises, seeded anew or only drawn from.

    The episode that goes on then, and those after it, are the ones that would have been.
    """
    before = env._np_random
    state = {} if before is None else before.bit_generator.state
    seed = getattr(env, "_np_random_seed", None)
    try:
        yield
    except BaseException:
        env._np_random = before
        if isinstance(env, gymnasium.Env):
            env._np_random_seed = seed
        if before is not None:
            before.bit_generator.state = state
        raise

"""How rewards become advantages, as one frozen record, with the presets that papers imply."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from ..errors import ConfigError

Group = Literal["tree", "agent", "agent_baseline", "ancestors", "episodes"]
Estimator = Literal["standard", "mean", "leave_one_out"]
Returns = Literal["own", "mean", "best"]
Broadcast = Literal["token_mean", "traj_mean", "role_mean"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "group": get_args(Group),
    "estimator": get_args(Estimator),
    "returns": get_args(Returns),
    "broadcast": get_args(Broadcast),
}
_OF_EPISODES = ("bonus_gate", "read_weight", "malformed_penalty")
_AT_MOST_1 = ("lam", "discount", "ddof", "bonus_gate", "read_weight")
_AT_LEAST_0 = ("gamma", "eps", "clip", "overlong_factor", "malformed_penalty", *_AT_MOST_1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditSettings:
    """How rewards become advantages. `trainers.credit` names the steps and their order."""

    gamma: float = 0.3
    """Strength of reward shaping; 0 turns it off."""
    lam: float = 0.5
    """The siblings' share of the shaping baseline; the parent has the rest."""
    returns: Returns = "own"
    """Whether a node is worth its own reward only (MARS²) or what came of it too, by the mean or
    the best of its continuations; see `path_returns`."""
    discount: float = 0.5
    """Of one step down a path; without a meaning for `returns="own"`."""
    group: Group = "tree"
    """What a node is compared with. "tree": all nodes of its tree (MARS²). "agent": the same
    agent's nodes in it. "agent_baseline": those for the mean, but in units of the whole tree's
    spread. "ancestors": see `ancestor_advantages`. "episodes", for environments without a tree: not
    nodes but rollouts of one group id are compared, by their episode's reward, and a rollout's
    advantage goes to all its turns; nothing is shaped."""
    estimator: Estimator = "standard"
    """"standard": difference from the mean over standard deviation (GRPO). "mean": the difference
    alone (Dr. GRPO; "reinforce_baseline" elsewhere). "leave_one_out": the difference from the mean
    of the others (RLOO)."""
    ddof: int = 1
    """1 for the sample standard deviation."""
    eps: float = 1e-6
    """Added to the standard deviation."""
    clip: float = 10.0
    """Bound of the advantages' absolute value."""
    overlong_factor: float = 0.0
    """Size of the soft penalty on nodes close to the token limit; 0 leaves it out."""
    overlong_buffer: int | None = None
    """Tokens before the limit at which it begins; None for a sixteenth of the limit."""
    drop_uniform: bool = False
    """Leave out trees whose raw rewards are all 0 or all 1 (DAPO's dynamic filter). Without
    penalties such trees teach nothing anyway; with them they would teach to be short."""
    bonus_gate: float = 0.0
    """For `group="episodes"`: the share of a group's episodes that must be right for any of them to
    keep its bonus for few turns; see `gated_rewards`. 0 pays it always."""
    read_weight: float = 0.0
    """For `group="episodes"`: the share of the verdict on a turn (whether a reader was right) in
    that turn's advantage, see `step_advantages`; the rest is its episode's. Turns without a verdict
    have their episode's alone. GRU-Mem: 0.1."""
    malformed_penalty: float = 0.0
    """For `group="episodes"`: what a malformed reply loses of its advantage, times the share of
    malformed replies in its episode. Others lose nothing."""
    broadcast: Broadcast = "token_mean"
    """What a token counts in the loss; see `token_weights`. Roles are agents."""
    role_shares: Mapping[str, float] | None = None
    """For `broadcast="role_mean"`: agent, or glob, -> its share; None for equal ones."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} is one of {choices}, got {getattr(self, name)!r}")
        for name in _AT_LEAST_0:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise ConfigError(f"{name} is a number, got {value!r}")
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not self.gamma < math.inf:
            raise ConfigError("gamma must be finite, got inf")
        for name in _AT_MOST_1:
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} must be at most 1, got {getattr(self, name)}")
        _check_shares(self.role_shares)
        if self.group == "episodes" and self.overlong_factor:
            raise ConfigError(
                'an overlong penalty is a node\'s, and group="episodes" compares whole episodes; '
                "set overlong_factor=0"
            )
        for name in _OF_EPISODES:
            if self.group != "episodes" and getattr(self, name):
                raise ConfigError(f'{name} is for whole episodes: choose group="episodes", or 0')


def _check_shares(shares: Any) -> None:
    if shares is None:
        return
    if not isinstance(shares, Mapping):
        raise ConfigError(f"role_shares says who has which share, as a dict, got {shares!r}")
    for role, share in shares.items():
        number = not isinstance(share, bool) and isinstance(share, Real)
        if not (isinstance(role, str) and number and 0 <= share < math.inf):
            raise ConfigError(
                f"role_shares gives a role a number of at least 0, got {share!r} for {role!r}"
            )
    if not any(shares.values()):
        raise ConfigError(f"role_shares needs a share above 0, got {dict(shares)}: nothing counts")


CREDIT_PRESETS: Mapping[str, CreditSettings] = {
    "default": CreditSettings(),
    "marti_cli": CreditSettings(gamma=0.5, lam=0.5, eps=1e-9, overlong_factor=1.0),
    "released": CreditSettings(gamma=0.0, eps=1e-9, overlong_factor=1.0),
    "grpo": CreditSettings(gamma=0.0),
    "dr_grpo": CreditSettings(gamma=0.0, estimator="mean"),
    "rloo": CreditSettings(gamma=0.0, estimator="leave_one_out"),
    "pimem": CreditSettings(group="episodes", estimator="mean"),
}
"""By name. "marti_cli": what the command line of MARS²'s authors asks for. "released": what their
code trains with, since its shaping never runs. "grpo": no shaping, the plain baseline. "pimem":
whole episodes compared by the difference of their rewards, every token counting the same, as PI-Mem
and MemAgent do; a group of equal rewards, of which one episode alone is a case, teaches nothing."""


def credit_settings(preset: str = "default", **changes: Any) -> CreditSettings:
    """Return a preset, with some fields changed.

    Raises:
        ConfigError: no such preset, or a value that cannot work.

    Example:
        >>> credit_settings("marti_cli", lam=0.25).gamma
        0.5
    """
    if preset not in CREDIT_PRESETS:
        raise ConfigError(f"expected a preset of {sorted(CREDIT_PRESETS)}, got {preset!r}")
    return dataclasses.replace(CREDIT_PRESETS[preset], **changes)

"""What a token counts in the loss, where an episode is made of many conversations.

A search tree is made of answers, a memory episode of readings, merges and an answer. Averaging over
tokens lets long conversations, and episodes of many of them, weigh more; the other rules do not.
Advantages are settled before, per episode, so no rule changes who is compared with whom.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from .relations import Bools, Floats, Ints, codes, vector

Rule: TypeAlias = Literal["token_mean", "traj_mean", "role_mean"]


def token_weights(
    tokens: ArrayLike,
    *,
    rule: Rule = "token_mean",
    trajectories: Sequence[Hashable],
    groups: Sequence[Hashable] | None = None,
    roles: Sequence[str] | None = None,
    shares: Mapping[str, float] | None = None,
) -> Floats:
    """Return how much each token of a conversation counts, 1 being the average token.

    * "token_mean": every token the same. PI-Mem's released rule, and DAPO's.
    * "traj_mean": the tokens of a trajectory together count `1 / G` of their group of `G`
      trajectories, and all groups count the same.
    * "role_mean": of a trajectory's part, each role that speaks in it has a fixed share, whatever
      the number of its tokens.

    Args:
        tokens: [N], sampled tokens of each conversation.
        rule: see above.
        trajectories: [N], the episode that each conversation belongs to.
        groups: [N], the group that its episode belongs to; None for one group of all.
        roles: [N], who speaks; needed for "role_mean".
        shares: each role's share, in any unit; None for equal ones.

    Returns:
        [N]. `weights * tokens` sums to the number of tokens, so that a mean over tokens of
        `weight * loss` is the weighted loss.

    Raises:
        ValueError: no such rule, lengths differ, negative or unknown numbers of tokens, "role_mean"
            without roles, a role without a share, or shares that are negative or all 0.
    """
    if rule not in get_args(Rule):
        raise ValueError(f"rule is one of {get_args(Rule)}, got {rule!r}")
    lengths = vector(tokens, "tokens")
    if not (lengths >= 0).all():
        raise ValueError(f"expected numbers of tokens of at least 0, got {lengths.min()}")
    count = len(lengths)
    group = codes(groups, count, "groups")
    episode = codes(_pairs(group, codes(trajectories, count, "trajectories")), count)
    speaks = lengths > 0
    if rule == "token_mean" or not speaks.any():
        return np.ones_like(lengths)
    part, shares_of_parts = episode, np.ones_like(lengths)
    if rule == "role_mean":
        if roles is None:
            raise ValueError('rule="role_mean" needs `roles`: who speaks in each row')
        part = codes(_pairs(episode, codes(roles, count, "roles")), count)
        own = _own_shares(roles, shares)
        spoken = _firsts(part, speaks)
        totals = _sums(episode[spoken], own[spoken], count)
        shares_of_parts = _ratio(own, totals[episode])
    episodes = np.bincount(group[_firsts(episode, speaks)], minlength=count)
    share = shares_of_parts / (len(_firsts(group, speaks)) * np.maximum(episodes[group], 1))
    part_tokens = _sums(part, lengths, count)[part]
    return _ratio(share * lengths.sum(), part_tokens) * speaks


def _own_shares(roles: Sequence[str], shares: Mapping[str, float] | None) -> Floats:
    if shares is None:
        return np.ones(len(roles))
    unknown = sorted(set(roles) - shares.keys())
    if unknown:
        raise ValueError(f"expected a share of every role, got none of {unknown}")
    given = vector(list(shares.values()), "shares")
    if not ((given >= 0).all() and given.any()):
        raise ValueError(f"expected shares of at least 0, not all of them 0, got {dict(shares)}")
    return np.array([float(shares[role]) for role in roles])


def _pairs(first: Ints, second: Ints) -> list[tuple[int, int]]:
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _firsts(keys: Ints, chosen: Bools) -> Ints:
    """Return where each key of the chosen rows comes first."""
    rows = np.flatnonzero(chosen)
    firsts: Ints = rows[np.unique(keys[rows], return_index=True)[1]]
    return firsts


def _sums(keys: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(keys, weights=values, minlength=count).astype(np.float64)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)

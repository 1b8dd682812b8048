"""Who descends from whom: parents as an array, checked once, and walked level by level."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

ROOT_PARENT = -1
"""The parent of a fresh answer: the root, which is no node and has no reward."""
MISSING_PARENT = -2
"""The parent of a node whose parent is not among the nodes: it was lost. Then its siblings are not
known either, so the node is not shaped; it still counts in its tree's or agent's group."""


def vector(values: ArrayLike, name: str, count: int | None = None) -> Floats:
    """Return `values` as float64 of one dimension, of length `count` if that is given.

    Raises:
        ValueError: another shape, or an infinite value.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise ValueError(f"expected {name} of one dimension, got shape {column.shape}")
    if count is not None and len(column) != count:
        raise ValueError(f"expected {count} {name}, one per node, got {len(column)}")
    if np.isinf(column).any():
        raise ValueError(f"expected finite {name}, NaN where one is not known; got infinite ones")
    return column


def codes(keys: Sequence[Hashable] | None, count: int, name: str = "keys") -> Ints:
    """Return [count], a number for each key, from 0 in order of appearance; all 0 without keys.

    Raises:
        ValueError: not `count` keys.
    """
    if keys is None:
        return np.zeros(count, dtype=np.int64)
    if len(keys) != count:
        raise ValueError(f"expected {count} {name}, one per value, got {len(keys)}")
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def checked_parents(parents: ArrayLike, count: int) -> Ints:
    """Return the parents of `count` nodes as int64 if they make a forest.

    Args:
        parents: [N], each node's parent as an index, `ROOT_PARENT` or `MISSING_PARENT`.
        count: N.

    Raises:
        ValueError: lengths differ, a parent does not exist, or nodes are their own ancestors.
    """
    given = np.asarray(parents)
    up = given.astype(np.int64)
    if not np.array_equal(up, given):
        raise ValueError("expected parents that are whole numbers, got fractions")
    if up.shape != (count,):
        raise ValueError(f"expected {count} parents, one per reward, got shape {up.shape}")
    if count and (up.min() < MISSING_PARENT or up.max() >= count):
        raise ValueError(
            f"expected parents from {ROOT_PARENT} (the root) to {count - 1}, or {MISSING_PARENT} "
            f"where the parent was lost; got {up.min()} to {up.max()}"
        )
    ancestors = up
    for _ in range(count):
        if (ancestors < 0).all():
            return up
        ancestors = _above(up, ancestors)
    if (ancestors >= 0).any():
        raise ValueError("the parents make a circle: some node is its own ancestor")
    return up


def generations(up: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield (nodes, their ancestors) for parents, then grandparents, ..., as long as there are any.

    Args:
        up: [N], from `checked_parents`.
    """
    ancestors = up
    while (ancestors >= 0).any():
        nodes = np.flatnonzero(ancestors >= 0)
        yield nodes, ancestors[nodes]
        ancestors = _above(up, ancestors)


def depths(up: Ints) -> Ints:
    """Return [N], how many known ancestors each node has; 0 for a child of the root."""
    depth = np.zeros(len(up), dtype=np.int64)
    for nodes, _ in generations(up):
        depth[nodes] += 1
    return depth


def _above(up: Ints, ancestors: Ints) -> Ints:
    return np.where(ancestors >= 0, up[np.maximum(ancestors, 0)], ROOT_PARENT)

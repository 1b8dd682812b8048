"""Is one method better than another on the same tasks? Paired tests, and many at once.

All tests are exact where that is affordable and two-sided. Tasks are the units, as in `statistics`:
of a task that was played with several seeds give the mean. SciPy is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .statistics import Estimate, paired_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """How two methods' right and wrong answers to the same tasks fall together."""

    gained: int
    """Tasks that the second method alone solves."""
    lost: int
    """Tasks that the first method alone solves."""
    same: int
    """Tasks that both solve, or neither."""
    p_value: float

    def __str__(self) -> str:
        n = self.gained + self.lost + self.same
        return f"+{self.gained} −{self.lost} of {n} tasks, {format_p(self.p_value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One method against the baseline."""

    difference: Estimate
    """Mean of method − baseline over tasks."""
    test: Literal["mcnemar", "sign_flip"]
    p_value: float
    adjusted: float
    """The p-value after Holm's correction for all methods compared at once."""

    def __str__(self) -> str:
        difference = self.difference
        sign = "+" if difference.mean > 0 else ""
        return f"{sign}{difference}, {format_p(self.adjusted)} ({self.test}, Holm)"


def mcnemar(after: ArrayLike, before: ArrayLike) -> McNemar:
    """Test whether two methods solve the same tasks equally often (McNemar, exact).

    Only tasks that exactly one of them solves say anything: without a difference each of those is
    as likely to be gained as lost, so their number follows Binomial(gained + lost, 1/2).

    Args:
        after: [n], 0 or 1 for each task.
        before: [n], of the same tasks in the same order.

    Raises:
        ValueError: values other than 0 and 1 (for means of several seeds there is
            `sign_flip_test`), or different lengths.
    """
    from scipy import stats

    new, old = _paired(after, before)
    if not _binary(new, old):
        raise ValueError(
            "McNemar's test needs one outcome, 0 or 1, per task; use sign_flip_test for means of "
            "several"
        )
    gained, lost = int((new > old).sum()), int((new < old).sum())
    changed = gained + lost
    p_value = float(stats.binomtest(gained, changed).pvalue) if changed else 1.0
    return McNemar(gained=gained, lost=lost, same=len(new) - changed, p_value=p_value)


def sign_flip_test(
    after: ArrayLike, before: ArrayLike, *, resamples: int = 9999, seed: int = 0
) -> float:
    """Return the p-value of a mean paired difference, by flipping the signs of differences.

    Without an effect, each task's difference is as likely to have the other sign. All patterns of
    signs are tried where there are at most `resamples` of them, else that many random ones.

    Args:
        after: [n], one value per task.
        before: [n], of the same tasks in the same order.
        resamples: random patterns; no p-value below `2 / (resamples + 1)` can come out of them.
        seed: of the random patterns.

    Raises:
        ValueError: different lengths.
    """
    from scipy import stats

    new, old = _paired(after, before)
    change = new - old
    change = change[change != 0]  # a difference of 0 stays 0, whatever its sign
    if len(change) < 2:
        return 1.0  # one difference is as extreme as its own mirror image
    result = stats.permutation_test(
        (change,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for being many, so that any false alarm stays as rare as each claims (Holm).

    Args:
        p_values: [m], of the comparisons made, all of them.

    Returns:
        [m], in the same order; compare each with the level of the whole family.

    Raises:
        ValueError: not one dimension, or values outside [0, 1].
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"expected p-values in one dimension, from 0 to 1, got {values.tolist()}")
    order = np.argsort(values, kind="stable")
    steps = np.arange(len(values), 0, -1) * values[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def compare(
    methods: Mapping[str, ArrayLike], baseline: ArrayLike, *, resamples: int = 9999, seed: int = 0
) -> dict[str, Comparison]:
    """Compare several methods with one baseline, all on the same tasks.

    Args:
        methods: name -> [n], one value per task: 0 or 1, or the mean of several seeds.
        baseline: [n], of the same tasks in the same order.
        resamples: of the bootstrap and of random sign flips.
        seed: of both.

    Returns:
        Each method's difference with its interval (paired bootstrap over tasks) and p-value:
        McNemar's where all values are 0 or 1, else by sign flips.

    Raises:
        ValueError: different lengths.
    """
    tests: dict[str, Literal["mcnemar", "sign_flip"]] = {}
    p_values: list[float] = []
    for name, values in methods.items():
        if _binary(*_paired(values, baseline)):
            tests[name] = "mcnemar"
            p_values.append(mcnemar(values, baseline).p_value)
        else:
            tests[name] = "sign_flip"
            p_values.append(sign_flip_test(values, baseline, resamples=resamples, seed=seed))
    return {
        name: Comparison(
            difference=paired_difference(methods[name], baseline, resamples=resamples, seed=seed),
            test=tests[name],
            p_value=p_value,
            adjusted=float(adjusted),
        )
        for name, p_value, adjusted in zip(tests, p_values, holm(p_values), strict=True)
    }


def format_p(p_value: float) -> str:
    """Return a p-value as text, with as many digits as it deserves.

    Example:
        >>> format_p(0.0312), format_p(0.00001)
        ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def _binary(*columns: NDArray[np.float64]) -> bool:
    return all(bool(np.isin(column, (0.0, 1.0)).all()) for column in columns)


def _paired(after: ArrayLike, before: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    new, old = np.asarray(after, dtype=np.float64), np.asarray(before, dtype=np.float64)
    if new.shape != old.shape or new.ndim != 1:
        raise ValueError(
            f"expected one value per task on both sides, got shapes {new.shape} and {old.shape}"
        )
    if np.isnan(new).any() or np.isnan(old).any():
        raise ValueError("expected a value of every task; leave out tasks that one side lacks")
    return new, old

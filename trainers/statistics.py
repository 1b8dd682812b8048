"""Figures with their uncertainty, on plain arrays.

Tasks, not samples, are what a benchmark draws at random, so intervals resample *tasks*: several
samples of one task are no independent evidence. SciPy is imported when it is needed only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_RESAMPLES = 4999


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, its interval and how many independent units (tasks) it rests on.

    Without any unit the figure is NaN; with too few for an interval its bounds and its standard
    error are.
    """

    mean: float
    low: float
    high: float
    n: int
    se: float = math.nan
    """Standard error over tasks. Where all values are equal it is 0 and says little: then the
    bounds are the better guide."""

    def __str__(self) -> str:
        if not self.n:
            return "– (n=0)"
        if math.isnan(self.low):
            return f"{self.mean:.3f} (n={self.n})"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}] (n={self.n})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsEstimate:
    """A figure of tasks that were measured several times."""

    estimate: Estimate
    """Over tasks: what to expect of other tasks of this kind."""
    seeds_se: float
    """Standard error from the seeds alone: what to expect of other seeds on these very tasks. NaN
    unless every task was measured at least twice."""
    runs: int
    """Measurements in all."""

    def __str__(self) -> str:
        seeds = "" if math.isnan(self.seeds_se) else f", ±{self.seeds_se:.3f} by seed"
        return f"{self.estimate}{seeds}, {self.runs} runs"


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> NDArray[np.float64]:
    """Estimate without bias the chance that at least one of `k` samples is right.

    `1 - C(n - c, k) / C(n, k)`, computed as a product (Chen et al., arXiv 2107.03374).

    Args:
        n: samples drawn, of one task or of each of several.
        c: right ones among them.
        k: at most every `n`.

    Returns:
        The estimate of each task, in the shape of `n` and `c` broadcast.

    Raises:
        ValueError: not 0 <= c <= n, or k outside 1..n.
    """
    drawn, right = np.broadcast_arrays(np.asarray(n), np.asarray(c))
    if (right < 0).any() or (right > drawn).any():
        raise ValueError(f"expected 0 <= c <= n, got n={drawn.tolist()}, c={right.tolist()}")
    if k < 1 or (drawn < k).any():
        raise ValueError(
            f"pass@{k} needs {max(k, 1)} samples or more of each task, got n={drawn.tolist()}"
        )
    # A factor below 0 would stand for C(wrong, k) with wrong < k, which is 0.
    steps = np.arange(k)
    wrong = (drawn - right)[..., None] - steps
    factors = np.maximum(wrong, 0) / (drawn[..., None] - steps)
    result: NDArray[np.float64] = 1.0 - factors.prod(axis=-1)
    return result


def pass_at_k_variance(n: ArrayLike, c: ArrayLike, k: int) -> NDArray[np.float64]:
    """Estimate without bias the variance of each task's `pass_at_k`, its samples being drawn anew.

    With `q` the chance of a wrong sample, `C(n - c, k) / C(n, k)` estimates `q^k` and
    `C(n - c, 2k) / C(n, 2k)` estimates `q^2k`, so the square of the first less the second estimates
    the variance. It is the noise of sampling a given task; how much tasks differ is not in it.

    Args:
        n: see `pass_at_k`.
        c: see `pass_at_k`.
        k: see `pass_at_k`.

    Returns:
        In the shape of `n` and `c` broadcast, at least 0; NaN where `n < 2k`, since `q^2k` cannot
        be estimated without bias from fewer than 2k samples.

    Raises:
        ValueError: see `pass_at_k`.
    """
    failed = 1.0 - pass_at_k(n, c, k)
    drawn, right = np.broadcast_arrays(np.asarray(n), np.asarray(c))
    enough = drawn >= 2 * k
    twice = 1.0 - pass_at_k(np.where(enough, drawn, 2 * k), np.where(enough, right, 0), 2 * k)
    return np.where(enough, np.maximum(failed**2 - twice, 0.0), np.nan)


def mean_estimate(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = _RESAMPLES, seed: int = 0
) -> Estimate:
    """Estimate the mean of one value per task, with a bootstrap interval.

    The interval is BCa. Where all values are equal there is nothing to resample: for zeros or ones
    the exact (Clopper-Pearson) interval of a proportion takes its place, since ten successes out of
    ten do not prove certainty; for other values the interval is a point; if they have limits, see
    `beyond_equal_values`.

    Args:
        values: [n], one per task.
        confidence: of the interval.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """
    ones = np.ones(np.shape(values))
    return ratio_estimate(values, ones, confidence=confidence, resamples=resamples, seed=seed)


def ratio_estimate(
    sums: ArrayLike,
    counts: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Estimate a rate that is pooled over tasks of different size: `sum(sums) / sum(counts)`.

    Args:
        sums: [n], each task's successes.
        counts: [n], each task's tries. Tasks without tries are left out.
        confidence: see `mean_estimate`.
        resamples: see `mean_estimate`.
        seed: see `mean_estimate`.
    """
    top, bottom = _vectors(sums, counts)
    top, bottom = top[bottom > 0], bottom[bottom > 0]
    count = len(top)
    if not count:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(top.sum() / bottom.sum())
    rates = top / bottom
    se = _ratio_error(top, bottom)
    if np.ptp(rates) == 0:
        return Estimate(mean, *_degenerate_interval(rates, confidence), count, se)

    def ratio(a: Any, b: Any, axis: int = -1) -> Any:
        return a.sum(axis=axis) / b.sum(axis=axis)

    bounds = _bootstrap((top, bottom), ratio, confidence, resamples, seed)
    return Estimate(mean, *bounds, count, se)


def beyond_equal_values(
    estimate: Estimate, least: float, most: float, *, confidence: float = 0.95
) -> Estimate:
    """Return an estimate whose interval is no point, for values that have limits.

    That n values are equal does not prove that all are. Of tasks with another value there may be a
    share up to q = 1 - (a / 2)^(1 / n), a being 1 - confidence: so many stay unseen in n tasks with
    a chance of a / 2. Their values are anything between the limits, so the mean is between
    (1 - q) value + q least and (1 - q) value + q most. For a proportion of 0 or 1 this is the exact
    (Clopper-Pearson) interval; of a pooled rate it takes tasks to be of one size.

    Args:
        estimate: of such values; where its interval is no point, or it has none, it stays.
        least: no value can be lower,
        most: nor higher.
        confidence: of the interval.
    """
    if estimate.low != estimate.high:  # NaN, too
        return estimate
    unseen = 1 - ((1 - confidence) / 2) ** (1 / estimate.n)
    seen = (1 - unseen) * estimate.mean
    return replace(estimate, low=seen + unseen * least, high=seen + unseen * most)


def seeds_estimate(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = _RESAMPLES, seed: int = 0
) -> SeedsEstimate:
    """Estimate a mean over tasks that were each measured with several seeds.

    Tasks are the units: every task counts once, with the mean of its seeds, so the interval does
    not shrink by playing the same tasks again.

    Args:
        values: [tasks, seeds]; NaN where a task was not measured with a seed. A task that was not
            measured at all is left out.
        confidence: see `mean_estimate`.
        resamples: see `mean_estimate`.
        seed: of the bootstrap.

    Raises:
        ValueError: `values` has not two dimensions.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"expected values of [tasks, seeds], got shape {matrix.shape}")
    counts = (~np.isnan(matrix)).sum(axis=1)
    measured, counts = matrix[counts > 0], counts[counts > 0]
    estimate = mean_estimate(
        np.nansum(measured, axis=1) / counts, confidence=confidence, resamples=resamples, seed=seed
    )
    if not len(counts) or (counts < 2).any():
        return SeedsEstimate(estimate=estimate, seeds_se=math.nan, runs=int(counts.sum()))
    of_means = np.nanvar(measured, axis=1, ddof=1) / counts
    seeds_se = math.sqrt(of_means.sum()) / len(counts)
    return SeedsEstimate(estimate=estimate, seeds_se=seeds_se, runs=int(counts.sum()))


def paired_difference(
    after: ArrayLike,
    before: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean difference `after - before` between two measurements of the same tasks.

    Args:
        after: [n], one value per task.
        before: [n], of the same tasks in the same order.
        confidence: see `mean_estimate`.
        resamples: see `mean_estimate`.
        seed: see `mean_estimate`.
    """
    new, old = _vectors(after, before)
    change = new - old
    if len(change) and np.ptp(change) == 0:
        # A proportion's interval says nothing of differences: no spread, no interval.
        bounds = (float(change[0]),) * 2 if len(change) > 1 else (math.nan, math.nan)
        se = _ratio_error(change, np.ones(len(change)))
        return Estimate(float(change[0]), *bounds, len(change), se)
    return mean_estimate(change, confidence=confidence, resamples=resamples, seed=seed)


def ratio_difference(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    confidence: float = 0.95,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Estimate the difference of two pooled rates (see `ratio_estimate`) on the same tasks.

    Args:
        first: its `(sums, counts)`, [n] each.
        second: what is subtracted, of the same tasks in the same order.
        confidence: see `mean_estimate`.
        resamples: see `mean_estimate`.
        seed: see `mean_estimate`.

    Returns:
        `n` counts the tasks that have tries of either kind. A resample that holds no tries of one
        kind says nothing and is left out.
    """
    top_1, bottom_1 = _vectors(*first)
    top_2, bottom_2 = _vectors(*second)
    top_1, top_2 = _vectors(top_1, top_2)
    used = (bottom_1 > 0) | (bottom_2 > 0)
    data = tuple(column[used] for column in (top_1, bottom_1, top_2, bottom_2))
    count = int(used.sum())
    if not count or not data[1].sum() or not data[3].sum():
        return Estimate(math.nan, math.nan, math.nan, count)

    def difference(a: Any, b: Any, c: Any, d: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return a.sum(-1) / b.sum(-1) - c.sum(-1) / d.sum(-1)

    mean = float(difference(*data))
    rng = np.random.default_rng(seed)
    picks = rng.integers(count, size=(resamples, count))
    draws = difference(*(column[picks] for column in data))
    draws = draws[np.isfinite(draws)]
    if count < 2 or len(draws) < resamples / 2:
        return Estimate(mean, math.nan, math.nan, count)
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Estimate(mean, float(low), float(high), count, float(draws.std(ddof=1)))


def _bootstrap(
    data: tuple[NDArray[np.float64], ...],
    statistic: Callable[..., Any],
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float]:
    from scipy import stats

    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            # BCa gives NaN, with this warning, where its correction cannot be computed.
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            result = stats.bootstrap(
                data,
                statistic,
                paired=True,
                vectorized=True,
                confidence_level=confidence,
                n_resamples=resamples,
                method=method,
                rng=np.random.default_rng(seed),
            )
        low, high = result.confidence_interval
        if np.isfinite(low) and np.isfinite(high):
            break
    return float(low), float(high)


def _degenerate_interval(rates: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    from scipy import stats

    value = float(rates[0])
    if value not in (0.0, 1.0):
        return (value, value) if len(rates) > 1 else (math.nan, math.nan)
    interval = stats.binomtest(int(value) * len(rates), len(rates)).proportion_ci(confidence)
    return float(interval.low), float(interval.high)


def _ratio_error(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> float:
    """Return the standard error of `sum(top) / sum(bottom)`, to first order.

    With equal `bottom` it is the standard error of a mean, exactly.
    """
    count = len(top)
    if count < 2:
        return math.nan
    residuals = top - top.sum() / bottom.sum() * bottom
    spread = float(np.square(residuals).sum()) * count / (count - 1)
    return math.sqrt(spread) / float(bottom.sum())


def _vectors(*columns: Sequence[Any] | ArrayLike) -> tuple[NDArray[np.float64], ...]:
    vectors = tuple(np.asarray(column, dtype=np.float64) for column in columns)
    if any(vector.shape != vectors[0].shape or vector.ndim != 1 for vector in vectors):
        raise ValueError(
            f"expected columns of one length, got shapes {[vector.shape for vector in vectors]}"
        )
    return vectors

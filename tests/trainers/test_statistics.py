"""Statistics: the published estimator, honest intervals, and degenerate data."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from trainers.statistics import (
    Estimate,
    beyond_equal_values,
    mean_estimate,
    paired_difference,
    pass_at_k,
    pass_at_k_variance,
    ratio_difference,
    ratio_estimate,
    seeds_estimate,
)


@pytest.mark.data
def test_pass_at_k_agrees_with_the_reference(data_dir: Path) -> None:
    table = json.loads((data_dir / "numeric" / "metrics.json").read_text())["pass_at_k"]
    assert len(table["rows"]) == 25
    for row in table["rows"]:
        value = pass_at_k(row["n"], row["c"], row["k"])
        assert float(value) == pytest.approx(row["exact_float"], abs=1e-12), row
    batch = table["batch"]
    values = pass_at_k(batch["num_samples"], batch["num_correct"], batch["k"])
    np.testing.assert_allclose(values, batch["expected"])
    assert values.mean() == pytest.approx(batch["mean"])


def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample() -> None:
    for right in range(7):
        exact = 1 - math.comb(6 - right, 3) / math.comb(6, 3)
        assert float(pass_at_k(6, right, 3)) == pytest.approx(exact)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (5, 6, 1, "expected 0 <= c <= n, got n=5, c=6"),
        (5, -1, 1, "expected 0 <= c"),
        (5, 2, 6, "pass@6 needs 6 samples or more of each task, got n=5"),
        (5, 2, 0, "pass@0 needs"),
    ],
)
def test_impossible_counts_are_refused(n: int, c: int, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (6, 1), (6, 2), (6, 3), (11, 4)])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_noise_of_a_tasks_pass_at_k_is_estimated_without_bias(n: int, k: int, p: float) -> None:
    # Over all outcomes of n tries: the mean of the estimate is the variance of pass@k.
    counts = np.arange(n + 1)
    chances = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in counts])
    values = pass_at_k(n, counts, k)
    variance = (chances * values**2).sum() - (chances * values).sum() ** 2
    assert (chances * pass_at_k_variance(n, counts, k)).sum() == pytest.approx(variance, abs=1e-12)


def test_too_few_samples_say_nothing_of_the_noise() -> None:
    variance = pass_at_k_variance([5, 6], [2, 2], 3)
    assert math.isnan(variance[0])
    assert variance[1] > 0
    # k = 1 is a proportion: p (1 - p) / (n - 1).
    assert float(pass_at_k_variance(10, 3, 1)) == pytest.approx(0.3 * 0.7 / 9)


def test_the_standard_error_is_that_of_a_mean() -> None:
    values = np.random.default_rng(2).random(30)
    assert mean_estimate(values).se == pytest.approx(stats.sem(values))
    assert math.isnan(mean_estimate([0.5]).se)
    before = np.random.default_rng(3).random(30)
    assert paired_difference(values, before).se == pytest.approx(stats.sem(values - before))


def test_the_standard_error_of_a_pooled_rate_is_that_of_redrawn_tasks() -> None:
    rng = np.random.default_rng(0)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        tries = rng.integers(1, 20, 300)
        return rng.binomial(tries, rng.beta(2, 3, 300)).astype(float), tries.astype(float)

    rates = [top.sum() / bottom.sum() for top, bottom in (draw() for _ in range(2000))]
    claimed = [ratio_estimate(*draw(), resamples=9).se for _ in range(50)]
    # 2,000 draws know a standard deviation to 1.6 %: 4 standard errors are 6.4 %.
    assert np.mean(claimed) == pytest.approx(np.std(rates), rel=0.064)


def test_seeds_of_one_task_are_averaged_before_anything_else() -> None:
    values = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    result = seeds_estimate(values)
    assert result.estimate == mean_estimate(values.mean(axis=1))
    assert result.runs == 9
    own = values.var(axis=1, ddof=1) / 3
    assert result.seeds_se == pytest.approx(math.sqrt(own.sum()) / 3)
    assert str(result).endswith("(n=3), ±0.157 by seed, 9 runs")


def test_missing_runs_are_left_out_and_unmeasured_tasks_do_not_count() -> None:
    result = seeds_estimate([[1.0, math.nan], [0.0, 1.0], [math.nan, math.nan]])
    assert result.estimate == mean_estimate([1.0, 0.5])
    assert result.runs == 3
    assert math.isnan(result.seeds_se)  # the first task has one run
    with pytest.raises(ValueError, match="expected values of"):
        seeds_estimate([1.0, 2.0])


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(200):
        estimate = mean_estimate(rng.binomial(1, 0.3, 60), resamples=499, seed=seed)
        hits += estimate.low <= 0.3 <= estimate.high
    assert 0.9 <= hits / 200 <= 0.99


def test_an_estimate_is_reproducible_and_ordered() -> None:
    values = np.random.default_rng(1).random(40)
    estimate = mean_estimate(values)
    assert estimate == mean_estimate(values)
    assert estimate.low < estimate.mean == pytest.approx(values.mean())
    assert estimate.mean < estimate.high
    assert estimate.n == 40


def test_ten_out_of_ten_do_not_prove_certainty() -> None:
    # Clopper-Pearson: the chance of ten successes is 2.5 % at the lower bound.
    estimate = mean_estimate(np.ones(10))
    assert (estimate.mean, estimate.high) == (1.0, 1.0)
    assert estimate.low**10 == pytest.approx(0.025)
    assert mean_estimate(np.zeros(10)).high == pytest.approx(1 - estimate.low)


def test_equal_values_that_are_no_proportion_give_a_point() -> None:
    assert mean_estimate([0.25] * 5) == Estimate(0.25, 0.25, 0.25, 5, 0.0)


def test_one_task_alone_has_no_interval() -> None:
    estimate = mean_estimate([0.25])
    assert (estimate.mean, estimate.n) == (0.25, 1)
    assert math.isnan(estimate.low)
    assert str(estimate) == "0.250 (n=1)"


def test_no_task_at_all_has_no_mean() -> None:
    estimate = mean_estimate([])
    assert math.isnan(estimate.mean)
    assert str(estimate) == "– (n=0)"


def test_two_different_values_are_enough() -> None:
    estimate = mean_estimate([0.0, 1.0])
    assert 0.0 <= estimate.low <= 0.5 <= estimate.high <= 1.0


def test_a_pooled_rate_weighs_tasks_by_their_tries() -> None:
    estimate = ratio_estimate([3, 0, 0], [4, 1, 0])
    assert estimate.mean == pytest.approx(3 / 5)
    assert estimate.n == 2  # the task without tries says nothing


def test_samples_of_one_task_are_not_independent() -> None:
    # Twenty tasks of 50 equal samples each are 20 observations, not 1000.
    sums = np.array([50.0, 0.0] * 10)
    clustered = ratio_estimate(sums, np.full(20, 50.0))
    pooled = mean_estimate(np.repeat([1.0, 0.0] * 10, 50))
    assert clustered.high - clustered.low > 4 * (pooled.high - pooled.low)


def test_a_paired_difference_is_sharper_than_two_intervals() -> None:
    rng = np.random.default_rng(0)
    before = rng.random(50)
    after = before + 0.1 + 0.02 * rng.standard_normal(50)
    gain = paired_difference(after, before)
    assert gain.low > 0.09
    assert gain.high < 0.11
    assert mean_estimate(after).low < mean_estimate(before).high


def test_a_difference_without_spread_is_a_point_and_not_a_proportion() -> None:
    assert paired_difference([1.0, 1.0], [0.0, 0.0]) == Estimate(1.0, 1.0, 1.0, 2, 0.0)
    assert paired_difference([0.5] * 3, [0.5] * 3) == Estimate(0.0, 0.0, 0.0, 3, 0.0)
    assert math.isnan(paired_difference([1.0], [0.0]).low)
    assert paired_difference([], []).n == 0


@pytest.mark.parametrize("n", [2, 6, 30, 60])
def test_what_may_be_unseen_behind_equal_values_widens_the_interval(n: int) -> None:
    # SciPy's exact interval of 0 out of n: the share of others that stay unseen.
    share = stats.binomtest(0, n).proportion_ci().high
    same = beyond_equal_values(paired_difference([0.5] * n, [0.5] * n), -1, 1)
    assert (same.mean, same.n) == (0.0, n)
    assert (same.low, same.high) == pytest.approx((-share, share))
    all_gained = beyond_equal_values(paired_difference([1.0] * n, [0.0] * n), -1, 1)
    assert (all_gained.low, all_gained.high) == pytest.approx((1 - 2 * share, 1))
    third = beyond_equal_values(ratio_estimate([1] * n, [3] * n), 0, 1)
    assert (third.low, third.high) == pytest.approx(((1 - share) / 3, (1 - share) / 3 + share))
    for value in (0.0, 1.0):
        exact = mean_estimate([value] * n)
        assert beyond_equal_values(exact, 0, 1) == exact


def test_unequal_values_keep_their_interval_and_one_alone_has_none() -> None:
    unequal = paired_difference([1.0, 0.0, 1.0], [0.0, 0.0, 0.0])
    assert beyond_equal_values(unequal, -1, 1) == unequal
    assert math.isnan(beyond_equal_values(paired_difference([1.0], [0.0]), -1, 1).low)
    assert beyond_equal_values(paired_difference([], []), -1, 1).n == 0


def test_columns_must_have_one_length() -> None:
    with pytest.raises(ValueError, match="expected columns of one length"):
        paired_difference([1.0, 2.0], [1.0])


def test_a_difference_of_rates_resamples_tasks_jointly() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(80)  # what the tasks have in common
    first = (rng.binomial(10, 0.3 + 0.4 * hard), np.full(80, 10))
    second = (rng.binomial(10, 0.4 * hard), np.full(80, 10))
    gain = ratio_difference(first, second)
    assert gain.low < 0.3 < gain.high
    assert gain.high - gain.low < 0.12
    assert gain.n == 80


def test_a_difference_of_rates_needs_tries_of_both_kinds() -> None:
    nothing = ratio_difference(([0.0], [0.0]), ([1.0], [2.0]))
    assert math.isnan(nothing.mean)
    rare = ratio_difference(([1.0, 0.0], [1.0, 0.0]), ([0.0, 1.0], [0.0, 4.0]))
    assert rare.mean == pytest.approx(0.75)
    assert rare.n == 2

"""Paired tests: against enumeration, SciPy and textbook numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from trainers.comparisons import compare, format_p, holm, mcnemar, sign_flip_test
from trainers.statistics import paired_difference


def outcomes(gained: int, lost: int, both: int = 0, neither: int = 0) -> tuple[list, list]:
    after = [1] * gained + [0] * lost + [1] * both + [0] * neither
    before = [0] * gained + [1] * lost + [1] * both + [0] * neither
    return after, before


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    # 5 to 0 and 9 to 4: what a net gain of five tasks is worth (worked out by hand).
    [(5, 0, 0.0625), (9, 4, 0.2668), (0, 0, 1.0), (1, 0, 1.0), (10, 0, 2 / 2**10), (3, 3, 1.0)],
)
def test_only_tasks_that_changed_sides_count(gained: int, lost: int, p_value: float) -> None:
    few = mcnemar(*outcomes(gained, lost))
    assert few.p_value == pytest.approx(p_value, abs=1e-4)
    many = mcnemar(*outcomes(gained, lost, both=70, neither=30))
    assert many.p_value == few.p_value
    assert (many.gained, many.lost, many.same) == (gained, lost, 100)


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_sums_the_outcomes_that_are_no_likelier(gained: int, lost: int) -> None:
    n = gained + lost
    chances = [math.comb(n, k) / 2**n for k in range(n + 1)]
    expected = sum(c for c in chances if c <= chances[gained] * (1 + 1e-9))
    assert mcnemar(*outcomes(gained, lost)).p_value == pytest.approx(expected)


def test_a_mcnemar_result_reads_as_counts_and_p() -> None:
    assert str(mcnemar(*outcomes(9, 4, 40, 11))) == "+9 −4 of 64 tasks, p = 0.267"


def test_means_of_seeds_are_no_binary_outcomes() -> None:
    with pytest.raises(ValueError, match="use sign_flip_test"):
        mcnemar([0.5, 1.0], [0.0, 1.0])


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_flipping_signs_agrees_with_trying_every_pattern(changes: list[int]) -> None:
    total = abs(sum(changes))
    patterns = list(itertools.product((1, -1), repeat=len(changes)))
    extreme = sum(
        abs(sum(sign * change for sign, change in zip(pattern, changes, strict=True))) >= total
        for pattern in patterns
    )
    p_value = sign_flip_test(np.array(changes) / 4, np.zeros(len(changes)))
    assert p_value == pytest.approx(extreme / len(patterns))


def test_many_tasks_are_flipped_at_random_and_agree_with_the_t_test() -> None:
    rng = np.random.default_rng(0)
    before = rng.random(80)
    after = before + 0.05 + 0.2 * rng.standard_normal(80)
    p_value = sign_flip_test(after, before)
    assert p_value == sign_flip_test(after, before)
    reference = float(stats.ttest_rel(after, before).pvalue)
    # 9,999 patterns know p = 0.03 to 0.0017; the two tests differ by less than that themselves.
    assert p_value == pytest.approx(reference, abs=0.01)


def test_without_an_effect_alarms_are_as_rare_as_claimed() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        before, after = rng.integers(0, 4, (2, 25)) / 3
        alarms += sign_flip_test(after, before, resamples=199) <= 0.05
    # Binomial(200, 0.05): a mean of 10 and a standard deviation of 3.1.
    assert alarms <= 10 + 4 * 3.1


@pytest.mark.parametrize("changes", [[], [0.0, 0.0], [1.0], [0.0, 0.5]])
def test_too_little_to_flip_proves_nothing(changes: list[float]) -> None:
    assert sign_flip_test(changes, [0.0] * len(changes)) == 1.0


def test_holm_takes_the_smallest_times_all_and_the_next_times_one_less() -> None:
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.7]), [1.0, 1.0])
    assert holm([]).tolist() == []
    with pytest.raises(ValueError, match="from 0 to 1"):
        holm([0.1, math.nan])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_step_down_rule_rejects(values: list[float], level: float) -> None:
    adjusted = holm(values)
    still = True
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        still = still and values[index] * (len(values) - rank) <= level
        assert (adjusted[index] <= level) == still


def test_several_methods_are_compared_with_one_baseline() -> None:
    rng = np.random.default_rng(0)
    baseline = rng.integers(0, 2, 60).astype(float)
    better = np.maximum(baseline, rng.integers(0, 2, 60))
    seeds = np.clip(baseline + rng.choice([-0.5, 0, 0.5], 60), 0, 1)
    result = compare({"better": better, "seeds": seeds, "same": baseline}, baseline)
    assert list(result) == ["better", "seeds", "same"]
    assert [one.test for one in result.values()] == ["mcnemar", "sign_flip", "mcnemar"]
    assert result["better"].difference == paired_difference(better, baseline, resamples=9999)
    assert result["better"].p_value == mcnemar(better, baseline).p_value
    assert result["better"].adjusted == pytest.approx(3 * result["better"].p_value)
    assert result["same"].adjusted == 1.0
    assert str(result["better"]).startswith("+0.")
    assert "(n=60), p < 0.001 (mcnemar, Holm)" in str(result["better"])


def test_p_values_are_printed_with_the_digits_they_deserve() -> None:
    assert [format_p(p) for p in (0.5, 0.0312, 1e-9, 1.0)] == [
        "p = 0.500", "p = 0.031", "p < 0.001", "p = 1.000",
    ]  # fmt: skip


@pytest.mark.parametrize("test", [mcnemar, sign_flip_test])
def test_the_two_sides_must_be_of_the_same_tasks(test: object) -> None:
    with pytest.raises(ValueError, match="one value per task on both sides"):
        test([1.0, 0.0], [1.0])  # type: ignore[operator]
    with pytest.raises(ValueError, match="leave out tasks that one side lacks"):
        test([1.0, math.nan], [1.0, 0.0])  # type: ignore[operator]

"""Curves over budgets: each prefix of a tree is a tree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.curves import (
    any_by_budget,
    at_budgets,
    by_task,
    chosen_by_budget,
    curve_estimates,
    mean_by_budget,
)
from trainers.statistics import mean_estimate

NODES = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12)


@given(NODES)
def test_every_point_is_what_the_prefix_says_by_itself(nodes: list[tuple[int, bool]]) -> None:
    scores, solved = [n[0] / 3 for n in nodes], [n[1] for n in nodes]
    chosen, some = chosen_by_budget(scores, solved), any_by_budget(solved)
    shares = mean_by_budget(solved)
    for budget in range(1, len(nodes) + 1):
        prefix = list(zip(scores, range(budget), solved, strict=False))
        assert chosen[budget - 1] == max(prefix)[2]  # highest score, of equals the latest
        assert some[budget - 1] == any(solved[:budget])
        assert shares[budget - 1] == pytest.approx(sum(solved[:budget]) / budget)


def test_coverage_never_falls_but_the_chosen_node_may_get_worse() -> None:
    assert chosen_by_budget([0.5, 0.5, 1.0, 1.0], [1, 0, 1, 0]).tolist() == [1, 0, 1, 0]
    assert any_by_budget([0, 1, 0]).tolist() == [0, 1, 1]


def test_above_the_trees_size_a_curve_says_nothing_unless_the_tree_had_ended() -> None:
    np.testing.assert_equal(at_budgets([0.0, 1.0], [1, 2, 4]), [0.0, 1.0, math.nan])
    assert at_budgets([0.0, 1.0], [1, 2, 4], carry=True).tolist() == [0.0, 1.0, 1.0]
    assert np.isnan(at_budgets([], [1, 2], carry=True)).all()
    with pytest.raises(ValueError, match="1 node or more"):
        at_budgets([1.0], [0])


def test_trees_of_one_task_are_averaged_before_tasks_are() -> None:
    rows = [[0.0, 1.0], [1.0, math.nan], [0.0, math.nan], [1.0, 1.0]]
    matrix = by_task(rows, ["a", "a", "b", "a"])
    np.testing.assert_equal(matrix, [[2 / 3, 1.0], [0.0, math.nan]])
    points = curve_estimates(matrix)
    assert points[0] == mean_estimate([2 / 3, 0.0])
    assert points[1] == mean_estimate([1.0])
    assert [point.n for point in points] == [2, 1]


def test_an_empty_tree_has_an_empty_curve() -> None:
    assert chosen_by_budget([], []).tolist() == []
    assert any_by_budget([]).tolist() == []
    assert mean_by_budget([]).tolist() == []


def test_columns_of_one_tree_have_one_length() -> None:
    with pytest.raises(ValueError, match="one value per node"):
        chosen_by_budget([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="one per row"):
        by_task([[1.0]], ["a", "b"])

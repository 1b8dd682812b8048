"""Posteriors: the updates that TreeQuest computes, and draws from the right distribution."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mars_envs.tree_search import Beta, Gaussian, NodeThenAgent


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], (0.0, 1.0, 1.0, 0.1)),
        ([1.0], (0.5, 2.0, 2.0, 0.3)),
        ([0.0], (0.0, 2.0, 2.0, 0.05)),
        ([1.0, 0.0, 1.0], (0.5, 4.0, 4.0, 0.275)),
    ],
)
def test_the_gaussian_posterior_follows_the_conformance_vectors(
    scores: list[float], expected: tuple[float, ...]
) -> None:
    posterior = Gaussian().updated(scores)
    found = (posterior.m, posterior.kappa, posterior.nu, posterior.tau2)
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_beta_posterior_counts_fractions() -> None:
    assert Beta().updated([0.25, 1.0]) == Beta(1.75, 1.25)


def test_updates_in_two_parts_equal_one_update() -> None:
    scores = [0.2, 0.4, 0.9, 1.0]
    whole = Gaussian().updated(scores)
    parts = Gaussian().updated(scores[:1]).updated(scores[1:])
    assert (parts.m, parts.kappa, parts.nu, parts.tau2) == pytest.approx(
        (whole.m, whole.kappa, whole.nu, whole.tau2)
    )


@pytest.mark.data
def test_posteriors_equal_treequest_s(data_dir: Path) -> None:
    rows = json.loads((data_dir / "numeric" / "treequest.json").read_text())
    rows = rows["posterior_updates"]["rows"]
    assert len(rows) > 20
    for row in rows:
        assert _updated(row) == pytest.approx(row["posterior"], abs=1e-12), row


def _updated(row: dict[str, Any]) -> dict[str, float]:
    given = {} if row["prior"] == "default" else row["prior"]
    if row["dist"] == "beta":
        beta = Beta(**given).updated(row["observations"])
        return {"a": beta.a, "b": beta.b}
    names = {"tau2" if key == "tau_square" else key: value for key, value in given.items()}
    found = Gaussian(**names).updated(row["observations"])
    return {"m": found.m, "kappa": found.kappa, "nu": found.nu, "tau_square": found.tau2}


def test_beta_draws_have_the_moments_of_the_distribution() -> None:
    rng = np.random.default_rng(0)
    draws = np.array([Beta(2.0, 3.0).draw(rng) for _ in range(20_000)])
    assert draws.mean() == pytest.approx(0.4, abs=0.006)
    assert draws.var() == pytest.approx(0.04, abs=0.002)


def test_gaussian_draws_follow_a_scaled_student_t() -> None:
    # The mean's marginal is t with nu degrees of freedom, location m and scale sqrt(tau2 / kappa).
    prior = Gaussian(m=0.3, kappa=4.0, nu=5.0, tau2=0.2)
    rng = np.random.default_rng(0)
    draws = np.array([prior.draw(rng) for _ in range(40_000)])
    t_quartile = 0.7267  # of Student's t with 5 degrees of freedom
    spread = t_quartile * (0.2 / 4.0) ** 0.5
    assert np.quantile(draws, [0.25, 0.5, 0.75]) == pytest.approx(
        [0.3 - spread, 0.3, 0.3 + spread], abs=0.006
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Beta(0.0, 1.0),
        lambda: Beta(math.inf, 1.0),
        lambda: Beta(1e-300, 1e-300),
        lambda: Gaussian(tau2=-1.0),
        lambda: Gaussian(m=math.nan),
        lambda: Gaussian(kappa=math.inf),
    ],
)
def test_impossible_priors_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="needs"):
        wrong()


def test_the_name_of_a_prior_is_no_prior() -> None:
    with pytest.raises(ValueError, match="a prior is a Beta, a Gaussian or the like, got 'beta'"):
        NodeThenAgent(prior="beta")  # type: ignore[arg-type]

"""What is believed about an arm after the scores that it earned: two conjugate models.

Each class is both prior and posterior: `prior.updated(scores)` is of the same kind. `draw` gives
one Thompson draw of the arm's mean. Formulas: TreeQuest's AB-MCTS-A, which the released MARS²
scripts run; restated in each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Posterior(Protocol):
    """A belief about the mean score of an arm."""

    @property
    def mean(self) -> float:
        """The expected score."""
        ...

    def updated(self, scores: Sequence[float]) -> Posterior:
        """Return the belief after these scores."""
        ...

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        ...


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(a, b), by default Jeffreys' prior; a score s in [0, 1] adds s to a and 1 - s to b."""

    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0):
            raise ValueError(f"Beta needs a > 0 and b > 0, got a={self.a!r}, b={self.b!r}")

    @property
    def mean(self) -> float:
        """The expected score."""
        return self.a / (self.a + self.b)

    def updated(self, scores: Sequence[float]) -> Beta:
        """Return the belief after these scores."""
        total = math.fsum(scores)
        return Beta(self.a + total, self.b + len(scores) - total)

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        return float(rng.beta(self.a, self.b))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal with unknown mean and variance under a normal-scaled-inverse-χ² prior.

    With n scores of mean x̄ and sum of squares SS about it: κ' = κ + n, ν' = ν + n,
    m' = (κm + nx̄) / κ' and τ²' = (ντ² + SS + nκ(m - x̄)² / κ') / ν'. A draw takes σ² from
    InvGamma(ν/2, ντ²/2), then the mean from Normal(m, σ²/κ); it may leave [0, 1], harmlessly.
    """

    m: float = 0.0
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1

    def __post_init__(self) -> None:
        if not (self.kappa > 0 and self.nu > 0 and self.tau2 > 0):
            raise ValueError(f"Gaussian needs kappa, nu and tau2 above 0, got {self!r}")

    @property
    def mean(self) -> float:
        """The expected score."""
        return self.m

    def updated(self, scores: Sequence[float]) -> Gaussian:
        """Return the belief after these scores."""
        n = len(scores)
        if n == 0:
            return self
        average = math.fsum(scores) / n
        spread = math.fsum((score - average) ** 2 for score in scores)
        kappa, nu = self.kappa + n, self.nu + n
        shift = n * self.kappa * (self.m - average) ** 2 / kappa
        return Gaussian(
            m=(self.kappa * self.m + n * average) / kappa,
            kappa=kappa,
            nu=nu,
            tau2=(self.nu * self.tau2 + spread + shift) / nu,
        )

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        variance = (self.nu * self.tau2 / 2) / rng.standard_gamma(self.nu / 2)
        return float(self.m + math.sqrt(variance / self.kappa) * rng.standard_normal())

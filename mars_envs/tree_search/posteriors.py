"""What is believed about an arm after the scores that it earned: two conjugate models.

Each class is both prior and posterior: `prior.updated(scores)` is of the same kind. A search keeps
no scores but their number, sum and sum of squares, and draws with `sample`, one arm at a time or
all arms of a node in one NumPy call. Formulas: TreeQuest's AB-MCTS-A, which the released MARS²
scripts run; restated in each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])
"""One arm, or an array with one entry per arm."""


class Posterior(Protocol):
    """A belief about the mean score of an arm."""

    @property
    def mean(self) -> float:
        """The expected score."""
        ...

    def updated(self, scores: Sequence[float]) -> Posterior:
        """Return the belief after these scores."""
        ...

    def centred(self, mean: float) -> Posterior:
        """Return a belief of this kind that expects `mean` before any score."""
        ...

    def expected(self, n: float, total: float, squares: float) -> float:
        """Return the expected score after n scores of this sum and sum of squares."""
        ...

    def sample(self, n: Number, total: Number, squares: Number, rng: np.random.Generator) -> Number:
        """Draw one plausible mean per arm, after n scores of this sum and sum of squares.

        An array of arms takes from `rng` what the same arms would take one after the other.
        """
        ...

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        ...


def check_prior(prior: object) -> None:
    """Raise ValueError for what is no prior, such as the name of one."""
    if not all(hasattr(prior, name) for name in ("sample", "expected", "centred")):
        raise ValueError(f"a prior is a Beta, a Gaussian or the like, got {prior!r}")


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(a, b), by default Jeffreys' prior; a score s in [0, 1] adds s to a and 1 - s to b."""

    a: float = 0.5
    b: float = 0.5

    def __post_init__(self) -> None:
        # Below that the rounding of n - Σx could leave a posterior without a positive b.
        if not (1e-9 <= self.a < math.inf and 1e-9 <= self.b < math.inf):
            raise ValueError(
                f"Beta needs finite a and b of at least 1e-9, got a={self.a!r}, b={self.b!r}"
            )

    @property
    def mean(self) -> float:
        """The expected score."""
        return self.a / (self.a + self.b)

    def updated(self, scores: Sequence[float]) -> Beta:
        """Return the belief after these scores."""
        total = math.fsum(scores)
        return Beta(self.a + total, self.b + len(scores) - total)

    def centred(self, mean: float) -> Beta:
        """Return Beta(mean, 1 - mean), as TreeQuest does; `mean` lies strictly between 0 and 1."""
        return Beta(mean, 1.0 - mean)

    def expected(self, n: float, total: float, squares: float) -> float:
        """Return the expected score after n scores of this sum."""
        return (self.a + total) / (self.a + self.b + n)

    def sample(self, n: Number, total: Number, squares: Number, rng: np.random.Generator) -> Number:
        """Draw one plausible mean per arm; the sum of squares does not matter."""
        return rng.beta(self.a + total, self.b + n - total)

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        return float(rng.beta(self.a, self.b))


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal with unknown mean and variance under a normal-scaled-inverse-χ² prior.

    With n scores of mean x̄ and sum of squares SS about it: κ' = κ + n, ν' = ν + n,
    m' = (κm + nx̄) / κ' and τ²' = (ντ² + SS + nκ(m - x̄)² / κ') / ν'. TreeQuest draws σ² from
    InvGamma(ν/2, ντ²/2), then the mean from Normal(m, σ²/κ). With the variance integrated out that
    is m + √(τ²/κ) times a draw of Student's t with ν degrees of freedom, which is what `sample`
    takes. It may leave [0, 1], harmlessly.
    """

    m: float = 0.0
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1

    def __post_init__(self) -> None:
        positive = all(0 < value < math.inf for value in (self.kappa, self.nu, self.tau2))
        if not (positive and math.isfinite(self.m)):
            raise ValueError(
                f"Gaussian needs a finite m, and finite kappa, nu and tau2 above 0, got {self!r}"
            )

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

    def centred(self, mean: float) -> Gaussian:
        """Return the same belief about another mean."""
        return Gaussian(mean, self.kappa, self.nu, self.tau2)

    def expected(self, n: float, total: float, squares: float) -> float:
        """Return the expected score after n scores of this sum."""
        return (self.kappa * self.m + total) / (self.kappa + n)

    def sample(self, n: Number, total: Number, squares: Number, rng: np.random.Generator) -> Number:
        """Draw one plausible mean per arm."""
        kappa, nu = self.kappa + n, self.nu + n
        m = (self.kappa * self.m + total) / kappa
        # κm² + Σx² - κ'm'² equals SS + nκ(m - x̄)² / κ' of the class docstring, without x̄. It is
        # a sum of squares, at least 0, of which rounding may leave a little less.
        spread = abs(self.kappa * self.m**2 + squares - kappa * m**2)
        drawn: Number = m + ((self.nu * self.tau2 + spread) / nu / kappa) ** 0.5 * rng.standard_t(
            nu
        )
        return drawn

    def draw(self, rng: np.random.Generator) -> float:
        """Draw one plausible mean."""
        return self.m + math.sqrt(self.tau2 / self.kappa) * float(rng.standard_t(self.nu))

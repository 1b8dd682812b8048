"""Pictures of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMOOTHING_STEPS = 5


def learning_curve(
    metrics: Sequence[Mapping[str, Any]], path: str | Path, *, title: str = ""
) -> Path:
    """Draw how rewards developed over a run, and write the picture to `path`.

    Left: mean reward of each agent's actions; right: shares of episodes that were solved by anyone
    and that were degenerate (all rewards equal, so nothing to learn from). Pale lines are single
    steps, strong ones their running mean over five.

    Args:
        metrics: the records of `metrics.jsonl`, in order.
        path: of the picture; its ending chooses the format.
        title: above the picture.

    Raises:
        ValueError: there are no records.
        ImportError: matplotlib is missing.
    """
    if not metrics:
        raise ValueError("there are no metrics to draw; has the run done a step?")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'mars-envs[report]'") from error
    steps = np.array([record["step"] for record in metrics])
    agents = sorted(
        {key.split("/")[1] for record in metrics for key in record if key.startswith("agents/")}
    )
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    rewards, shares = figure.subplots(1, 2)
    for index, agent in enumerate(agents):
        _line(rewards, steps, _series(metrics, f"agents/{agent}/reward"), agent, f"C{index}")
    _line(shares, steps, _series(metrics, "solved_share"), "solved by anyone", "C2")
    _line(shares, steps, _series(metrics, "degenerate_share"), "degenerate", "C7")
    for axes, label in ((rewards, "mean reward per action"), (shares, "share of episodes")):
        axes.set(xlabel="training step", ylabel=label, ylim=(-0.02, 1.02))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend(loc="best", frameon=False)
    if title:
        figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return Path(path)


def _series(metrics: Sequence[Mapping[str, Any]], key: str) -> NDArray[np.float64]:
    """Values of `key` by record; NaN where a record has none: [steps]."""
    values = [record.get(key) for record in metrics]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _line(axes: Any, steps: NDArray[Any], values: NDArray[Any], label: str, color: str) -> None:
    axes.plot(steps, values, color=color, alpha=0.25, linewidth=1)
    axes.plot(steps, _smooth(values), color=color, label=label, linewidth=2)


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the last `SMOOTHING_STEPS` values that exist: [steps]."""
    windows = [values[max(0, i - SMOOTHING_STEPS + 1) : i + 1] for i in range(len(values))]
    return np.array([np.nanmean(w) if np.isfinite(w).any() else np.nan for w in windows])

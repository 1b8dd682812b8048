"""Teach MaskablePPO (sb3-contrib) to search, and compare it with Thompson sampling.

The learner chooses node and agent in `mars_envs/TreeControl-v0`; the coders are simulated. It is
trained on a family of tasks and judged on episodes that it has not seen. Every rival plays the very
same episodes (same task, same luck), so the differences are paired. Rivals know nothing of the
family beforehand; the learner knows what is common to its tasks. Where nothing is common, it should
gain nothing: the family "alike" is there to show that.

    python examples/tree_control_ppo.py                    a look, in seconds: one short training
    python examples/tree_control_ppo.py --full             the table and figure of docs/mars2.md

Writes results.json and tree_control.png to --out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from mars_envs import TreeControlEnv
from mars_envs.tree_search import (
    FAMILIES,
    PRESETS,
    ControlResult,
    SelectorPolicy,
    UniformPolicy,
    play_control,
)
from trainers.statistics import Estimate, mean_estimate, paired_difference

# Seeds of the held-out episodes start here; training starts its streams from small ones.
HELD_OUT = 1_000_000
LEARNED = "MaskablePPO"


@dataclass(frozen=True)
class Plan:
    """How long to train, and on how many held-out episodes to judge."""

    families: tuple[str, ...]
    steps: int
    seeds: int
    episodes: int
    checks: int
    """Points of the learning curve; all but the last are judged on a quarter of the episodes."""
    rivals: tuple[str, ...]
    """Presets of `TreeSearch`."""
    also_on: tuple[str, ...] = ()
    """Families that the learned policies play as well, without having seen them."""


QUICK = Plan(
    families=("specialists",),
    steps=6_144,
    seeds=1,
    episodes=120,
    checks=1,
    rivals=("default", "paper", "best_of_n"),
)
FULL = Plan(
    families=tuple(FAMILIES),
    steps=16_384,
    seeds=2,
    episodes=500,
    checks=4,
    rivals=("default", "paper", "marti_code", "t_plus", "best_of_n", "mcts"),
)


class Learned:
    """A trained model as a policy of the environment; it takes its most probable action."""

    def __init__(self, model: MaskablePPO) -> None:
        self.model = model

    def begin(self, env: TreeControlEnv, seed: int) -> None:
        """Do nothing: it remembers nothing from one step to the next."""

    def act(self, observation: Any, mask: Any) -> int:
        """Return the most probable of the possible actions."""
        action, _ = self.model.predict(observation, action_masks=mask, deterministic=True)
        return int(action)


class Meter(BaseCallback):
    """Moves the progress bar."""

    def __init__(self, progress: Progress, task: Any, envs: int) -> None:
        super().__init__()
        self.progress, self.task, self.envs = progress, task, envs

    def _on_step(self) -> bool:
        self.progress.advance(self.task, self.envs)
        return True


def new_model(family: str, budget: int, reward: str, seed: int) -> MaskablePPO:
    def make() -> TreeControlEnv:
        return TreeControlEnv(coders=family, budget=budget, reward=reward)  # type: ignore[arg-type]

    return MaskablePPO(
        "MlpPolicy",
        DummyVecEnv([make] * 16),
        n_steps=128,
        batch_size=512,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=1.0,  # an episode is short, and what counts is its end
        ent_coef=0.01,
        policy_kwargs={"net_arch": [128, 128]},
        seed=seed,
        device="cpu",
    )


def play(env: TreeControlEnv, policy: Any, episodes: int) -> list[ControlResult]:
    return [play_control(env, policy, HELD_OUT + index) for index in range(episodes)]


def solved(results: Sequence[ControlResult]) -> list[float]:
    return [float(result.answer_solved) for result in results]


def covered(results: Sequence[ControlResult]) -> list[float]:
    return [float(result.covered) for result in results]


def train(
    family: str, plan: Plan, budget: int, reward: str, seed: int, progress: Progress
) -> tuple[MaskablePPO, list[tuple[int, float]], list[ControlResult]]:
    """Return a trained model, its learning curve, and its held-out episodes."""
    bar = progress.add_task(f"{family}: training {seed}", total=plan.steps)
    model = new_model(family, budget, reward, seed)
    env = TreeControlEnv(coders=family, budget=budget)
    curve, played = [], []
    for check in range(1, plan.checks + 1):
        model.learn(
            plan.steps // plan.checks,
            callback=Meter(progress, bar, model.n_envs),
            reset_num_timesteps=False,
        )
        episodes = plan.episodes if check == plan.checks else plan.episodes // 4
        played = play(env, Learned(model), episodes)
        curve.append((model.num_timesteps, float(np.mean(solved(played)))))
    return model, curve, played


def study(plan: Plan, budget: int, reward: str, progress: Progress) -> dict[str, Any]:
    rivals: dict[str, Any] = {"uniform": UniformPolicy()}
    rivals |= {preset: SelectorPolicy(preset) for preset in plan.rivals}
    found: dict[str, Any] = {}
    for family in plan.families:
        env = TreeControlEnv(coders=family, budget=budget)
        bar = progress.add_task(f"{family}: rivals", total=len(rivals))
        results: dict[str, list[ControlResult]] = {}
        for name, policy in rivals.items():
            results[name] = play(env, policy, plan.episodes)
            progress.advance(bar)
        trained = [train(family, plan, budget, reward, n, progress) for n in range(plan.seeds)]
        runs = [played for _, _, played in trained]
        found[family] = {
            "curves": [curve for _, curve, _ in trained],
            "policies": {name: compare(runs, played) for name, played in results.items()},
            LEARNED: {
                "answer": asdict(mean_estimate(over_seeds(runs, solved))),
                "coverage": asdict(mean_estimate(over_seeds(runs, covered))),
                "refinements": float(np.mean([one.refinements for run in runs for one in run])),
                "answer_of_each_training": [float(np.mean(solved(run))) for run in runs],
            },
            "elsewhere": {},
        }
        for other in plan.also_on:
            env = TreeControlEnv(coders=other, budget=budget)
            abroad = [play(env, Learned(model), plan.episodes) for model, _, _ in trained]
            rival = play(env, SelectorPolicy("default"), plan.episodes)
            found[family]["elsewhere"][other] = {
                "answer": asdict(mean_estimate(over_seeds(abroad, solved))),
                "default": compare(abroad, rival),
            }
    return found


def compare(runs: Sequence[Sequence[ControlResult]], rival: Sequence[ControlResult]) -> Any:
    """Return a rival's figures, and in pairs what the learned policies gain over it."""
    return {
        "answer": asdict(mean_estimate(solved(rival))),
        "coverage": asdict(mean_estimate(covered(rival))),
        "refinements": float(np.mean([one.refinements for one in rival])),
        "learned_minus_this": asdict(paired_difference(over_seeds(runs, solved), solved(rival))),
        "learned_minus_this_coverage": asdict(
            paired_difference(over_seeds(runs, covered), covered(rival))
        ),
    }


def over_seeds(runs: Sequence[Sequence[ControlResult]], of: Any) -> list[float]:
    """Return each episode's mean over the trainings: episodes are what the intervals resample."""
    return np.mean([of(played) for played in runs], axis=0).tolist()  # type: ignore[no-any-return]


def show(found: dict[str, Any], console: Console, episodes: int) -> None:
    for family, facts in found.items():
        table = Table(title=f"{family} (n = {episodes} held-out episodes, 95 % intervals)")
        for heading in ("policy", "answer solved", "covered", "refinements", "learned minus this"):
            table.add_column(heading)
        for name, row in [*facts["policies"].items(), (LEARNED, facts[LEARNED])]:
            gain = row.get("learned_minus_this")
            table.add_row(
                name,
                text(row["answer"]),
                text(row["coverage"]),
                f"{row['refinements']:.1f}",
                text(gain, sign="+") if gain else "",
            )
        console.print(table)
        for other, row in facts["elsewhere"].items():
            gain = text(row["default"]["learned_minus_this"], sign="+")
            console.print(
                f"learned on {family}, played on {other}: {text(row['answer'])}, "
                f"minus default there: {gain}"
            )


def text(figure: dict[str, float], sign: str = "") -> str:
    estimate = Estimate(**figure)  # type: ignore[arg-type]
    return f"{estimate.mean:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def draw(found: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    families = list(found)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
    first = found[families[0]]
    for index, curve in enumerate(first["curves"]):
        steps, rates = zip(*curve, strict=True)
        left.plot(steps, rates, "o-", color="C0", label=LEARNED if index == 0 else None)
    for index, (name, row) in enumerate(first["policies"].items()):
        left.axhline(row["answer"]["mean"], color=f"C{index + 1}", ls="--", lw=1, label=name)
    left.set(
        title=f"Learning on “{families[0]}”",
        xlabel="training steps (expansions)",
        ylabel="answers solved on held-out episodes",
    )
    names = list(first["policies"])
    for index, name in enumerate(names):
        gains = [found[family]["policies"][name]["learned_minus_this"] for family in families]
        means = np.array([gain["mean"] for gain in gains])
        bounds = [[m - g["low"], g["high"] - m] for m, g in zip(means, gains, strict=True)]
        places = np.arange(len(families)) + (index - len(names) / 2) * 0.11
        right.errorbar(
            places, means, np.array(bounds).T, fmt="o", ms=4, color=f"C{index + 1}", label=name
        )
    right.axhline(0, color="black", lw=0.8)
    right.set_xticks(range(len(families)), families)
    right.set(
        title=f"{LEARNED} minus each rival, paired, 95 % intervals",
        ylabel="difference in answers solved",
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--full", action="store_true", help="every family, more rivals, longer, two trainings"
    )
    parser.add_argument("--rivals", nargs="+", choices=sorted(PRESETS), help="only these presets")
    parser.add_argument("--families", nargs="+", choices=sorted(FAMILIES), help="only these")
    parser.add_argument(
        "--also-on",
        nargs="+",
        choices=sorted(FAMILIES),
        default=(),
        help="play these as well with what was learned, and compare with the default search",
    )
    parser.add_argument("--steps", type=int, help="training steps (expansions)")
    parser.add_argument("--episodes", type=int, help="held-out episodes")
    parser.add_argument("--seeds", type=int, help="trainings of each family")
    parser.add_argument("--budget", type=int, default=8, help="nodes of a tree (8)")
    parser.add_argument(
        "--reward", default="answer", choices=["answer", "coverage", "new_best"], help="(answer)"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/tree_control"))
    options = parser.parse_args(arguments)
    base = FULL if options.full else QUICK
    plan = Plan(
        families=tuple(options.families or base.families),
        steps=options.steps or base.steps,
        seeds=options.seeds or base.seeds,
        episodes=options.episodes or base.episodes,
        checks=base.checks,
        rivals=tuple(options.rivals or base.rivals),
        also_on=tuple(options.also_on),
    )
    torch.set_num_threads(1)
    console = Console()
    with Progress(console=console) as progress:
        found = study(plan, options.budget, options.reward, progress)
    show(found, console, plan.episodes)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {
        "plan": asdict(plan),
        "budget": options.budget,
        "reward": options.reward,
        "families": found,
    }
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(found, options.out / "tree_control.png")
    console.print(f"wrote {options.out}/results.json and {options.out}/tree_control.png")
    return results


if __name__ == "__main__":
    main()

"""From the records of `mars-envs bench memory` to figures with their uncertainty: `results.json`.

Questions are the units: of a question that was played with several seeds, the mean counts once.
Everything here is a function of the records, so the same grid gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .grid import Record
from .memory_plan import MemoryCell
from .sheets import mean_with_se

if TYPE_CHECKING:
    from trainers.comparisons import Comparison

SCHEMA = "mars-envs/bench-memory"
SCHEMA_VERSION = 1

SCORES = ("em", "f1", "sub_em", "sub_em_bidirectional")
"""Exact match, F1 of the words, gold answer within the answer, and either within the other (as
MemAgent and PI-Mem report it)."""
COUNTS = (
    "k_used",
    "k_productive",
    "calls",
    "failed_calls",
    "malformed",
    "prompt_tokens",
    "output_tokens",
    "memory_tokens",
)
"""What else is said of episodes, as mean and standard error."""


class Point(NamedTuple):
    """What the figures of one row are of."""

    source: str
    length: int
    agent: str
    method: str


@dataclass(slots=True)
class Played:
    """The records of one point, by question, in the order of the questions."""

    by_task: dict[int, list[Record]] = field(default_factory=dict)
    failed: int = 0

    @property
    def records(self) -> list[Record]:
        """All of them."""
        return [record for found in self.by_task.values() for record in found]

    def score(self, metric: str) -> dict[int, float]:
        """Return a score by question."""
        return {item: _mean(r["scores"][metric] for r in found) for item, found in self._items()}

    def count(self, name: str) -> list[float]:
        """Return a count of every question."""
        return [_mean(r[name] for r in found) for _, found in self._items()]

    def cost(self, machine: str, name: str) -> list[float]:
        """Return what every question cost on a machine."""
        return [_mean(r["machines"][machine][name] for r in found) for _, found in self._items()]

    def reads(self, name: str) -> list[float]:
        """Return a sum over the turns of every question."""
        return [
            _mean(sum(turn[name] for turn in r["turns"]) for r in found)
            for _, found in self._items()
        ]

    def recall(self, turn: int) -> list[float]:
        """Return the share of gold chunks found up to a turn, of questions whose gold is known."""
        return [
            _mean(r["turns"][min(turn, len(r["turns"])) - 1]["gold_recall"] for r in found)
            for _, found in self._items()
            if found[0]["gold_chunks"] and found[0]["turns"]
        ]

    def _items(self) -> Iterable[tuple[int, list[Record]]]:
        return sorted(self.by_task.items())


def gather(
    records: Iterable[tuple[MemoryCell, Record]], failed: Iterable[MemoryCell]
) -> dict[Point, Played]:
    """Bring the records of each point together.

    Args:
        records: of the episodes that ended, in the order of the grid.
        failed: episodes that did not.
    """
    found: dict[Point, Played] = {}
    for cell, record in records:
        point = Point(cell.source, cell.length, cell.agent, cell.method)
        found.setdefault(point, Played()).by_task.setdefault(cell.item, []).append(record)
    for cell in failed:
        point = Point(cell.source, cell.length, cell.agent, cell.method)
        found.setdefault(point, Played()).failed += 1
    return found


def points_table(values: Mapping[Point, Played]) -> list[dict[str, Any]]:
    """Return the figures of every point at which an episode ended.

    Scores come with a 95 % bootstrap interval over questions, yes-rates with one of the pooled
    rate (exact ones where all questions have the same), the rest with standard errors. Failed
    episodes are counted and left out of everything else.
    """
    from trainers.statistics import beyond_equal_values, mean_estimate

    # Many columns are the same: of scores that agree, of methods that find the same.
    mean = lru_cache(maxsize=None)(
        lambda column: asdict(beyond_equal_values(mean_estimate(column), 0, 1))
    )
    table = []
    for point, played in values.items():
        records = played.records
        if not records:
            table.append({**point._asdict(), "episodes": 0, "failed": played.failed})
            continue
        turns = max(len(record["turns"]) for record in records)
        machines = records[0]["machines"]
        table.append(
            {
                **point._asdict(),
                "questions": len(played.by_task),
                "episodes": len(records),
                "failed": played.failed,
                "chunks": mean_with_se(played.count("chunks")),
                **{name: dict(mean(tuple(played.score(name).values()))) for name in SCORES},
                **{name: mean_with_se(played.count(name)) for name in COUNTS},
                "exit_reasons": dict(sorted(Counter(r["exit_reason"] for r in records).items())),
                "yes_rate": {kind: _yes_rate(played, kind) for kind in ("gold", "other")},
                "gold_recall": [mean_with_se(played.recall(turn)) for turn in range(1, turns + 1)],
                "machines": {
                    name: {what: mean_with_se(played.cost(name, what)) for what in machines[name]}
                    for name in machines
                },
            }
        )
    return table


def _yes_rate(played: Played, kind: str) -> dict[str, Any]:
    from trainers.statistics import beyond_equal_values, ratio_estimate

    pooled = ratio_estimate(played.reads(f"{kind}_found"), played.reads(f"{kind}_read"))
    return asdict(beyond_equal_values(pooled, 0, 1))


def compare_methods(values: Mapping[Point, Played], baseline: str) -> list[dict[str, Any]]:
    """Compare every method with one, on the questions that both have.

    Of each source and score, all lengths, agents and methods are one of Holm's families. Over all
    lengths together (`length` is None) a question counts once, with its mean; these comparisons are
    families of their own.
    """
    from trainers.comparisons import compare

    paired = lru_cache(maxsize=None)(lambda new, old: compare({"": new}, old)[""])
    found: list[dict[str, Any]] = []
    for source in dict.fromkeys(point.source for point in values):
        own = {point: played for point, played in values.items() if point.source == source}
        lengths = dict.fromkeys(point.length for point in own)
        for metric in SCORES:
            scores = {point: played.score(metric) for point, played in own.items()}
            found += _family(
                metric, baseline, paired, {(p, p.length): s for p, s in scores.items()}
            )
            if len(lengths) > 1:
                pooled: dict[tuple[Point, int | None], dict[int, list[float]]] = {}
                for point, by_item in scores.items():
                    at = pooled.setdefault((point._replace(length=0), None), {})
                    for item, score in by_item.items():
                        at.setdefault(item, []).append(score)
                # A question that lacks a length on either side would compare lengths.
                whole = {
                    key: {item: _mean(s) for item, s in by.items() if len(s) == len(lengths)}
                    for key, by in pooled.items()
                }
                found += _family(metric, baseline, paired, whole)
    return found


def _family(
    metric: str,
    baseline: str,
    paired: Callable[[tuple[float, ...], tuple[float, ...]], Comparison],
    scores: Mapping[tuple[Point, int | None], Mapping[int, float]],
) -> list[dict[str, Any]]:
    from trainers.comparisons import holm, mcnemar
    from trainers.statistics import beyond_equal_values

    rows: list[dict[str, Any]] = []
    for (point, length), own in scores.items():
        other = scores.get((point._replace(method=baseline), length), {})
        items = sorted(own.keys() & other.keys())
        if point.method == baseline or not items:
            continue
        new, old = (tuple(side[item] for item in items) for side in (own, other))
        compared = paired(new, old)
        row = {
            "metric": metric,
            **point._asdict(),
            "length": length,
            "against": baseline,
            "difference": asdict(beyond_equal_values(compared.difference, -1, 1)),
            "test": compared.test,
            "p_value": compared.p_value,
        }
        if compared.test == "mcnemar":
            counts = mcnemar(new, old)
            row |= {"gained": counts.gained, "lost": counts.lost}
        rows.append(row)
    adjusted = holm([row["p_value"] for row in rows])
    return [
        {**row, "p_holm": float(p), "family": len(rows)}
        for row, p in zip(rows, adjusted, strict=True)
    ]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def is_whole(record: Record, machines: Iterable[str]) -> bool:
    """Whether a record that was read from a file has all that is needed."""
    needed = {"scores", "turns", "machines", "chunks", "gold_chunks", "exit_reason", *COUNTS}
    return needed <= record.keys() and set(machines) == set(record["machines"])

"""From samples to what is worth saying: ranges over rounds, ratios within rounds, goals."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import modes
from .measure import Measurement, Sample

MAX_CPU_MS = 2.5
MIN_HOST_RATIO = 5.0
MIN_DOCKER_RUN_RATIO = 12.0

MARKDOWN_HEAD = (
    "| way | CPU ms per test | CPU of a host subprocess over this | CPU of `docker run` over this "
    "| programs per s | p50 ms per program | p95 ms per program |"
)


@dataclass(frozen=True, slots=True)
class Range:
    """What rounds gave: least, median, most."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Range:
        """Return the range of at least one value."""
        found = sorted(values)
        return cls(found[0], statistics.median(found), found[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to judge, over all rounds."""

    mode: str
    programs_per_s: Range
    p50_ms: Range
    """Per program, from request to verdict, like `p95_ms`."""
    p95_ms: Range
    cpu_ms: Range | None
    """CPU time per test, everything that took part included; None where it cannot be seen."""
    host_cpu: Range | None
    """How many times the CPU time of this way the host subprocess takes, round by round."""
    host_wall: Range | None
    """How many times as many programs per second this way judges as the host subprocess does."""
    run_cpu: Range | None
    """Like `host_cpu`, against `docker run`."""
    run_wall: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What was hoped for, and what came; nothing fails by missing one."""

    text: str
    measured: float
    met: bool


def rows(measurement: Measurement) -> list[Row]:
    """Return one row for each way that was measured, in the order of `modes.MODES`."""
    samples: dict[str, list[Sample]] = {}
    for sample in sorted(measurement.samples, key=lambda sample: sample.round):
        samples.setdefault(sample.mode, []).append(sample)
    host, run = samples.get(modes.HOST, []), samples.get(modes.DOCKER_RUN, [])
    return [
        Row(
            mode=mode,
            programs_per_s=Range.of(map(_speed, samples[mode])),
            p50_ms=Range.of(1000 * percentile(s.latencies_s, 0.50) for s in samples[mode]),
            p95_ms=Range.of(1000 * percentile(s.latencies_s, 0.95) for s in samples[mode]),
            cpu_ms=_range(_cpu_ms(sample) for sample in samples[mode]),
            host_cpu=_cpu_ratio(host, samples[mode]),
            host_wall=_wall_ratio(host, samples[mode]),
            run_cpu=_cpu_ratio(run, samples[mode]),
            run_wall=_wall_ratio(run, samples[mode]),
        )
        for mode in modes.MODES
        if mode in samples
    ]


def goals(table: Sequence[Row]) -> list[Goal]:
    """Hold our backends against the goals, by the medians, where they can be told."""
    found = []
    for row in table:
        if row.mode not in (modes.DOCKER, modes.BUBBLEWRAP):
            continue
        name = modes.MODES[row.mode]
        if row.cpu_ms is not None:
            cpu = row.cpu_ms.median
            text = f"{name}: at most {MAX_CPU_MS:g} ms of CPU per test"
            found.append(Goal(text=text, measured=cpu, met=cpu <= MAX_CPU_MS))
        for ratio, least, rival in (
            (row.host_cpu, MIN_HOST_RATIO, modes.HOST),
            (row.run_cpu, MIN_DOCKER_RUN_RATIO, modes.DOCKER_RUN),
        ):
            if ratio is not None:
                text = f"{name}: CPU of {modes.MODES[rival]} at least {least:g} times"
                found.append(Goal(text=text, measured=ratio.median, met=ratio.median >= least))
    return found


def markdown(table: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown, with the range of every figure."""
    lines = [MARKDOWN_HEAD, "| --- " * MARKDOWN_HEAD.count(" |") + "|"]
    for row in table:
        figures = (
            row.cpu_ms,
            row.host_cpu,
            row.run_cpu,
            row.programs_per_s,
            row.p50_ms,
            row.p95_ms,
        )
        cells = (modes.MODES[row.mode], *map(_cell, figures))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def profile(measurement: Measurement) -> dict[str, dict[str, float]]:
    """Return for each way the median CPU ms per test of each role (see `cpu.spent_by_role_s`)."""
    found: dict[str, dict[str, float]] = {}
    for mode in modes.MODES:
        samples = [sample for sample in measurement.samples if sample.mode == mode]
        for role in dict.fromkeys(role for sample in samples for role in sample.roles_s):
            median = statistics.median(
                1000 * sample.roles_s.get(role, 0.0) / sample.tests for sample in samples
            )
            found.setdefault(mode, {})[role] = median
    return found


def as_json(measurement: Measurement, command: str) -> dict[str, Any]:
    """Return everything, for `json.dump`: settings, machine, samples, rows, goals."""
    table = rows(measurement)
    return {
        "command": command,
        **dataclasses.asdict(measurement),
        "rows": [dataclasses.asdict(row) for row in table],
        "profile_ms": profile(measurement),
        "goals": [dataclasses.asdict(goal) for goal in goals(table)],
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least `share` of `values` do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _cell(found: Range | None) -> str:
    """Return `median (least-most)` in three digits or so."""
    if found is None:
        return "-"
    digits = 2 if found.median < 10 else 1 if found.median < 100 else 0
    return f"{found.median:.{digits}f} ({found.low:.{digits}f}-{found.high:.{digits}f})"


def _speed(sample: Sample) -> float:
    return sample.programs / sample.wall_s


def _cpu_ms(sample: Sample) -> float | None:
    return None if sample.cpu_s is None else 1000 * sample.cpu_s / sample.tests


def _range(values: Iterable[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    return Range.of(known) if known else None


def _cpu_ratio(rivals: Sequence[Sample], ours: Sequence[Sample]) -> Range | None:
    return _ratio(rivals, ours, lambda rival, own: _over(_cpu_ms(rival), _cpu_ms(own)))


def _wall_ratio(rivals: Sequence[Sample], ours: Sequence[Sample]) -> Range | None:
    return _ratio(rivals, ours, lambda rival, own: _over(_speed(own), _speed(rival)))


def _ratio(
    rivals: Sequence[Sample],
    ours: Sequence[Sample],
    compare: Callable[[Sample, Sample], float | None],
) -> Range | None:
    """Compare within rounds: neighbours that came and went between rounds spoil no ratio."""
    return _range(compare(rival, own) for rival, own in zip(rivals, ours, strict=False))


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None

"""The tables of `mars-envs bench memory`, for the console and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .memory_results import SCORES
from .sheets import Sheet, missing, percent, points, rate

SCORE_NAMES = {
    "em": "EM",
    "f1": "F1",
    "sub_em": "sub-EM",
    "sub_em_bidirectional": "sub-EM, both ways",
}
Rows = Sequence[Mapping[str, Any]]
"""Some of the `points` of `results.json`."""


def sheets(results: Mapping[str, Any]) -> list[Sheet]:
    """Return the tables that `results.json` is read from, by source and agent."""
    found: list[Sheet] = []
    for source in dict.fromkeys(row["source"] for row in results["points"]):
        for agent in dict.fromkeys(row["agent"] for row in results["points"]):
            rows = [
                row
                for row in results["points"]
                if row["source"] == source and row["agent"] == agent and row["episodes"]
            ]
            if rows:
                title = f"{source_name(source)}, {agent}"
                found.append(_accuracy(title, rows))
                against = _against(results, title, source, agent)
                found += [] if against is None else [against]
                found.append(_reading(title, rows))
                found += [_cost(results, title, name, rows) for name in results["machines"]]
    failed = [row for row in results["points"] if row["failed"]]
    return [*found, _failures(failed)] if failed else found


def source_name(source: str) -> str:
    """Return how a source stands in tables and figures: of a file, its name."""
    name, mark, query = source.partition("?")
    return Path(name).name + mark + query


def length_name(length: int | None) -> str:
    """Return how a length stands in tables and figures."""
    if length is None:
        return "all"
    return f"{length:,}" if length else "as it is"


def _accuracy(title: str, rows: Rows) -> Sheet:
    return Sheet(
        title=f"{title}: accuracy, %",
        columns=("tokens, method", *SCORE_NAMES.values(), "episodes"),
        rows=[
            [_place(row), *(percent(row[name]) for name in SCORES), _episodes(row)] for row in rows
        ],
        note=f"mean [95 % bootstrap interval, exact where all are equal] over "
        f"{_range(rows, 'questions')} questions; failed episodes are not scored: they are left out "
        "of every mean and reported apart",
    )


def _against(results: Mapping[str, Any], title: str, source: str, agent: str) -> Sheet | None:
    from trainers.comparisons import format_p

    rows = [
        row for row in results["comparisons"] if row["source"] == source and row["agent"] == agent
    ]
    if not rows:
        return None
    at = {(row["metric"], row["length"], row["method"]): row for row in rows}
    lines = []
    for row in (row for row in rows if row["metric"] == "em"):
        f1 = at["f1", row["length"], row["method"]]
        counts = f"+{row['gained']} −{row['lost']}" if "gained" in row else "–"
        lines.append(
            [
                f"{length_name(row['length'])}, {row['method']}",
                points(row),
                counts,
                str(row["difference"]["n"]),
                format_p(row["p_value"]),
                format_p(row["p_holm"]),
                points(f1),
                format_p(f1["p_holm"]),
            ]
        )
    families = {row["family"] for row in rows}
    return Sheet(
        title=f"{title}: against {results['baseline']}, on the same questions",
        columns=("tokens, method", "EM, points", "gained, lost", "n", "p", "Holm", "F1", "Holm"),
        rows=lines,
        note="mean difference [95 % paired bootstrap interval, exact where all are equal]; p: "
        "McNemar's exact test, or sign flips where values are not 0 or 1; Holm: corrected for all "
        "lengths, agents and methods of the source "
        f"({' and '.join(map(str, sorted(families)))} comparisons)",
    )


def _reading(title: str, rows: Rows) -> Sheet:
    turns = max(len(row["gold_recall"]) for row in rows)
    return Sheet(
        title=f"{title}: turns, and what was found",
        columns=(
            *("tokens, method", "chunks", "k used", "k productive"),
            *("yes on gold, %", "yes on others, %"),
            *(f"gold after turn {turn}, %" for turn in range(1, turns + 1)),
            "memory tokens",
        ),
        rows=[
            [
                _place(row),
                f"{row['chunks']['mean']:.0f}",
                _number(row["k_used"], 2),
                _number(row["k_productive"], 2),
                percent(row["yes_rate"]["gold"]),
                percent(row["yes_rate"]["other"]),
                *(_recall(row, turn) for turn in range(turns)),
                _number(row["memory_tokens"], 0),
            ]
            for row in rows
        ],
        note="mean ± standard error over questions; yes-rates pooled over reads; gold: share of "
        "the chunks with evidence in which something was found so far, of direct and retrieval "
        "those that were shown",
    )


def _cost(results: Mapping[str, Any], title: str, machine: str, rows: Rows) -> Sheet:
    lengths = results["settings"]["reply_lengths"]
    return Sheet(
        title=f"{title}: cost of a question, simulated machine {machine}",
        columns=(
            *("tokens, method", "calls", "prompt tokens", "cached", "output tokens"),
            *("latency alone, s", "total work, s"),
        ),
        rows=[
            [
                _place(row),
                _number(row["calls"], 1),
                _number(row["prompt_tokens"], 0),
                _number(row["machines"][machine]["cached_tokens"], 0),
                _number(row["output_tokens"], 0),
                _number(row["machines"][machine]["latency_s"], 2),
                _number(row["machines"][machine]["work_s"], 2),
            ]
            for row in rows
        ],
        note="mean ± standard error over questions; latency: critical path of one question on an "
        "idle machine; total work: busy seconds when all slots are taken; replies taken to be "
        + (f"{lengths} tokens long" if lengths else "as long as they were"),
    )


def _failures(rows: Rows) -> Sheet:
    return Sheet(
        title="Episodes that failed: too many calls got no reply",
        columns=("source, agent, tokens, method", "failed", "of"),
        rows=[
            [
                f"{source_name(row['source'])}, {row['agent']}, {_place(row)}",
                str(row["failed"]),
                str(row["failed"] + row["episodes"]),
            ]
            for row in rows
        ],
        note="they are not scored and in no other table",
    )


def _place(row: Mapping[str, Any]) -> str:
    return f"{length_name(row['length'])}, {row['method']}"


def _episodes(row: Mapping[str, Any]) -> str:
    failed = row["failed"]
    return str(row["episodes"]) + (f", {failed} failed" if failed else "")


def _range(rows: Rows, name: str) -> str:
    least, most = min(row[name] for row in rows), max(row[name] for row in rows)
    return str(most) if least == most else f"{least} to {most}"


def _recall(row: Mapping[str, Any], turn: int) -> str:
    known: Sequence[Mapping[str, Any]] = row["gold_recall"]
    return rate(known[turn]) if turn < len(known) and known[turn]["n"] else "–"


def _number(estimate: Mapping[str, Any], digits: int) -> str:
    mean, se = estimate["mean"], estimate["se"]
    if missing(mean):
        return "–"
    text = f"{mean:,.{digits}f}"
    return text if missing(se) or not se else f"{text}±{se:,.{digits}f}"

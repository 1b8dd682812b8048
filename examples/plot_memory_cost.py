"""Where parallel reading is faster than recurrent reading, by how much, and where it isn't.

All of it comes from the cost simulator, on example machines with assumed rates: nothing here
was measured on hardware. Four panels, and the table behind them:

    python examples/plot_memory_cost.py --output docs/memory_cost.png
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mars_envs.parallel_memory.cost import (
    Machine,
    Reading,
    latency_ceiling,
    machine,
    parallel_job,
    parallel_work,
    recurrent_job,
    recurrent_work,
    simulate,
)

CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 720)
SLOTS = (1, 4, 16, 128)
MEMORIES = (10, 30, 100, 300, 1_000, 3_000)
ROOM = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99, 1.1, 1.25)
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
"""Okabe and Ito's, told apart by everybody."""

Row = tuple[str, str, float]
"""(line, where on the horizontal axis, value)"""


def dense(chunks: int = 720, memory: int = 300, turns: int = 2) -> Reading:
    """Chunks of 5K tokens; one reader in fifty reports something, nobody in the last turn."""
    found = max(1, round(0.02 * chunks))
    return Reading(
        chunks=chunks,
        chunk_tokens=5_000,
        head_tokens=50,
        memory_tokens=memory,
        rewrite_tokens=memory,
        yes=(*[found] * (turns - 1), 0),
    )


def moe() -> Reading:
    """Chunks of 15K tokens, memories of 1,200."""
    return dataclasses.replace(dense(240, 1_200), chunk_tokens=15_000)


def latency() -> Iterator[Row]:
    """Speed-up of one question alone, by number of chunks, with an empty cache."""
    for slots in SLOTS:
        server = dataclasses.replace(machine("7b"), slots=slots, cache_tokens=0)
        for chunks in CHUNKS:
            jobs = [recurrent_job(dense(chunks)), parallel_job(dense(chunks))]
            recurrent, parallel = (simulate([job], server).latency_s for job in jobs)
            yield f"{slots} slot{'s'[: slots > 1]}", str(chunks), recurrent / parallel


def throughput() -> Iterator[Row]:
    """Speed-up with every slot taken, by length of a rewritten memory."""
    server = machine("7b")
    for turns, hit in ((2, 1.0), (2, 0.0), (3, 0.0)):
        for memory in MEMORIES:
            reading = dense(memory=memory, turns=turns)
            parallel = parallel_work(reading, server, cached=(0, *[hit] * (turns - 1)))
            name = f"{turns} turns, {'later ones cached' if hit else 'no cache'}"
            yield name, str(memory), recurrent_work(reading, server) / parallel


def work() -> Iterator[tuple[str, float, float]]:
    """(who, busy seconds of reading, of decoding) for one question, by the simulator."""
    for name, reading in (("7b", dense()), ("35b-moe", moe())):
        for cached in (False, True):
            room = None if cached else 0
            server = dataclasses.replace(machine(name), cache_tokens=room)
            if not cached:
                cost = simulate([recurrent_job(reading)], server)
                yield f"{name}\nrecurrent", cost.prefill_s, cost.decode_s
            cost = simulate([parallel_job(reading)], server)
            kind = "cached" if cached else "no cache"
            yield f"{name}\nPI-Mem\n{kind}", cost.prefill_s, cost.decode_s


def hits() -> Iterator[Row]:
    """Share of the second turn's chunks that is cached, by the cache's size in documents."""
    reading = dense(chunks=48)
    document = reading.chunks * (reading.chunk_tokens + reading.memory_tokens)
    one, eight = [parallel_job(reading)], [parallel_job(reading, name=str(i)) for i in range(8)]
    ways: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "one question": (one, {}),
        "one question, every second turn reversed": (one, {"alternate": True}),
        "eight at once": (eight, {"schedule": "turn_major"}),
        "eight, two let in at a time": (eight, {"in_flight": 2}),
    }
    for name, (jobs, options) in ways.items():
        for room in (*ROOM, 1.5, 2, 2.5):
            server = dataclasses.replace(machine("7b"), slots=8, cache_tokens=int(document * room))
            yield name, f"{room:g}", simulate(jobs, server, **options).hit_rate(2)


def draw_lines(axes: Any, rows: Sequence[Row], *, markers: str = "osD^") -> None:
    for at, name in enumerate(dict.fromkeys(row[0] for row in rows)):
        points = [(float(x), value) for line, x, value in rows if line == name]
        axes.plot(
            *zip(*points, strict=True), marker=markers[at], color=COLORS[at], label=name, ms=4
        )
    axes.grid(alpha=0.3)


def draw(tables: dict[str, Sequence[Any]], server: Machine, output: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
    (first, second), (third, fourth) = panels
    draw_lines(first, tables["latency"])
    ceiling = latency_ceiling(dense(), server)
    first.axhline(ceiling, color="grey", ls="--")
    first.text(1, ceiling * 0.9, f"prefill-limited ceiling {ceiling:.1f}x", va="top")
    first.set(title="One question alone: latency", xlabel="chunks of 5,000 tokens", xscale="log")
    draw_lines(second, tables["throughput"])
    second.set(title="Every slot taken: total work", xlabel="tokens of a rewritten memory")
    second.set(xscale="log", yscale="log")
    for axes in (first, second):
        axes.axhline(1, color="black", lw=1)
        axes.set_ylabel("recurrent time / PI-Mem time")
        axes.legend(fontsize=8)
    second.axhspan(0.2, 1, color="grey", alpha=0.15)
    second.text(10, 0.25, "PI-Mem is slower", va="bottom")
    second.minorticks_off()
    second.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
    names = [name for name, *_ in tables["work"]]
    third.bar(names, [read for _, read, _ in tables["work"]], color=COLORS[0], label="reading")
    third.bar(
        names,
        [said for *_, said in tables["work"]],
        bottom=[read for _, read, _ in tables["work"]],
        color=COLORS[1],
        label="decoding",
    )
    third.tick_params(axis="x", labelsize=8)
    third.set(title="Work for a document of 3.6M tokens", ylabel="busy seconds a question")
    third.legend(fontsize=8)
    draw_lines(fourth, tables["hits"])
    fourth.set(title="Chunks found in the cache in the second turn", ylabel="share of tokens")
    fourth.set_xlabel("room of the cache, in documents")
    fourth.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.38, 0.55))
    figure.savefig(output, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, help="of the figure; without it, only the table")
    options = parser.parse_args(arguments)
    tables: dict[str, Sequence[Any]] = {
        "latency": list(latency()),
        "throughput": list(throughput()),
        "work": list(work()),
        "hits": list(hits()),
    }
    print("Computed, not sampled: no interval belongs to these figures.")
    for title in ("latency", "throughput", "hits"):
        print(f"\n{title}")
        rows: Sequence[Row] = tables[title]
        for line in dict.fromkeys(row[0] for row in rows):
            values = "  ".join(f"{x}: {value:.2f}" for name, x, value in rows if name == line)
            print(f"  {line:42} {values}")
    print("\nwork, busy seconds a question: reading + decoding")
    for name, read, said in tables["work"]:
        print(f"  {name.replace(chr(10), ' '):42} {read:.1f} + {said:.1f} = {read + said:.1f}")
    if options.output:
        draw(tables, machine("7b"), options.output)
        print(f"\n{options.output}")


if __name__ == "__main__":
    main()

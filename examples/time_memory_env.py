r"""Time whole episodes of reading with scripted agents, up to documents of millions of tokens.

One row for each length and number of readers: CPU seconds to build the document, to start (the
document is cut into chunks) and to play the episode, what the scripted agents take included; the
peak memory of the process. CPU time, not wall-clock; the median over episodes about different
documents, with the slowest. Each length runs in a process of its own, for its memory to be its own.

Below the table: the exponent b of seconds ~ tokens^b by least squares over all episodes, and 2^b,
by which the time grows with twice the tokens.

    python examples/time_memory_env.py                                           # a few seconds
    python examples/time_memory_env.py --tokens 500000 1000000 2000000 3600000 4000000 \
        --readers 64 1024 --episodes 3                              # the table of docs/pi-mem.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mars_envs import ParallelMemoryEnv, TurnBasedMemoryEnv
from mars_envs.parallel_memory.scripted import oracle

FORMS: dict[str, Any] = {"parallel": ParallelMemoryEnv, "turns": TurnBasedMemoryEnv}
Timing = dict[str, Any]
"""Of one episode: CPU seconds `build`, `start`, `play` and `total` (of the last two); `chunks`,
`calls`, `right`; and `megabytes`, the most memory that the process has had by its end."""


def play(env: Any, speak: Any, first: Any) -> Mapping[str, Any]:
    """Play an episode on from its reset to its end; return the answerer's last info."""
    if isinstance(env, ParallelMemoryEnv):
        observations, infos = first
        while env.agents:
            asked = [agent for agent in env.agents if infos[agent]["active"]]
            observations, _, _, _, infos = env.step({a: speak(observations[a]) for a in asked})
        return infos["answerer_0"]
    while not (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
        env.step(speak(env.observe(env.agent_selection)))
    return env.infos["answerer_0"]


def time_episodes(
    *, form: str, family: str, tokens: int, chunk_tokens: int, readers: int, episodes: int
) -> list[Timing]:
    """Return what each episode took."""
    source = f"{family}?tokens={tokens}&n={episodes}"
    env = FORMS[form](tasks=source, chunk_tokens=chunk_tokens, readers=readers)
    timings = []
    for index, name in enumerate(env.tasks.ids):
        begun = time.process_time()
        task = env.tasks[index]
        built = time.process_time()
        speak = oracle(task)
        del task  # the environment makes its own
        ready = time.process_time()
        first = env.reset(seed=0, options={"task": name})
        started = time.process_time()
        info = play(env, speak, first)
        ended = time.process_time()
        timings.append(
            {
                "build": built - begun,
                "start": started - ready,
                "play": ended - started,
                "total": ended - ready,
                "chunks": info["n_chunks"],
                "calls": info["n_calls"],
                "right": info["exact_match"] == 1.0,
                "megabytes": peak_megabytes(),
            }
        )
    return timings


def peak_megabytes() -> float:
    """Return the most memory that this program has had.

    `getrusage` would count the process that started this one, too: its peak outlives `exec`.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_a_process(**options: Any) -> list[Timing]:
    """Return `time_episodes(**options)` of a process of its own."""
    command = [sys.executable, __file__, "--child", json.dumps(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    timings: list[Timing] = json.loads(done.stdout)
    return timings


def exponent(tokens: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the slope of log seconds over log tokens by least squares, and its standard error.

    Of two points or fewer the error is not known, and NaN.
    """
    x, y = np.log(tokens), np.log(seconds)
    x = x - x.mean()
    slope = float(x @ (y - y.mean()) / (x @ x))
    rest = y - y.mean() - slope * x
    error = np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)) if len(x) > 2 else np.nan
    return slope, float(error)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[4_000, 16_000, 64_000], metavar="N"
    )
    parser.add_argument("--readers", type=int, nargs="+", default=[64], metavar="N")
    parser.add_argument("--chunk-tokens", type=int, default=5_000, metavar="N")
    parser.add_argument("--form", choices=FORMS, default="parallel")
    parser.add_argument("--family", default="kg2", help="of synthetic tasks")
    parser.add_argument("--episodes", type=int, default=2, help="of each row")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.episodes < 1 or len(set(options.tokens)) < 2:
        parser.error("give at least two lengths and one episode, or there is no growth to report")
    return options


def main(arguments: Sequence[str] | None = None) -> dict[tuple[int, int], list[Timing]]:
    options = parse(arguments)
    if options.child:
        print(json.dumps(time_episodes(**json.loads(options.child))))
        return {}
    table = Table(title=f"{options.family}, {options.form}: CPU seconds, median (slowest)")
    columns = ("tokens", "chunks", "readers", "episodes", "right", "calls")
    for column in (*columns, "build", "start", "play", "peak MB"):
        table.add_column(column, justify="right")
    rows = [(tokens, readers) for readers in options.readers for tokens in options.tokens]
    results: dict[tuple[int, int], list[Timing]] = {}
    for tokens, readers in track(rows, "Timing", console=Console(stderr=True), transient=True):
        timings = in_a_process(
            form=options.form,
            family=options.family,
            tokens=tokens,
            chunk_tokens=options.chunk_tokens,
            readers=readers,
            episodes=options.episodes,
        )
        results[tokens, readers] = timings
        table.add_row(
            f"{tokens:,}",
            str(timings[0]["chunks"]),
            str(readers),
            str(len(timings)),
            str(sum(timing["right"] for timing in timings)),
            f"{median(timing['calls'] for timing in timings):g}",
            *(spread([timing[key] for timing in timings]) for key in ("build", "start", "play")),
            f"{timings[-1]['megabytes']:.0f}",
        )
    console = Console(width=120)
    console.print(table)
    for readers in options.readers:
        for what, name in (("build", "building"), ("total", "start and play")):
            points = [(n, t[what]) for n in options.tokens for t in results[n, readers]]
            slope, error = exponent(*zip(*points, strict=True))
            console.print(
                f"{readers} readers, {name}: exponent {slope:.3f} ± {error:.3f} (standard error, "
                f"n = {len(points)}), twice the tokens take {2**slope:.2f}x the time"
            )
    return results


def spread(seconds: Sequence[float]) -> str:
    """Return the median and the largest."""
    return f"{median(seconds):.2f} ({max(seconds):.2f})"


if __name__ == "__main__":
    main()

"""Draw the curves of several benchmarks side by side.

mars-envs bench tree ... --out runs/a
mars-envs bench tree ... --out runs/b
python examples/plot_bench_tree.py runs/a runs/b --titles A,B --output curves.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mars_envs.cli.tree_figure import draw


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of `mars-envs bench tree`")
    parser.add_argument("--titles", default="", help="of the columns, comma-separated")
    parser.add_argument("--output", type=Path, default=Path("curves.png"))
    options = parser.parse_args()
    titles = [title.strip() for title in options.titles.split(",") if title.strip()]
    if titles and len(titles) != len(options.runs):
        parser.error(f"--titles: expected {len(options.runs)} of them, got {len(titles)}")
    results = [json.loads((run / "results.json").read_text("utf-8")) for run in options.runs]
    draw(results, options.output, titles=titles)
    print(options.output)


if __name__ == "__main__":
    main()

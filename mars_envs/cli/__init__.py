"""The `mars-envs` command: the composition root, where the three packages meet.

Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    from .parser import run

    return run(argv)

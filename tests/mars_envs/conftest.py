"""A command that is killed in the middle of its work, as a fixture."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest


@pytest.fixture(scope="session")
def kill_command() -> Callable[[Sequence[str], Callable[[], bool]], int]:
    """Run `mars-envs` and kill it once it has come so far; return its process (and session) id."""

    def run(arguments: Sequence[str], far_enough: Callable[[], bool]) -> int:
        start = "import sys; from mars_envs.cli import main; sys.exit(main())"
        process = subprocess.Popen(
            [sys.executable, "-c", start, *arguments],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        try:
            while process.poll() is None and not far_enough() and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()
        return process.pid

    return run

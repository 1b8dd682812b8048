"""Many threads parse at once while the garbage collector runs Python code."""

from __future__ import annotations

import ast
import gc
import threading
from collections.abc import Callable, Iterator

import pytest

import mars_envs.parsing
import sandbox.parsing

TEXT = "\n".join(f"x{n} = [{n}, ({n} + 1) * f(y, z=[{n}])]" for n in range(300))


@pytest.fixture
def restless_collector() -> Iterator[None]:
    """A collector that comes often and lets other threads in each time."""

    def give_way(phase: str, info: dict[str, int]) -> None:
        for _ in range(200):
            pass

    threshold = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("parse", [mars_envs.parsing.parse, sandbox.parsing.parse])
def test_a_parse_succeeds_whatever_other_threads_parse(
    parse: Callable[[str], ast.Module], restless_collector: None
) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                assert len(parse(TEXT).body) == 300
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_text_that_is_no_python_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        mars_envs.parsing.parse("def")

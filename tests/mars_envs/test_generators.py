"""Any text generator, from many threads."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest

from mars_envs.errors import InvalidSetting
from mars_envs.generators import Generator, Workers


def test_a_function_is_called_with_the_prompt_alone_or_told_how_long_to_be() -> None:
    def plain(prompt: str) -> str:
        return prompt.upper()

    def told(prompt: str, *, max_tokens: int) -> str:
        return f"{prompt} {max_tokens}"

    def open_to_all(prompt: str, **options: Any) -> str:
        return f"{prompt} {sorted(options)}"

    class Model:
        def __call__(self, prompt: str, max_tokens: int = 5) -> str:
            return f"{prompt}/{max_tokens}"

    assert Generator(plain)("a", 7) == "A"
    assert Generator(told)("a", 7) == "a 7"
    assert Generator(open_to_all)("a", 7) == "a ['max_tokens']"
    assert Generator(Model())("a", 7) == "a/7"
    assert Generator(str)("a", 7) == "a"


def test_an_async_function_runs_in_one_loop_for_all_threads() -> None:
    loops = set()
    together = 0
    most = 0

    async def generate(prompt: str) -> str:
        nonlocal together, most
        loops.add(asyncio.get_running_loop())
        together += 1
        most = max(most, together)
        while most < 3:  # all three must be in flight for any to end
            await asyncio.sleep(0.001)
        together -= 1
        return prompt + "!"

    with Generator(generate) as generator, Workers[int, str](3) as workers:
        for key in range(3):
            workers.start(key, partial(generator, str(key), 1))
        assert sorted(workers.take() for _ in range(3)) == [(0, "0!"), (1, "1!"), (2, "2!")]
    assert len(loops) == 1


async def test_it_works_where_a_loop_is_running() -> None:
    async def generate(prompt: str) -> str:
        await asyncio.sleep(0)
        return prompt

    with Generator(generate) as generator:
        assert generator("a", 1) == "a"


def test_closing_cancels_what_is_awaited() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def generate(prompt: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return prompt

    workers = Workers[str, str](1)
    with Generator(generate) as generator:
        workers.start("a", partial(generator, "a", 1))
        begun.wait()
    assert ended.wait(30)
    assert isinstance(workers.take()[1], BaseException)
    workers.close()


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(InvalidSetting, match="generate must return a text"):
        Generator(lambda prompt: text)("a", 1)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidSetting, match="a function from a prompt to a text"):
        Generator("model")  # type: ignore[arg-type]


def test_no_more_calls_are_in_flight_than_allowed_and_results_come_as_they_are_ready() -> None:
    running, most, lock = 0, 0, threading.Lock()
    gates = [threading.Event() for _ in range(6)]

    def call(key: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gates[key].wait(30)
        with lock:
            running -= 1
        return key * 10

    with Workers[int, int](2) as workers:
        for key in range(6):
            workers.start(key, partial(call, key))
        assert workers.free == -4
        gates[1].set()
        assert workers.take() == (1, 10)
        for gate in gates:
            gate.set()
        assert sorted(workers.take() for _ in range(5)) == [(k, 10 * k) for k in (0, 2, 3, 4, 5)]
        assert (most, workers.open, workers.free) == (2, 0, 2)


def test_whatever_a_call_raises_is_its_result() -> None:
    def call() -> str:
        raise SystemExit(3)

    with Workers[str, str](1) as workers:
        workers.start("a", call)
        key, result = workers.take()
        assert key == "a"
        assert isinstance(result, SystemExit)
    with pytest.raises(InvalidSetting, match="at least one call"):
        Workers(0)


def test_closing_drops_what_was_not_begun() -> None:
    begun, gate, ran = threading.Event(), threading.Event(), []

    def call(key: int) -> None:
        begun.set()
        gate.wait(30)
        ran.append(key)

    workers = Workers[int, None](1)
    for key in range(3):
        workers.start(key, partial(call, key))
    begun.wait(30)
    workers.close()
    gate.set()
    assert workers.take()[0] == 0
    time.sleep(0.05)  # time in which another could begin
    assert ran == [0]

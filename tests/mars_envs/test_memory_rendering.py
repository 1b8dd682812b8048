"""A reading episode as text and as a picture."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from mars_envs import ParallelMemoryEnv, SinglePassEnv
from mars_envs.parallel_memory.replies import Read
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.reading.document import TextDocument
from mars_envs.testing import stub_reading_tasks

GREEN, RED, GREY = (44, 160, 44), (214, 39, 40), (170, 185, 200)


def make(**options: Any) -> ParallelMemoryEnv:
    (task,) = stub_reading_tasks(1)
    return ParallelMemoryEnv(tasks=[task], chunk_tokens=9, **options)


def play(env: ParallelMemoryEnv, steps: int = 99) -> None:
    observations, infos = env.reset(seed=0)
    speak = oracle(env.task)
    while env.agents and steps:
        asked = [agent for agent in env.agents if infos[agent]["active"]]
        observations, _, _, _, infos = env.step({a: speak(observations[a]) for a in asked})
        steps -= 1


def test_the_text_shows_turns_memory_and_answer() -> None:
    env = make(render_mode="ansi")
    play(env)
    assert str(env.render()).splitlines() == [
        "stub/0  What is the city of traveller 0?",
        "6 chunks, at most 3 turns",
        "turn   read  found  gold  failed  malformed  dropped  memory",
        "   1      6      1   1/1       0          0        0       9  |.#....|",
        "   2      6      0   0/1       0          0        0       9  |......|",
        "memory: The city of traveller 0 is Ulm0 today.",
        "answer: Ulm0  (answered, no_new_evidence)",
    ]


def test_the_text_shows_a_turn_in_the_middle() -> None:
    env = make(render_mode="ansi", readers=3)
    env.reset(seed=0)
    env.step({"reader_0": Read.no(), "reader_1": Read.yes("Ulm")})
    lines = str(env.render()).splitlines()
    assert lines[3:] == [
        "   1      2      1   1/1       1          0                   |.#x   |",
        "memory: (empty)",
        "reading, turn 1; 3 calls so far",
    ]


def test_a_long_document_fits_on_a_line() -> None:
    (task,) = stub_reading_tasks(1, chunks=200)
    env = ParallelMemoryEnv(tasks=[task], chunk_tokens=9, readers=256, render_mode="ansi")
    play(env)
    strips = [line.split("|")[1] for line in str(env.render()).splitlines() if "|" in line]
    assert [len(strip) for strip in strips] == [64, 64]
    assert strips[0] == "#" + "." * 63


def test_human_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="human")
    env.reset(seed=0)
    assert env.render() is None
    assert "What is the city of traveller 0?" in capsys.readouterr().out


def test_a_document_does_not_steer_the_terminal() -> None:
    (task,) = stub_reading_tasks(1)
    task = dataclasses.replace(
        task, question="Why \x1b[31m?", document=TextDocument("\x1b[2J text")
    )
    env = ParallelMemoryEnv(tasks=[task], render_mode="ansi")
    env.reset(seed=0)
    env.step({"reader_0": Read.yes("\x1b[2J\u202e")})
    env.step({"merger_0": "\x1b[2J\u202e"})
    assert str(env.render()).replace("\n", "").isprintable()


def test_a_picture_shows_turns_below_each_other_and_chunks_side_by_side() -> None:
    pytest.importorskip("PIL")
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    blank = env.render()
    assert isinstance(blank, np.ndarray)
    assert (blank.shape, blank.dtype) == ((480, 640, 3), np.uint8)
    play(env)
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    # Six columns from 56 to 624, rows of 60 pixels from 40: evidence was found in the second chunk.
    middles = [56 + int((624 - 56) * (i + 0.5) / 6) for i in range(6)]
    assert [tuple(picture[60, x].tolist()) for x in middles] == [GREY, GREEN, *[GREY] * 4]
    assert [tuple(picture[120, x].tolist()) for x in middles] == [GREY] * 6


def test_failed_reads_are_red_even_where_chunks_are_narrower_than_a_pixel() -> None:
    pytest.importorskip("PIL")
    (task,) = stub_reading_tasks(1, chunks=2000)
    env = ParallelMemoryEnv(
        tasks=[task], chunk_tokens=9, readers=2000, render_mode="rgb_array", retries=0
    )
    _, infos = env.reset(seed=0)
    asked = [agent for agent in env.agents if infos[agent]["active"]]
    env.step({agent: Read.no() for agent in asked if agent != "reader_1000"})
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert RED in {tuple(pixel) for pixel in picture[60, 335:345].tolist()}


def test_what_is_answered_at_once_can_be_drawn_too() -> None:
    pytest.importorskip("PIL")
    env = SinglePassEnv(tasks=stub_reading_tasks(1), render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (480, 640, 3)  # type: ignore[union-attr]

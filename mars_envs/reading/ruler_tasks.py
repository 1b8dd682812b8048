"""RULER's synthetic tasks, generated offline: needles in a haystack, variable tracking, words.

The tasks are those of RULER (Hsieh et al. 2024): `niah` in its eight variants, `vt` with one chain
of four copies, `fwe` with words of a Zipf law. Two things differ. RULER takes essays from the
internet for a haystack: here that is prose of the synthetic tasks' grammar, or a file of yours.
And a text holds no instruction: the question stands apart from the document.
"""

from __future__ import annotations

import dataclasses
import random
import string
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import InvalidSetting
from .haystacks import (
    NOISE,
    CodedWords,
    Generated,
    Lines,
    Needles,
    Secrets,
    distinct,
    file_text,
    grammar_text,
    needle,
    seeded,
)
from .ruler_settings import FILE, RulerSettings, ruler_settings
from .synthetic.assemble import Special, assemble
from .synthetic.lazy import SyntheticTasks
from .synthetic.placement import Wish
from .synthetic.text import Distractors
from .task import ReadingTask

DEPTHS: Final = 40
"""Needles stand at as many evenly spaced places, from the start to the end."""

_WORDS_OF_LINE: Final = 16
_ASKED_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class RulerRecipe:
    """How the tasks of a generator are built.

    Args:
        name: of `RULER_TASKS`.
        settings: of all tasks.
    """

    name: str
    settings: RulerSettings

    @property
    def tokens(self) -> int:
        """Of every document."""
        return self.settings.tokens

    @property
    def tokenizer(self) -> Any:
        """Counts them."""
        return self.settings.tokenizer

    @property
    def kind(self) -> str:
        """Of every task: not the bare name, since there is a synthetic family "vt"."""
        return f"ruler:{self.name}"

    def task_id(self, index: int) -> str:
        """Return the name of a task."""
        return f"ruler-{self.name}-{self.settings.seed}-{index}"

    def build(self, index: int, words: int, ratio: float) -> ReadingTask:
        """Build a task with a document of so many words."""
        make = {"vt": _vt, "fwe": _fwe}.get(self.name, _niah)
        return make(self, self.task_id(index), words)

    def sample(self, words: int) -> ReadingTask:
        """Build a task to measure its words."""
        return self.build(0, words, 1.0)


def ruler_tasks(name: str, **options: Any) -> SyntheticTasks:
    """Return tasks like those of RULER.

    Args:
        name: one of `RULER_TASKS`; `niah` is any of its kind, by options.
        options: see `RulerSettings`; words, as from a command line, are taken for values.

    Raises:
        InvalidSetting: no such task or option, or a value that it cannot have.

    Example:
        >>> task = ruler_tasks("niah_multiquery", tokens=2000, n=1)[0]
        >>> len(task.answers), task.match, task.document.tokens
        (4, 'all', 2000)
    """
    settings = ruler_settings(name, options)
    return SyntheticTasks(RulerRecipe(name, settings), range(settings.n))


def _niah(recipe: RulerRecipe, task_id: str, words: int) -> ReadingTask:
    settings = recipe.settings
    draw = seeded(task_id)
    keys, values = Secrets(settings.key_type), Secrets(settings.value_type)
    chosen = _sample(draw, keys, settings.keys)
    secrets = values.words(
        np.array(_sample(draw, values, settings.keys * settings.values), np.int64)
    )
    names = keys.words(np.array(chosen, np.int64))
    asked = sorted(draw.sample(range(settings.keys), settings.queries))
    needles: list[Special] = []
    answers: list[str] = []
    for number, name in enumerate(names):
        for nth in range(settings.values):
            value = secrets[number * settings.values + nth]
            hop = len(answers) if number in asked else None
            text = needle(settings.value_type, name, value)
            needles.append(_line(text, hop, name))
            if hop is not None:
                answers.append(value)
    depths = settings.depths
    if depths is None:
        depths = tuple(draw.randrange(DEPTHS) / (DEPTHS - 1) for _ in answers)
    haystack = _haystack(settings, task_id, tuple(chosen))
    wish = Wish(placement="any", order="random", chunk=None, depths=depths)
    document, evidence = assemble(needles, haystack, words, wish, draw)
    *first, last = (names[number] for number in asked)
    listed = f"{', '.join(first)} and {last}" if first else last
    ask = "What is the" if len(answers) == 1 else "What are all the"
    what = settings.value_type[:-1] if len(answers) == 1 else settings.value_type
    return ReadingTask(
        task_id=task_id,
        question=f"{ask} special magic {what} for {listed} in the text?",
        document=document,
        answers=tuple(answers),
        match="any" if len(answers) == 1 else "all",
        evidence=evidence,
        hops=1,
        kind=recipe.kind,
        source=_source(recipe),
    )


def _vt(recipe: RulerRecipe, task_id: str, words: int) -> ReadingTask:
    settings = recipe.settings
    draw = seeded(task_id)
    length = settings.hops + 1
    names = distinct(
        settings.chains * length, lambda: "".join(draw.choices(string.ascii_uppercase, k=5))
    )
    values = distinct(settings.chains, lambda: str(draw.randint(10_000, 99_999)))
    specials = []
    for number, value in enumerate(values):
        chain = names[number * length : (number + 1) * length]
        sources = [value, *chain]
        for hop, (name, source) in enumerate(zip(chain, sources, strict=False)):
            text = f"VAR {name} = {source}" if hop == 0 else f"VAR {name} = VAR {source}"
            specials.append(_line(text, hop if number == 0 else None, source))
    haystack = _haystack(settings, task_id, ())
    wish = Wish(placement="any", order=settings.order, chunk=None, depths=settings.depths)
    document, evidence = assemble(specials, haystack, words, wish, draw)
    return ReadingTask(
        task_id=task_id,
        question=f"Which variables are assigned the value {values[0]} in the text? List all.",
        document=document,
        answers=tuple(names[:length]),
        match="all",
        evidence=evidence,
        hops=length,
        kind=recipe.kind,
        source=_source(recipe),
    )


def _fwe(recipe: RulerRecipe, task_id: str, words: int) -> ReadingTask:
    settings = recipe.settings
    for attempt in range(100):
        seed = f"{task_id}|{attempt}"
        law = CodedWords(seed, settings.words, settings.alpha)
        haystack = Generated(seed, law.lines, _WORDS_OF_LINE)
        # From the bits that the haystack is written from: counted without being written.
        counts = np.zeros(settings.words, np.int64)
        left, block = words, 0
        while left > 0:
            ids = law.ids(haystack.bits_of(block)).ravel()[:left]
            counts += np.bincount(ids, minlength=settings.words)
            left, block = left - len(ids), block + 1
        order = np.argsort(-counts, kind="stable")
        if (np.diff(counts[order[: _ASKED_WORDS + 1]]) < 0).all():
            break
    else:
        raise InvalidSetting(f"{words} words do not have {_ASKED_WORDS} most frequent ones")
    document, _ = assemble([], haystack, words, _ANYWHERE, seeded(task_id))
    return ReadingTask(
        task_id=task_id,
        question=f"Which {_ASKED_WORDS} words are the most frequent in the coded text?",
        document=document,
        answers=tuple(law.vocabulary[i] for i in order[:_ASKED_WORDS].tolist()),
        match="all",
        kind=recipe.kind,
        source=_source(recipe),
    )


_ANYWHERE: Final = Wish(placement="any", order="random", chunk=None, depths=None)


def _line(text: str, hop: int | None, trigger: str) -> Special:
    if hop is None:
        return Special(text=f"{text}\n")
    return Special(text=f"{text}\n", hop=hop, span=(0, len(text)), triggers=(trigger,))


def _haystack(settings: RulerSettings, task_id: str, taken: tuple[int, ...]) -> Distractors:
    if settings.haystack == "repeat":
        return Lines(NOISE)
    if settings.haystack == "grammar":
        return grammar_text(task_id)
    if settings.haystack.startswith(FILE):
        return file_text(settings.haystack.removeprefix(FILE))
    keys, values = Secrets(settings.key_type, taken), Secrets(settings.value_type)
    return Generated(f"{task_id}|needles", Needles(keys, values, settings.value_type).lines, 2)


def _sample(draw: random.Random, secrets: Secrets, count: int) -> list[int]:
    """Return numbers of different secrets, none of them barred."""
    return distinct(count, lambda: draw.randrange(secrets.size), secrets.barred)


def _source(recipe: RulerRecipe) -> dict[str, str]:
    settings = dataclasses.asdict(recipe.settings)
    return {
        "data": "RULER, generated",
        "seed": str(settings["seed"]),
        "haystack": "words" if recipe.name == "fwe" else settings["haystack"],
    }

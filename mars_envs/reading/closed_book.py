"""Which questions can be answered without their document, and hence teach nothing about reading.

MemAgent's filter: two models are asked twice each for the question alone, and an item goes if any
of the four replies has the answer in its box, or anywhere in its text. The last rule is harsh where
answers are short: hardly any question that is answered by "no" stays. `contains="words"` is milder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from threading import Event
from typing import Any, Literal, TypeVar, get_args

from ..errors import InvalidSetting, MarsEnvsError
from ..generators import Generator, TextGenerator, Workers, may_come_again
from ..judging.answers import MATCHES, normalize_answer, sub_em
from ..parallel_memory.drive import LONGEST_DELAY_S
from ..parallel_memory.prompts import ClosedBookView, resolve_prompts
from ..parallel_memory.workflow import Phase, Speaker
from .task import ReadingTask

Contains = Literal["substring", "words", "never"]
Why = Literal["boxed", "contained"]

_CLOSED = frozenset({"yes", "no"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A reply that knew the answer without the document."""

    task_id: str
    gold: str
    """The reference answer; of a task that needs all of its answers, all of them."""
    reply: str
    why: Why
    """"boxed": it is the answer in the box. "contained": it stands somewhere in the reply."""
    asked: str
    """Which generator, by its place from 0, and which of its samples: "1/0"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBook:
    """What a closed-book filter found. Every task is in exactly one of the three lists."""

    kept: tuple[ReadingTask, ...]
    """Nobody knew the answer."""
    dropped: tuple[ReadingTask, ...]
    """Somebody did: `hits` says who."""
    undecided: tuple[ReadingTask, ...]
    """No reply knew the answer, but at least one never came."""
    hits: tuple[Hit, ...]
    """All of them, in the order of the tasks."""
    replies: int
    """Replies that came."""
    failed: int
    """Replies that never came."""

    @property
    def accuracy(self) -> float | None:
        """Share of the replies whose box is right; None without replies. A check for leakage."""
        boxed = sum(hit.why == "boxed" for hit in self.hits)
        return boxed / self.replies if self.replies else None


class ClosedBookFailed(MarsEnvsError, RuntimeError):
    """Not one reply came."""


def closed_book_filter(
    tasks: Iterable[ReadingTask],
    *,
    generate: TextGenerator | Sequence[TextGenerator] = (),
    speak: Speaker | Sequence[Speaker] = (),
    samples: int = 2,
    contains: Contains = "substring",
    prompts: Any = "prose",
    max_tokens: int = 512,
    concurrency: int = 8,
    retries: int = 2,
    delay_s: float = 0.5,
    failures: tuple[type[Exception], ...] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ClosedBook:
    r"""Ask for every question without its document, and sort the tasks by whether anyone knows.

    Args:
        tasks: to be sorted; their documents are not read.
        generate: one or several functions from a prompt to a text, async or not; to be worth more
            than one sample each, they have to draw by chance.
        speak: beside or instead, functions from an observation to a text.
        samples: how often each of them is asked.
        contains: what counts beside a right answer in a box. "substring": the answer anywhere in
            the reply, whatever its case, as published. "words": the same as whole words, but of
            "yes" and "no", which any sentence may hold. "never": nothing.
        prompts: see `resolve_prompts`; function `closed_book`.
        max_tokens: the most that a reply should have.
        concurrency: calls in flight at most.
        retries: how often a failed call is made again.
        delay_s: before that; doubled each time, at most half a minute.
        failures: exceptions that mean that no reply will come. Others end it all. None: all but
            `mars_envs.generators.PROGRAMMING_ERRORS`.
        progress: called with the number of replies so far, after each one.

    Raises:
        InvalidSetting: nobody to ask, or a value that cannot work.
        ClosedBookFailed: there was something to ask and not one reply came.

    Example:
        >>> from mars_envs.reading import ReadingTask, TextDocument
        >>> def task(name, question, answer):
        ...     return ReadingTask(
        ...         task_id=name, question=question, document=TextDocument(""), answers=(answer,)
        ...     )
        >>> tasks = [task("a", "Capital of France?", "Paris"), task("b", "My cat?", "Mia")]
        >>> found = closed_book_filter(tasks, generate=lambda prompt: r"\boxed{Paris}")
        >>> [one.task_id for one in found.kept], found.hits[0].why, found.accuracy
        (['b'], 'boxed', 0.5)
    """
    for name, value, least in (("samples", samples, 1), ("retries", retries, 0)):
        if value < least:
            raise InvalidSetting(f"{name} must be at least {least}, got {value}")
    if contains not in get_args(Contains):
        raise InvalidSetting(f"contains is one of {get_args(Contains)}, got {contains!r:.80}")
    every = list(tasks)
    render = resolve_prompts(prompts, needs=("closed_book",)).closed_book
    speakers = [_speaking(one, render, max_tokens) for one in _several(speak)]
    hits: dict[_Key, Hit] = {}
    missing: set[int] = set()
    replies, last = 0, None
    with ExitStack() as stack:
        models = [stack.enter_context(Generator(one)) for one in _several(generate)]
        askers = [*(_generating(one, render, max_tokens) for one in models), *speakers]
        if not askers:
            raise InvalidSetting("give generate= or speak=: somebody has to be asked")
        patience = _Patience(retries, delay_s, failures)
        keys = product(range(len(every)), range(len(askers)), range(samples))
        calls = ((key, partial(askers[key[1]], every[key[0]])) for key in keys)
        for done, (key, result) in enumerate(_in_flight(calls, concurrency, patience), start=1):
            if isinstance(result, Exception):
                missing.add(key[0])
                last = result
            else:
                replies += 1
                hit = _hit(every[key[0]], result, contains, f"{key[1]}/{key[2]}")
                if hit is not None:
                    hits[key] = hit
            if progress is not None:
                progress(done)
    asked = len(every) * len(askers) * samples
    if last is not None and not replies:
        raise ClosedBookFailed(
            f"not one of {asked} replies came; the last one because: {type(last).__name__}: {last}"
        ) from last
    known = {key[0] for key in hits}
    return ClosedBook(
        kept=tuple(t for i, t in enumerate(every) if i not in known | missing),
        dropped=tuple(t for i, t in enumerate(every) if i in known),
        undecided=tuple(t for i, t in enumerate(every) if i in missing - known),
        hits=tuple(hits[key] for key in sorted(hits)),
        replies=replies,
        failed=asked - replies,
    )


_Key = tuple[int, int, int]
"""A task, who is asked, and which sample."""
_Ask = Callable[[ReadingTask], str]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Patience:
    """With calls that fail."""

    retries: int
    delay_s: float
    failures: tuple[type[Exception], ...] | None

    def reply(self, call: Callable[[], str], stopping: Event) -> str:
        """Make a call until it succeeds or may not be made again."""
        for attempt in range(self.retries):
            try:
                return call()
            except Exception as error:
                if not may_come_again(error, self.failures):
                    raise
                stopping.wait(min(LONGEST_DELAY_S, self.delay_s * 2**attempt))
        return call()


def _in_flight(
    calls: Iterator[tuple[_Key, Callable[[], str]]], concurrency: int, patience: _Patience
) -> Iterator[tuple[_Key, str | Exception]]:
    """Make all calls, some at a time; yield what each came to, in any order."""
    with Workers[_Key, str](concurrency) as workers:
        while True:
            for key, call in islice(calls, max(0, workers.free)):
                workers.start(key, partial(patience.reply, call, workers.stopping))
            if not workers.open:
                return
            key, result = workers.take()
            if isinstance(result, str) or (
                isinstance(result, Exception) and may_come_again(result, patience.failures)
            ):
                yield key, result
            elif isinstance(result, BaseException):
                raise result
            else:
                raise InvalidSetting(f"a reply is a text (str), got a {type(result).__name__}")


def _generating(generator: Generator, render: Callable[[Any], str], max_tokens: int) -> _Ask:
    return lambda task: generator(render(ClosedBookView(question=task.question)), max_tokens)


def _speaking(speak: Speaker, render: Callable[[Any], str], max_tokens: int) -> _Ask:
    def ask(task: ReadingTask) -> str:
        prompt = render(ClosedBookView(question=task.question))
        return speak(
            {
                "phase": int(Phase.ANSWER),
                "active": 1,
                "turn": 1,
                "max_turns": 1,
                "prompt": prompt,
                "question": task.question,
                "memory": "",
                "chunk": "",
                "chunk_index": -1,
                "n_chunks": 0,
                "selected": "",
                "role": "answerer",
                "max_tokens": max_tokens,
                "gated": 0,
            }
        )

    return ask


def _hit(task: ReadingTask, reply: str, contains: Contains, asked: str) -> Hit | None:
    """Return how a reply has the answer, if it has."""
    gold = ", ".join(task.answers) if task.match == "all" else task.answers[0]
    why: Why
    if MATCHES["squad_em"](reply, task):
        why = "boxed"
    elif _contained(task, reply, contains):
        why = "contained"
    else:
        return None
    return Hit(task_id=task.task_id, gold=gold, reply=reply, why=why, asked=asked)


def _contained(task: ReadingTask, reply: str, contains: Contains) -> bool:
    if contains == "never":
        return False
    if contains == "substring":
        found = [gold.lower() in reply.lower() for gold in task.answers]
    else:
        found = [
            normalize_answer(gold) not in _CLOSED and sub_em(reply, gold) for gold in task.answers
        ]
    return all(found) if task.match == "all" else any(found)


def _several(one: _T | Sequence[_T]) -> Sequence[_T]:
    return one if isinstance(one, Sequence) else [one]

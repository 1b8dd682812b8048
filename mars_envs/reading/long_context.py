"""Long contexts: the passages of an item among others of a pool, as many as wanted.

This is how the long versions of HotpotQA are made (RULER's qa tasks, MemAgent, PI-Mem): an item's
own paragraphs, some of which are its evidence, are shuffled among unrelated ones. Here each item is
shuffled by a seed of its own, so that where the evidence stands says nothing about where that of
another item does. (The published files of one length share a single permutation.)
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidSetting
from ..importing import import_object, is_importable
from .joined import HEADER, SEPARATOR, JoinedDocument, Passage
from .passages import Numbered, Own, own_passages, passage_pool
from .task import Evidence, ReadingTask
from .tokenizers import offsets_of, resolve_tokenizer

GRAMMAR: Final = "mars_envs.reading.synthetic:filler_passages"

_TRIED = 64
"""Passages that are tried for the last gap."""
_SPARE = 64
_BATCH = 512
_USUAL = 100
"""Tokens of a passage, about: where headers are counted, the last one stands for all."""


class Endless(Protocol):
    """Passages without end: pairs of title and text by number."""

    def __getitem__(self, number: int) -> tuple[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LongContextSettings:
    """How long contexts are made.

    Raises:
        InvalidSetting: not exactly one of `tokens` and `documents`, or a value that cannot be.
    """

    tokens: int | None = None
    """Tokens that a document has at most; as many passages as fit."""
    documents: int | None = None
    """Passages of a document."""
    seed: int = 0
    """Draws and orders the passages, together with the id of the item."""
    headers: bool = True
    """Whether "Document i:" stands before each."""
    fill: str | Callable[[str], Endless] = "refuse"
    """What to do where the pool has too few: "refuse"; "grammar" takes passages of the synthetic
    tasks' grammar; "module:function" or a function of a seed that returns passages without end."""
    tokenizer: Any = "words"
    """Counts `tokens`; see `resolve_tokenizer`. Passages are counted one by one."""

    def __post_init__(self) -> None:
        if (self.tokens is None) == (self.documents is None):
            raise InvalidSetting(
                "a long context needs `tokens` or `documents`, one of the two, got "
                f"tokens={self.tokens!r}, documents={self.documents!r}"
            )
        for name in ("tokens", "documents"):
            value = getattr(self, name)
            good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if value is not None and not good:
                raise InvalidSetting(
                    f"{name} must be a whole number, at least 1, got {value!r:.80}"
                )
        known = callable(self.fill) or self.fill in ("refuse", "grammar")
        if not known and not is_importable(str(self.fill)):
            raise InvalidSetting(
                f'fill must be "refuse", "grammar" or "module:function", got {self.fill!r:.80}'
            )


class LongContextTasks(Sequence[ReadingTask]):
    """Tasks with long contexts, each built when it is asked for, and the same every time.

    Make them with `long_context_tasks`.
    """

    def __init__(
        self,
        items: Sequence[ReadingTask],
        pool: Sequence[Passage],
        settings: LongContextSettings,
    ) -> None:
        self.settings = settings
        self._items = tuple(items)
        numbered = Numbered()
        for passage in pool:
            numbered.add(passage)
        self._distractors = self._pool = len(numbered.passages)
        self._tokenizer = resolve_tokenizer(settings.tokenizer)
        self._fill_up(numbered)
        self._own = [own_passages(item, numbered) for item in self._items]
        self.passages: tuple[Passage, ...] = tuple(numbered.passages)
        """All of them; the documents of all tasks are made of these."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the tasks, in order."""
        return tuple(item.task_id for item in self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ReadingTask]: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | Sequence[ReadingTask]:
        if isinstance(index, slice):
            return _Slice(self, range(len(self))[index])
        return self._build(self._items[index], self._own[index])

    def _build(self, item: ReadingTask, own: Own) -> ReadingTask:
        seed = hashlib.sha256(f"{self.settings.seed}|{item.task_id}".encode()).digest()
        draw = random.Random(seed)
        order = self._chosen(item.task_id, own, draw)
        draw.shuffle(order)
        header = HEADER if self.settings.headers else ""
        document = JoinedDocument(self.passages, order, header=header)
        places = {number: place for place, number in enumerate(order)}
        evidence = []
        for piece, (number, offset) in zip(item.evidence, own.evidence, strict=True):
            start = document.text_start(places[number]) + offset
            evidence.append(
                Evidence(
                    start=start,
                    end=start + len(piece.text),
                    text=piece.text,
                    doc_id=self.passages[number].doc_id,
                    triggers=piece.triggers,
                )
            )
        length = self.settings.documents or self.settings.tokens
        unit = "documents" if self.settings.documents else "tokens"
        return replace(
            item,
            document=document,
            evidence=tuple(evidence),
            source={**item.source, unit: str(length), "seed": str(self.settings.seed)},
        )

    def _chosen(self, task_id: str, own: Own, draw: random.Random) -> list[int]:
        """Return the passages of an item: those needed, then its others, then of the pool."""
        needed = set(own.needed)
        others = [number for number in own.numbers if number not in needed]
        draw.shuffle(others)
        first = [*own.needed, *others]
        if self.settings.documents is not None:
            wanted = self.settings.documents
            drawn = self._drawn(own, draw, wanted - len(first))
            chosen = [*first, *drawn][:wanted]
            if wanted < len(own.needed):
                raise _too_short(task_id, "documents", wanted, len(own.needed))
            if len(chosen) < wanted:
                raise self._refused(f"{wanted} documents", f"{len(chosen)}")
            return chosen
        return self._fitting(task_id, own, first, draw)

    def _fitting(self, task_id: str, own: Own, first: list[int], draw: random.Random) -> list[int]:
        wanted = self.settings.tokens or 0
        needed = int(self._counts[list(own.needed)].sum())
        if needed > wanted:
            raise _too_short(task_id, "tokens", wanted, needed)
        guess = int(1.1 * wanted / max(1.0, float(self._counts.mean()))) + _SPARE
        while True:
            candidates = [*first, *self._drawn(own, draw, guess)]
            sums = np.cumsum(self._counts[candidates])
            fit = int(np.searchsorted(sums, wanted, side="right"))
            if fit < len(candidates) or guess >= self._distractors:
                break
            guess *= 2
        if fit == len(candidates):
            available = int(sums[-1])
            # What is missing is less than a passage, or the pool has no more.
            if wanted - available > self._counts.max():
                raise self._refused(f"{wanted} tokens", f"{available}")
        chosen = candidates[:fit]
        room = wanted - (int(sums[fit - 1]) if fit else 0)
        for number in candidates[fit : fit + _TRIED]:
            if self._counts[number] <= room:
                chosen.append(number)
                room -= int(self._counts[number])
        return chosen

    def _drawn(self, own: Own, draw: random.Random, count: int) -> list[int]:
        """Return distractors, at most `count`, those of the pool first."""
        if count <= 0:
            return []
        found: list[int] = []
        brought = set(own.numbers)
        for numbers in (range(self._pool), range(self._pool, self._distractors)):
            spare = min(len(numbers), count - len(found) + len(own.numbers) + self._twins(own))
            for number in draw.sample(numbers, spare):
                if number not in brought and self.passages[number].title not in own.titles:
                    found.append(number)
            if len(found) >= count:
                return found[:count]
        return found

    def _twins(self, own: Own) -> int:
        """Return how many passages have a title of an item's own: they may hold its evidence."""
        return sum(self._titles.get(title, 0) for title in own.titles)

    @cached_property
    def _titles(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for passage in self.passages[: self._distractors]:
            if passage.title:
                found[passage.title] = found.get(passage.title, 0) + 1
        return found

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """Tokens of each passage with its header and what follows it."""
        known = self._filled if self._filled is not None else np.empty(0, np.int64)
        return np.concatenate([known, self._counted(self.passages[len(known) :])])

    def _counted(self, passages: Sequence[Passage]) -> NDArray[np.int64]:
        last = (self.settings.tokens or 0) // _USUAL + 1
        header = HEADER.format(number=last) if self.settings.headers else ""
        found = [np.empty(0, np.int64)]
        for first in range(0, len(passages), _BATCH):
            texts = [f"{header}{p.render()}{SEPARATOR}" for p in passages[first : first + _BATCH]]
            ends = np.cumsum([len(text) for text in texts])
            starts = offsets_of(self._tokenizer, "".join(texts))[:, 0]
            found.append(np.diff(np.searchsorted(starts, ends), prepend=0))
        return np.concatenate(found)

    def _fill_up(self, numbered: Numbered) -> None:
        """Add passages until any item finds enough, where that is asked for."""
        self._filled: NDArray[np.int64] | None = None
        if self.settings.fill == "refuse" or not self._items:
            return
        passages = numbered.passages
        by_tokens = self.settings.tokens is not None
        counts = self._counted(passages) if by_tokens else np.ones(len(passages), np.int64)
        # Passages of the pool that an item may have to leave out: its own, and their namesakes.
        unused = max(len(item.document.parts) for item in self._items) + _SPARE
        wanted = self.settings.tokens if by_tokens else self.settings.documents
        missing = (wanted or 0) + unused * int(counts.max(initial=1)) - int(counts.sum())
        endless: Endless | None = None
        drawn = 0
        while missing > 0:
            endless = endless or self._filler()
            before = len(passages)
            for number in range(drawn, drawn + _BATCH):
                numbered.add(Passage(f"filler-{number}", *endless[number]))
            drawn += _BATCH
            added = passages[before:]
            new = self._counted(added) if by_tokens else np.ones(len(added), np.int64)
            if not len(new):
                raise InvalidSetting(f"the passages that {self.settings.fill} makes are all alike")
            counts = np.concatenate([counts, new])
            missing -= int(new.sum())
        self._filled = counts if by_tokens else None
        self._distractors = len(passages)

    def _filler(self) -> Endless:
        fill: Any = self.settings.fill
        if not callable(fill):
            fill = import_object(GRAMMAR if fill == "grammar" else fill)
        endless: Endless = fill(f"long context|{self.settings.seed}")
        return endless

    def _refused(self, wanted: str, found: str) -> InvalidSetting:
        return InvalidSetting(
            f"the pool of {self._pool} passages is too small for {wanted}: it makes {found}; ask "
            'for less, give a larger pool, or fill it up (fill="grammar", --fill grammar)'
        )


class _Slice(Sequence[ReadingTask]):
    """Some of the tasks."""

    def __init__(self, tasks: LongContextTasks, places: range) -> None:
        self._tasks, self._places = tasks, places
        self.passages = tasks.passages
        self.ids = tuple(tasks.ids[place] for place in places)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ReadingTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ReadingTask]: ...
    def __getitem__(self, index: int | slice) -> ReadingTask | Sequence[ReadingTask]:
        places = self._places[index]
        if isinstance(places, range):
            return _Slice(self._tasks, places)
        return self._tasks[places]


def long_context_tasks(
    items: Sequence[ReadingTask],
    *,
    pool: Sequence[Passage] | None = None,
    settings: LongContextSettings,
) -> LongContextTasks:
    """Return tasks whose documents are long: an item's passages among those of a pool.

    A passage of the pool with the title of one of the item's own is not used for it: it may hold
    the same evidence. Documents with fewer passages than an item brings keep those with evidence.

    Args:
        items: whose documents have parts, as those of HotpotQA and MuSiQue do.
        pool: of distractors, repeated ones are used once; None: those of all items.
        settings: how long, and how.

    Raises:
        InvalidTask: the document of an item has no parts, or evidence between them.
        InvalidSetting: when a task is asked for: its document cannot be made so short or so long.
    """
    return LongContextTasks(items, passage_pool(items) if pool is None else pool, settings)


def _too_short(task_id: str, unit: str, wanted: int, needed: int) -> InvalidSetting:
    return InvalidSetting(
        f"{task_id}: its evidence alone takes {needed} {unit}, so it cannot be made to fit "
        f"{wanted}; ask for more {unit}"
    )

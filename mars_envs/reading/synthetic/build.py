"""From a plan to a task: sentences, documents, distractors up to the length, evidence in place."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from ..task import Evidence, ReadingTask
from .family import UNKNOWN, Family
from .filler import BLOCK, Filler, Layout
from .grammar import TOKEN, Template, count_tokens
from .names import Names, Numbers
from .placement import Item, Wish, place
from .plan import Draw, Passage, Planned
from .settings import SyntheticSettings
from .text import Run, Stretch, SyntheticDocument, Whole

_HINT: Final = f' If the text does not say, answer "{UNKNOWN}".'


def build_task(family: Family, settings: SyntheticSettings, index: int, tokens: int) -> ReadingTask:
    """Build one task.

    Args:
        family: of the task.
        settings: of the family.
        index: of the task.
        tokens: of its document, of the tokenizer "words".

    Raises:
        InvalidSetting: the settings cannot be met together.
    """
    name = f"{family.name}|{settings.split}|{settings.seed}|{index}"
    draw = Draw(
        random=_random(name, "plan"),
        names=Names(settings.name_split, settings.vocabulary),
        numbers=Numbers(settings.vocabulary),
        settings=settings,
        topic=family.topic,
    )
    plan = family.plan(draw)
    layout = Layout(
        family.topic, settings.style, settings.held_out_templates, _sentences(family, settings)
    )
    choose = _random(name, "words")
    texts = [_write(document, layout, choose) for document in plan.documents]
    filler = Filler(
        seed=f"{name}|filler",
        layout=layout,
        names=draw.names,
        numbers=draw.numbers,
        taken_names=tuple(draw.taken_names),
        taken_numbers=tuple(draw.taken_numbers),
        values=plan.values,
    )
    wish = Wish(
        placement=settings.placement,
        order=settings.order,
        chunk=settings.chunk_tokens,
        depths=settings.depths or plan.depths,
    )
    document, where = _assemble(texts, filler, tokens, wish, _random(name, "places"))
    return ReadingTask(
        task_id=f"{family.name}-{settings.split}-{settings.seed}-{index}",
        question=plan.question + (_HINT if settings.style == "prose" else ""),
        document=document,
        answers=plan.answers,
        match=plan.match,
        evidence=_evidence(texts, document, where),
        hops=plan.hops,
        kind=family.name,
        source={
            "data": "synthetic",
            "split": settings.split,
            "seed": str(settings.seed),
            "style": settings.style,
        },
    )


def _random(name: str, what: str) -> random.Random:
    return random.Random(hashlib.sha256(f"{name}|{what}".encode()).digest())


def _sentences(family: Family, settings: SyntheticSettings) -> int:
    if family.topic.own_subjects:
        return settings.sentences
    return min(settings.sentences, len(family.topic.attributes))


@dataclass(frozen=True)
class _Written:
    """A planned document in words."""

    text: str
    plan: Planned
    span: tuple[int, int]
    """Of the evidence in it, in characters."""
    passage: Passage | None
    """The evidence."""

    @cached_property
    def item(self) -> Item:
        """What placing it takes to know."""
        before, evidence = self.text[: self.span[0]], self.text[slice(*self.span)]
        first = count_tokens(before)
        return Item(
            tokens=count_tokens(self.text),
            hop=self.plan.hop,
            passage=(first, first + count_tokens(evidence)),
            after=self.plan.after,
        )


def _write(document: Planned, layout: Layout, choose: random.Random) -> _Written:
    sentences = [_template(p, layout.templates, choose).write(p.fact) for p in document.passages]
    text = layout.write(document.subject, sentences)
    start = len(document.subject) + 1 if layout.titled else 0
    for passage, sentence in zip(document.passages, sentences, strict=True):
        if passage.hop is not None:
            return _Written(text, document, (start, start + len(sentence)), passage)
        start += len(sentence) + 1
    return _Written(text, document, (0, 0), None)


def _template(passage: Passage, templates: Sequence[Template], choose: random.Random) -> Template:
    kind = "number" if passage.fact.value.isdigit() else "name"
    return choose.choice([template for template in templates if template.value == kind])


def _assemble(
    texts: Sequence[_Written], filler: Filler, tokens: int, wish: Wish, draw: random.Random
) -> tuple[SyntheticDocument, dict[int, int]]:
    """Return the document, and in which of its stretches each of the texts stands."""
    items = [text.item for text in texts]
    room = tokens - sum(item.tokens for item in items)
    if room < 0:
        raise InvalidSetting(
            f"{tokens} tokens do not hold the evidence and the decoys, which have "
            f"{tokens - room}; ask for more tokens, or fewer `decoys` or `sentences`"
        )
    before = _fill(filler, room)
    placed = place(items, before, wish, draw)
    stretches: list[Stretch] = []
    where: dict[int, int] = {}
    slot = 0
    for one in placed:
        stretches.extend(_runs(filler, before, slot, one.slot))
        where[one.item] = len(stretches)
        text = texts[one.item]
        title = text.plan.subject if filler.layout.titled else ""
        stretches.append(Whole(text.text, title))
        slot = one.slot
    stretches.extend(_runs(filler, before, slot, len(before) - 1))
    return SyntheticDocument(filler, stretches, tokens=tokens), where


def _fill(filler: Filler, room: int) -> NDArray[np.int64]:
    """Return the tokens before each of the distractors that fill the room, and the room itself."""
    lengths = [np.zeros(0, np.int64)]
    total = block = 0
    while total < room:
        lengths.append(filler.lengths(block)[0])
        total += int(lengths[-1].sum())
        block += 1
    ends = np.cumsum(np.concatenate(lengths))
    whole = int(np.searchsorted(ends, room))  # the last one is cut where the room ends
    return np.concatenate([[0], ends[:whole], [room] if room else []]).astype(np.int64)


def _runs(filler: Filler, before: NDArray[np.int64], first: int, last: int) -> list[Stretch]:
    """Return the distractors from `first` up to `last`, the last of all cut to its tokens."""
    runs: list[Stretch] = []
    end = len(before) - 2  # the last one may be cut
    block = first // BLOCK
    stop = min(last, end)
    while first < stop:
        upto = min(stop, (block + 1) * BLOCK)
        runs.append(Run(block, first - block * BLOCK, upto - block * BLOCK))
        first, block = upto, block + 1
    if first <= end < last and end >= 0:
        nth = end % BLOCK
        (text,) = filler.render(end // BLOCK, nth, nth + 1)
        title = filler.titles(end // BLOCK)[nth]
        runs.append(Whole(_cut(text, int(before[-1] - before[-2])), title))
    return runs


def _cut(text: str, tokens: int) -> str:
    """Return the beginning of a distractor, with the blanks that a document ends in."""
    for nth, match in enumerate(TOKEN.finditer(text), 1):
        if nth == tokens:
            body = text.rstrip("\n")
            return text[: match.end()] + text[len(body) :]
    return text


def _evidence(
    texts: Sequence[_Written], document: SyntheticDocument, where: dict[int, int]
) -> tuple[Evidence, ...]:
    found = {}
    for number, text in enumerate(texts):
        if text.passage is None or text.passage.hop is None:
            continue
        start = document.start_of(where[number])
        found[text.passage.hop] = Evidence(
            start=start + text.span[0],
            end=start + text.span[1],
            text=text.text[slice(*text.span)],
            doc_id=document.doc_id_of(where[number]),
            triggers=text.passage.triggers,
        )
    return tuple(found[hop] for hop in sorted(found))

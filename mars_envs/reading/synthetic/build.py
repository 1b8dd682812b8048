"""From a plan to a task: its documents in words, among distractors of the same grammar."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any, Final

from ..task import ReadingTask
from .assemble import Special, assemble
from .family import UNKNOWN, Family
from .filler import Filler, Layout
from .grammar import Template
from .names import Names, Numbers
from .placement import Wish
from .plan import Draw, Passage, Planned
from .settings import SyntheticSettings

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
    specials = [_write(document, layout, choose) for document in plan.documents]
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
        depths=settings.depths,
        within=plan.within,
    )
    document, evidence = assemble(specials, filler, tokens, wish, _random(name, "places"))
    return ReadingTask(
        task_id=task_id(family, settings, index),
        question=plan.question + (_HINT if settings.style == "prose" else ""),
        document=document,
        answers=plan.answers,
        match=plan.match,
        evidence=evidence,
        hops=plan.hops,
        kind=family.name,
        no_evidence=not evidence,
        source={
            "data": "synthetic",
            "split": settings.split,
            "seed": str(settings.seed),
            "style": settings.style,
        },
    )


def task_id(family: Family, settings: SyntheticSettings, index: int) -> str:
    """Return the name of a task; at another length it has the same."""
    return f"{family.name}-{settings.split}-{settings.seed}-{index}"


def _random(name: str, what: str) -> random.Random:
    return random.Random(hashlib.sha256(f"{name}|{what}".encode()).digest())


def _sentences(family: Family, settings: SyntheticSettings) -> int:
    if family.topic.own_subjects:
        return settings.sentences
    return min(settings.sentences, len(family.topic.attributes))


def _write(document: Planned, layout: Layout, choose: random.Random) -> Special:
    sentences = [_template(p, layout.templates, choose).write(p.fact) for p in document.passages]
    start = len(document.subject) + 1 if layout.titled else 0
    found: dict[str, Any] = {}
    for passage, sentence in zip(document.passages, sentences, strict=True):
        if passage.hop is not None:
            span = (start, start + len(sentence))
            found = {"hop": passage.hop, "span": span, "triggers": passage.triggers}
        start += len(sentence) + 1
    return Special(
        text=layout.write(document.subject, sentences),
        title=document.subject if layout.titled else "",
        after=document.after,
        before=document.before,
        **found,
    )


def _template(passage: Passage, templates: Sequence[Template], choose: random.Random) -> Template:
    kind = "number" if passage.fact.value.isdigit() else "name"
    return choose.choice([template for template in templates if template.value == kind])

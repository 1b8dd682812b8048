"""HotpotQA records as reading tasks (Yang et al., 2018), in both layouts.

Official: `context` is a list of [title, [sentence, ...]] and `supporting_facts` of [title, number].
On hubs, `context` is {"title": [...], "sentences": [[...], ...]} and `supporting_facts` {"title":
[...], "sent_id": [...]}, and the record's `_id` is `id`.

The document is the paragraphs in order, each with its title on a line of its own. Evidence is the
supporting sentences. The data set does not say which of two paragraphs leads to the other; it is
taken to be the one whose supporting sentences name the title of the other, where the question does
not, and then that title is what the other's sentences can be recognised by.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..tasks.records import Record
from .evidence import as_written, rounds, stands_in, verify_evidence
from .joined import JoinedDocument, Passage
from .task import Evidence, ReadingTask

REQUIRED: Final = ("_id|id", "question", "context", "supporting_facts", "answer")
"""Fields by which the format is recognised."""

LICENCE: Final = "CC BY-SA 4.0"

_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)$")
_PAIRS = "[title, [sentence, ...]] pairs, or an object with `title` and `sentences`"


def task_from_record(record: Record) -> ReadingTask:
    """Build the task of a record.

    Where a supporting fact names a sentence that its paragraph does not have, as a few of the
    published ones do, the evidence is left unknown and `source["unresolved_facts"]` counts them.

    Raises:
        InvalidTask: a field is missing or wrong; the test files of the data set have no answers.
    """
    paragraphs = _paragraphs(record)
    passages = tuple(_passages(paragraphs))
    document = JoinedDocument(passages)
    question = record.filled("question")
    facts, unresolved = _facts(record, paragraphs)
    evidence = () if unresolved else _evidence(document, paragraphs, facts, question)
    kind = record.text("type", "")
    chained = any(item.triggers for item in evidence)
    source = {"data": "HotpotQA", "licence": LICENCE, "level": record.text("level", "")}
    if unresolved:
        source["unresolved_facts"] = str(unresolved)
    task = ReadingTask(
        task_id=record.filled("_id" if record.has("_id") else "id"),
        question=question,
        document=document,
        answers=(record.filled("answer"),),
        evidence=evidence,
        hops=max(rounds(question, evidence), default=0) if chained or kind == "comparison" else 0,
        kind=kind,
        source={key: value for key, value in source.items() if value},
    )
    verify_evidence(task)
    return task


def _paragraphs(record: Record) -> list[tuple[str, list[str]]]:
    context = record.data.get("context")
    if isinstance(context, dict):
        titles, sentences = context.get("title"), context.get("sentences")
        if not isinstance(titles, list) or not isinstance(sentences, list):
            raise record.error("context", _PAIRS, fix="use one of the two published layouts")
        if len(titles) != len(sentences):
            raise record.error(
                "context", "as many `sentences` as titles", fix="one list for each title"
            )
        context = list(map(list, zip(titles, sentences, strict=True)))
    good = isinstance(context, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], list)
        and all(isinstance(sentence, str) for sentence in pair[1])
        for pair in context
    )
    if not good or not context:
        raise record.error("context", _PAIRS, fix="use one of the two published layouts")
    return [(pair[0], pair[1]) for pair in context]


def _passages(paragraphs: list[tuple[str, list[str]]]) -> list[Passage]:
    seen: dict[str, int] = {}
    passages = []
    for title, sentences in paragraphs:
        seen[title] = seen.get(title, 0) + 1
        doc_id = title if seen[title] == 1 else f"{title}#{seen[title]}"
        passages.append(Passage(doc_id, title, "".join(sentences)))
    return passages


def _facts(
    record: Record, paragraphs: list[tuple[str, list[str]]]
) -> tuple[list[tuple[int, int]], int]:
    """Return paragraph and sentence of each supporting fact, and how many have no sentence."""
    facts: Any = record.data.get("supporting_facts")
    if isinstance(facts, dict):
        titles, numbers = facts.get("title"), facts.get("sent_id")
        if isinstance(titles, list) and isinstance(numbers, list) and len(titles) == len(numbers):
            facts = list(map(list, zip(titles, numbers, strict=True)))
    good = isinstance(facts, list) and all(
        isinstance(fact, list)
        and len(fact) == 2
        and isinstance(fact[0], str)
        and isinstance(fact[1], int)
        and not isinstance(fact[1], bool)
        for fact in facts
    )
    if not good:
        raise record.error(
            "supporting_facts",
            "[title, sentence number] pairs, or an object with `title` and `sent_id`",
            fix="use one of the two published layouts",
        )
    found: dict[tuple[int, int], None] = {}
    unresolved = 0
    titles = [title for title, _ in paragraphs]
    for title, number in facts:
        if title not in titles:
            raise record.error(
                "supporting_facts",
                f"titles that the context has ({title!r} is none)",
                fix="name paragraphs of this record",
            )
        place = titles.index(title)
        sentences = paragraphs[place][1]
        if 0 <= number < len(sentences) and sentences[number].strip():
            found[place, number] = None
        else:
            unresolved += 1
    return list(found), unresolved


def _evidence(
    document: JoinedDocument,
    paragraphs: list[tuple[str, list[str]]],
    facts: list[tuple[int, int]],
    question: str,
) -> tuple[Evidence, ...]:
    by_place: dict[int, list[Evidence]] = {}
    for place, number in facts:
        sentences = paragraphs[place][1]
        sentence = sentences[number]
        start = document.text_start(place) + sum(map(len, sentences[:number]))
        start += len(sentence) - len(sentence.lstrip())
        text = sentence.strip()
        by_place.setdefault(place, []).append(
            Evidence(
                start=start,
                end=start + len(text),
                text=text,
                doc_id=document.passage(place).doc_id,
            )
        )
    if len(by_place) != 2:
        return tuple(item for items in by_place.values() for item in items)
    (first, second) = by_place
    link = _link(by_place[first], paragraphs[second][0], question)
    back = _link(by_place[second], paragraphs[first][0], question)
    if back and not link:
        first, second, link, back = second, first, back, link
    if not link or back:  # neither leads to the other, or each: then both can be found at once
        return (*by_place[first], *by_place[second])
    return (
        *by_place[first],
        *(
            Evidence(
                start=item.start,
                end=item.end,
                text=item.text,
                doc_id=item.doc_id,
                triggers=(link,),
            )
            for item in by_place[second]
        ),
    )


def _link(sentences: list[Evidence], title: str, question: str) -> str:
    """Return the name of a paragraph as sentences of another have it; empty: they do not lead."""
    name = _DISAMBIGUATION.sub("", title)
    if as_written(name, question) or stands_in(name, question):
        return ""
    return next(filter(None, (as_written(name, item.text) for item in sentences)), "")

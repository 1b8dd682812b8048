"""How right an answer to a reading task is, by every measure at once or by one with a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import InvalidSetting
from ...importing import import_function
from ...reading.task import ReadingTask
from .boxes import boxed, math_strict
from .choices import choice_index
from .text import bare, f1_score, normalize_answer, sub_em, sub_em_bidirectional

Match = Callable[[str, ReadingTask], float]
"""From a whole reply and its task to a reward in [0, 1]."""

_SEPARATORS = re.compile(r"[,;\n]|\band\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScores:
    """How right an answer is, each in [0, 1]. No answer scores 0 everywhere.

    With several accepted answers the best counts. Of a task whose answers all belong to it
    (`match="all"`) the answer is read as a list. Of a multiple choice question every figure says
    whether the choice is the right one.
    """

    em: float = 0.0
    """Exact match; of a list, whether it has all values and no other."""
    f1: float = 0.0
    """F1 of the words; of a list, F1 of the values."""
    sub_em: float = 0.0
    """Whether the gold answer stands in the answer; of a list, whether all values do."""
    sub_em_bidirectional: float = 0.0
    """The published rule of MemAgent and PI-Mem, see `sub_em_bidirectional`, guarded: an answer of
    which normalisation leaves nothing is right only where it is the gold answer itself."""
    recall: float = 0.0
    """Share of the values that stand in the answer; without a list, `sub_em`."""


def score_answer(answer: str, task: ReadingTask) -> AnswerScores:
    r"""Say how right `answer` is.

    Args:
        answer: an answer; of a text with a `\boxed{}` its content.
        task: what was asked.
    """
    found = boxed(answer)
    answer = (answer if found is None else found).strip()
    if not answer:
        return AnswerScores()
    if task.choices:
        return _uniform(_chosen(answer, task))
    if task.match == "all":
        return _list_scores(answer, task.answers)
    if not normalize_answer(answer):
        return _uniform(bare(answer) in {bare(gold) for gold in task.answers})
    within = float(sub_em(answer, task.answers))
    # A gold answer of which nothing is left can only be met by itself, and this one is not it.
    golds = [gold for gold in task.answers if normalize_answer(gold)]
    return AnswerScores(
        em=float(normalize_answer(answer) in {normalize_answer(gold) for gold in golds}),
        f1=f1_score(answer, golds),
        sub_em=within,
        sub_em_bidirectional=float(sub_em_bidirectional(answer, golds)),
        recall=within,
    )


def match_all(answer: str, golds: Sequence[str]) -> float:
    """Return the share of `golds` that stand in `answer`, by `sub_em`; 0 where there are none.

    Example:
        >>> match_all("the numbers are 123 and 456", ["123", "456", "789", "12"])
        0.5
    """
    return sum(sub_em(answer, gold) for gold in golds) / len(golds) if golds else 0.0


def _of_box(measure: Callable[[AnswerScores], float]) -> Match:
    def match(reply: str, task: ReadingTask) -> float:
        answer = boxed(reply)
        return 0.0 if answer is None else measure(score_answer(answer, task))

    return match


MATCHES: Mapping[str, Match] = {
    "squad_em": _of_box(lambda scores: scores.em),
    "squad_f1": _of_box(lambda scores: scores.f1),
    "sub_em": _of_box(lambda scores: scores.sub_em),
    "sub_em_bidirectional": _of_box(lambda scores: scores.sub_em_bidirectional),
    "recall": _of_box(lambda scores: scores.recall),
    "math_strict": lambda reply, task: float(math_strict(reply, task.answers)),
}
"""The rules that have a name. All read the box of the reply; a reply without one scores 0."""


def resolve_match(source: str | Match) -> Match:
    """Return the rule of that name.

    Args:
        source: a name in `MATCHES`, "module:name" of a function from a reply and a `ReadingTask` to
            a number in [0, 1], or such a function.

    Raises:
        InvalidSetting: no such rule.
    """
    if isinstance(source, str) and source in MATCHES:
        return MATCHES[source]
    function: Match = import_function(
        source,
        what="match",
        known=", ".join(MATCHES),
        kind="a function from a reply and a task to a number in [0, 1]",
        must="is a function from a reply and a task to a number in [0, 1]",
    )

    def match(reply: str, task: ReadingTask) -> float:
        score = float(function(reply, task))
        if not 0.0 <= score <= 1.0:
            raise InvalidSetting(
                f"the match {source!r:.60} must return a number in [0, 1], got {score}"
            )
        return score

    return match


def _chosen(answer: str, task: ReadingTask) -> bool:
    chosen = choice_index(answer, task.choices)
    return chosen is not None and chosen in {
        choice_index(gold, task.choices) for gold in task.answers
    }


def _uniform(right: bool) -> AnswerScores:
    value = float(right)
    return AnswerScores(em=value, f1=value, sub_em=value, sub_em_bidirectional=value, recall=value)


def _list_scores(answer: str, golds: Sequence[str]) -> AnswerScores:
    """An answer read as a list; a value with a separator in it counts for `recall` only."""
    recall = match_all(answer, golds)
    said = {_key(part) for part in _SEPARATORS.split(answer)} - {""}
    wanted = {_key(gold) for gold in golds} - {""}
    common = len(said & wanted)
    f1 = 2 * common / (len(said) + len(wanted)) if common else 0.0
    whole = float(said == wanted or (len(golds) == 1 and _key(answer) in wanted))
    return AnswerScores(
        em=whole,
        f1=max(f1, whole),
        sub_em=float(recall == 1.0),
        sub_em_bidirectional=float(recall == 1.0),
        recall=recall,
    )


def _key(text: str) -> str:
    return normalize_answer(text) or bare(text)

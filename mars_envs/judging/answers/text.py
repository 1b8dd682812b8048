"""Answers compared as texts: SQuAD's normalisation, exact match, F1, and containment.

Every function takes one accepted answer or several, of which the best counts, and takes time linear
in the length of its texts. Sources: the official scripts of SQuAD 1.1 and HotpotQA
(hotpot_evaluate_v1), MuSiQue (metrics/answer) and RULER (scripts/eval/synthetic/constants).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import InvalidSetting

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})
"""Answers that are right or wrong as a whole: HotpotQA gives no partial credit for them."""

F1Rule = Literal["hotpotqa", "musique"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far two bags of words, or two sets, agree."""

    f1: float = 0.0
    precision: float = 0.0
    recall: float = 0.0


def normalize_answer(text: str) -> str:
    """Return `text` in lower case, without ASCII punctuation and articles, with single spaces.

    Other scripts' punctuation stays, as in the official scripts: `“Apollo 11”` is not `Apollo 11`.

    Example:
        >>> normalize_answer("The  U.S. Senate!")
        'us senate'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str | Sequence[str]) -> bool:
    """Whether the two are equal once normalised.

    This is the official rule to the letter, so "the" equals "": `AnswerScores` has guards.
    """
    answer = normalize_answer(prediction)
    return any(answer == normalize_answer(one) for one in _several(gold))


def overlap(prediction: str, gold: str, *, rule: F1Rule = "hotpotqa") -> Overlap:
    """Return precision, recall and F1 of the words of `prediction`, counted as often as they occur.

    Args:
        prediction: the answer to judge.
        gold: the accepted one.
        rule: "hotpotqa": where either is yes, no or noanswer and they differ, 0; 0 as well where
            either is empty. "musique": no such rule, and two empty answers agree.

    Raises:
        InvalidSetting: no such rule.
    """
    if rule not in ("hotpotqa", "musique"):
        raise InvalidSetting(f"the F1 rule is 'hotpotqa' or 'musique', got {rule!r:.60}")
    answer, wanted = normalize_answer(prediction), normalize_answer(gold)
    if rule == "hotpotqa":
        if answer != wanted and (answer in _CLOSED or wanted in _CLOSED):
            return Overlap()
    elif not answer or not wanted:
        same = float(answer == wanted)
        return Overlap(same, same, same)
    words, wanted_words = answer.split(), wanted.split()
    common = (Counter(words) & Counter(wanted_words)).total()
    if not common:
        return Overlap()
    precision, recall = common / len(words), common / len(wanted_words)
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)


def f1_score(prediction: str, gold: str | Sequence[str], *, rule: F1Rule = "hotpotqa") -> float:
    """Return the F1 of the words, see `overlap`.

    Example:
        >>> f1_score("in Paris, France", ["Paris", "Lyon"])
        0.5
    """
    return max((overlap(prediction, one, rule=rule).f1 for one in _several(gold)), default=0.0)


def sub_em(prediction: str, gold: str | Sequence[str]) -> bool:
    """Whether `gold` stands in `prediction`, both normalised, as whole words.

    Ours: "no" does not stand in "unknown", nor "19" in "1969". Where a gold answer has letters of a
    script without upper and lower case, many of which are written without spaces, any place counts.
    A gold answer of which nothing is left, such as "A", must be the whole prediction.
    """
    return any(_holds(prediction, one) for one in _several(gold))


def sub_em_bidirectional(prediction: str, gold: str | Sequence[str]) -> bool:
    """Whether either stands in the other, both normalised: MemAgent's and PI-Mem's published rule.

    For figures that are to be compared with theirs. It is lenient: "1" is right for "1969", and a
    prediction of which nothing is left ("", "a") for everything; where no answer was given at all,
    it is not to be asked.
    """
    answer = normalize_answer(prediction)
    wanted = [normalize_answer(one) for one in _several(gold)]
    return any(one in answer or answer in one for one in wanted)


def string_match_all(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """RULER's score of all tasks but its questions: the mean share of references that are found.

    Substrings, whatever their case, not normalised.

    Args:
        predictions: [N].
        references: [N], what should stand in each.

    Returns:
        0 to 100, with two digits.

    Raises:
        InvalidSetting: nothing to score, or not one list of references for each prediction.
    """
    return _string_match(predictions, references, lambda found: sum(found) / len(found))


def string_match_part(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """RULER's score of its questions: the share of predictions with any reference in them.

    Otherwise as `string_match_all`.
    """
    return _string_match(predictions, references, lambda found: float(any(found)))


def _string_match(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    share: Callable[[Sequence[bool]], float],
) -> float:
    if not predictions or len(predictions) != len(references) or not all(references):
        raise InvalidSetting(
            "expected at least one prediction, and for each a list of references, got "
            f"{len(predictions)} predictions and {len(references)} lists"
            + (", some of them empty" if not all(references) else "")
        )
    total = 0.0
    for prediction, wanted in zip(predictions, references, strict=True):
        total += share([one.lower() in prediction.lower() for one in wanted])
    return round(100 * total / len(predictions), 2)


def _holds(prediction: str, gold: str) -> bool:
    answer, wanted = normalize_answer(prediction), normalize_answer(gold)
    if not wanted:
        return bare(prediction) == bare(gold) != ""
    if any(letter.isalpha() and letter.lower() == letter.upper() for letter in wanted):
        return wanted in answer
    return f" {wanted} " in f" {answer} "


def bare(text: str) -> str:
    """What is left to compare where normalisation leaves nothing: `text`, trimmed, without case."""
    return " ".join(text.casefold().split())


def _several(gold: str | Sequence[str]) -> Sequence[str]:
    return [gold] if isinstance(gold, str) else gold

"""HotpotQA's official evaluation: answers, supporting facts, and both together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InvalidTask
from .text import Overlap, exact_match, overlap

Fact = tuple[str, int]
"""Title of a paragraph, and number of the sentence in it, from 0."""


def supporting_facts(
    predicted: Iterable[Sequence[Any]], gold: Iterable[Sequence[Any]]
) -> tuple[bool, Overlap]:
    """Return whether the two sets of facts are equal, and how far they overlap.

    Two empty sets are equal and yet have an F1 of 0, as the official script has it.
    """
    said, true = {tuple(fact) for fact in predicted}, {tuple(fact) for fact in gold}
    common = len(said & true)
    precision = common / len(said) if said else 0.0
    recall = common / len(true) if true else 0.0
    return said == true, _harmonic(precision, recall)


def hotpot_metrics(
    prediction: Mapping[str, Mapping[str, Any]], gold: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Score a prediction file as hotpot_evaluate_v1 does.

    A question without a predicted answer scores 0 in `em`, `f1`, `prec` and `recall`, one without
    predicted facts in `sp_*`; the joint figures need both. All are means over all of `gold`.
    Joint precision and recall are products, and so is joint exact match.

    Args:
        prediction: `{"answer": {id: str}, "sp": {id: [[title, sentence], ...]}}`.
        gold: records with `_id`, `answer` and `supporting_facts`.

    Returns:
        `em`, `f1`, `prec`, `recall`, then the same with `sp_` and with `joint_`, each in [0, 1].

    Raises:
        InvalidTask: `gold` is empty.
    """
    if not gold:
        raise InvalidTask("there is no gold record to score against")
    answers, facts = prediction.get("answer", {}), prediction.get("sp", {})
    sums = dict.fromkeys(
        [f"{kind}{name}" for kind in ("", "sp_", "joint_") for name in _NAMES], 0.0
    )
    for record in gold:
        of_answer = of_facts = None
        if record["_id"] in answers:
            answer = answers[record["_id"]]
            of_answer = exact_match(answer, record["answer"]), overlap(answer, record["answer"])
            _add(sums, "", *of_answer)
        if record["_id"] in facts:
            of_facts = supporting_facts(facts[record["_id"]], record["supporting_facts"])
            _add(sums, "sp_", *of_facts)
        if of_answer and of_facts:
            precision = of_answer[1].precision * of_facts[1].precision
            recall = of_answer[1].recall * of_facts[1].recall
            _add(sums, "joint_", of_answer[0] and of_facts[0], _harmonic(precision, recall))
    return {name: total / len(gold) for name, total in sums.items()}


_NAMES = ("em", "f1", "prec", "recall")


def _add(sums: dict[str, float], kind: str, em: bool, parts: Overlap) -> None:
    values = (float(em), parts.f1, parts.precision, parts.recall)
    for name, value in zip(_NAMES, values, strict=True):
        sums[kind + name] += value


def _harmonic(precision: float, recall: float) -> Overlap:
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return Overlap(f1, precision, recall)

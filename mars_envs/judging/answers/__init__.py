"""Answers judged: normalisation, exact match, F1, containment, boxes, lists and choices."""

from .boxes import boxed, math_strict, normalize_math, without_thinking
from .choices import choice_index
from .hotpot import hotpot_metrics, supporting_facts
from .scores import MATCHES, AnswerScores, Match, match_all, resolve_match, score_answer
from .text import (
    Overlap,
    exact_match,
    f1_score,
    normalize_answer,
    overlap,
    string_match_all,
    string_match_part,
    sub_em,
    sub_em_bidirectional,
)

__all__ = [
    "MATCHES",
    "AnswerScores",
    "Match",
    "Overlap",
    "boxed",
    "choice_index",
    "exact_match",
    "f1_score",
    "hotpot_metrics",
    "match_all",
    "math_strict",
    "normalize_answer",
    "normalize_math",
    "overlap",
    "resolve_match",
    "score_answer",
    "string_match_all",
    "string_match_part",
    "sub_em",
    "sub_em_bidirectional",
    "supporting_facts",
    "without_thinking",
]

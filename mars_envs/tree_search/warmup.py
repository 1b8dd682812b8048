"""Supervised examples for tiny coders: how a program looks, and that feedback is worth reading.

A random model never writes a program that runs, so it could not learn from rewards. These examples
teach the form and a little of the content, and leave the rest to reinforcement learning:

* only four of the ten operation words get their true operator, the others a random one;
* a missing constant is a random guess at the root;
* half of the examples are refinements, with true feedback about the parent: a parent that passed is
  repeated; a missing constant is read from the feedback half of the time; otherwise something
  changes.

Prompts are exactly those of `compact_prompts`, for tasks of the training split.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from ..judging.base import CaseFeedback, Feedback
from ..tasks.code import CodeTask, ExpectedCase
from ..tasks.tiny_code import (
    CONSTANTS,
    OPERATORS,
    PUBLIC_INPUTS,
    WORDS,
    TinyProgram,
    TinySpec,
    tiny_tasks,
)
from . import compact_prompts
from .prompts import ParentView

GROUNDED_WORDS: Final = ("add", "sub", "mul", "mod")
"""The words whose operator the warm-up tells."""


def warmup_pairs(
    rng: random.Random,
    n: int,
    *,
    refine_share: float = 0.5,
    read_share: float = 0.5,
    grounded: Sequence[str] = GROUNDED_WORDS,
) -> list[tuple[str, str]]:
    """Draw `n` examples as (prompt, completion).

    Args:
        rng: source of every choice.
        n: how many examples.
        refine_share: the share of refinement prompts.
        read_share: how often a missing constant is read from the feedback rather than guessed.
        grounded: words that get their true operator.
    """
    tasks = tiny_tasks("train")
    pairs = []
    for _ in range(n):
        index = rng.randrange(len(tasks))
        spec, task = tasks.specs[index], tasks[index]
        answer = _attempt(spec, rng, grounded)
        prompt = compact_prompts.root(task, "")
        if rng.random() < refine_share:
            parent = answer
            feedback = public_feedback(task, parent)
            answer = _refinement(spec, parent, feedback, rng, read_share, grounded)
            view = ParentView(
                reply=parent.source,
                program=parent.source,
                feedback=feedback,
                solved_public=feedback.failure is None,
            )
            prompt = compact_prompts.refine(task, view, "")
        pairs.append((prompt, answer.source))
    return pairs


def public_feedback(task: CodeTask, program: TinyProgram) -> Feedback:
    """What a judge would say of `program`, worked out without running it."""
    passed, failure = 0, None
    for n, test in zip(PUBLIC_INPUTS, task.public, strict=True):
        assert isinstance(test, ExpectedCase)
        actual = f"{program.evaluate(n)}\n"
        if actual == test.expected:
            passed += 1
        elif failure is None:
            failure = CaseFeedback(
                name=test.name,
                status="wrong_answer",
                input=test.input,
                expected=test.expected,
                actual=actual,
            )
    status = "accepted" if failure is None else failure.status
    return Feedback(passed=passed, total=len(task.public), status=status, failure=failure)


def _attempt(spec: TinySpec, rng: random.Random, grounded: Sequence[str]) -> TinyProgram:
    first, second = (
        WORDS[word] if word in grounded else rng.choice(OPERATORS) for word in spec.words
    )
    constant = rng.choice(CONSTANTS) if spec.kind == "hidden" else spec.b
    return TinyProgram(first, spec.a, second, constant)


def _refinement(
    spec: TinySpec,
    parent: TinyProgram,
    feedback: Feedback,
    rng: random.Random,
    read_share: float,
    grounded: Sequence[str],
) -> TinyProgram:
    if feedback.failure is None:
        return parent
    answer = _attempt(spec, rng, grounded)
    if spec.kind == "hidden":
        constant = spec.b if rng.random() < read_share else answer.b
        return TinyProgram(answer.first, answer.a, answer.second, constant)
    while answer == parent:
        # An answer that failed is not worth repeating; where all words are grounded and the parent
        # already followed them it would not have failed, so this ends.
        answer = _attempt(spec, rng, grounded)
    return answer

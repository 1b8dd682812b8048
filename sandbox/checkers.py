"""Custom checkers: trusted programs that judge answers, each run in a slot of its own.

A checker is part of a data set. One that breaks says nothing about the program it was to judge, so
whatever it does but give a verdict is a `CheckerFailed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import bundle
from .base import CheckerFailed
from .cache import FlightCache, key
from .codec import CodecError, Frames, Tree, check, encode, pack
from .results import one_line
from .types import CheckerProgram, Limits
from .worker import Execution

MODULES = ("codec", "checker_guest")

Run = Callable[[bytes, bytes, Limits], Execution]
"""Runs a program on an input under limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerVerdict:
    """What a checker said."""

    accepted: bool
    message: str = ""
    score: float | None = None


def ask(
    name: str,
    checker: CheckerProgram,
    question: bytes,
    run: Run,
    cache: FlightCache[CheckerVerdict] | None,
    fingerprint: str,
) -> CheckerVerdict:
    """Ask a checker, unless it is known what it says.

    Args:
        name: of the case, for errors.
        checker: the checker.
        question: what `text_question` or `value_question` returned.
        run: runs it in a slot of its own.
        cache: of earlier verdicts.
        fingerprint: of the place where it runs.

    Raises:
        CheckerFailed: it gave no verdict.
        SandboxError: its slot failed.
    """

    def run_it() -> CheckerVerdict:
        call = f"module.judge({checker.source!a})"
        return _verdict(
            name,
            run(
                bundle.source(MODULES, call, imports=("itertools", "json", "os", "typing")),
                question,
                checker.limits,
            ),
        )

    if cache is None:
        return run_it()
    known_as = key(checker.source, repr(checker.limits), fingerprint, question)
    return cache.resolve([known_as], lambda _, took: took(run_it()))[0][0]


def text_question(stdin: str, output: bytes, expected: str) -> bytes:
    """Return the question for an output; bytes that are not UTF-8 become lone surrogates."""
    texts = stdin, output.decode("utf-8", "surrogateescape"), expected
    return pack([encode(text) for text in texts])


def value_question(args: tuple[object, ...], returned: Tree, expected: object) -> bytes:
    """Return the question for a value that a function returned."""
    return pack([encode(list(args)), _objects(returned), encode(expected)])


def _verdict(name: str, execution: Execution) -> CheckerVerdict:
    if execution.status is not None:
        tail = execution.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CheckerFailed(
            f"the checker of case {name!r} gave no verdict ({execution.status}): "
            f"{one_line(tail[-1]) if tail else 'no message'}; it must reject whatever a program "
            "may answer"
        )
    frames = Frames(len(execution.stdout))
    frames.feed(execution.stdout)
    try:
        message = frames.pop()
        check(message)
        accepted, text, score = message
    except (CodecError, TypeError, ValueError) as error:
        raise CheckerFailed(
            f"the checker of case {name!r} ended before it gave a verdict"
        ) from error
    return CheckerVerdict(accepted=accepted, message=text, score=score)


def _objects(tree: Tree) -> Tree:
    """Return the JSON-able form of a parsed tree: tags become objects again."""
    if isinstance(tree, list):
        return [_objects(item) for item in tree]
    if isinstance(tree, tuple):
        return {tree[0]: _objects(tree[1])}
    return tree

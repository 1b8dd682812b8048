"""What a judge is, and what it says about a completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..tasks.code import CodeTask


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFeedback:
    """The first public test that failed. Texts are trimmed, UTF-8 encodable and free of paths."""

    name: str
    status: str
    input: str = ""
    expected: str = ""
    actual: str = ""
    error: str = ""
    """Class of the exception and the last frames of the traceback, host paths stripped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What the author of a program may know about it: public tests only."""

    passed: int
    total: int
    status: str
    failure: CaseFeedback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says of one completion."""

    score: float
    """Share of public tests passed, in [0, 1]; it drives the search."""
    solved: bool
    """Every public and hidden test passed; the reward is 1.0 if so, else 0.0."""
    status: str
    """A word of `sandbox.Status`, `no_code` or `unsupported`: that of the first failed test."""
    public_passed: int
    public_total: int
    feedback: Feedback
    program: str = ""
    """The program as executed; empty where no code was found."""
    cached: bool = False
    """Whether no test had to run, all being known already."""
    signature: tuple[str, ...] = ()
    """How the program behaved: a short digest of status and output per public test, then per probe.

    Equal signatures are equal behaviour. Empty where the behaviour is not known.
    """


class Judge(Protocol):
    """Turns a completion into a verdict. May be called from several threads at once."""

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Judge `completion`.

        Raises:
            JudgeUnavailable: the infrastructure failed; the completion has no verdict.
        """
        ...

    def close(self) -> None:
        """Release what the judge holds."""
        ...

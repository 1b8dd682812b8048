"""Whether a verdict is the one that was recorded: words of several data sets against our statuses.

| recorded | agrees with |
| --- | --- |
| `pass`, `AC` | `accepted` |
| `fail`, `NON_AC` | anything but `accepted` |
| `PARTIAL` | anything but `accepted`, at least one test being accepted |
| `RTE` | `runtime_error`, `memory_limit_exceeded`, `compile_error` |
| `WA`, `TLE` or `timeout`, `MLE`, `OLE`, `CE`, a status of ours | that status |

Judges that say `RTE` mean a program that ended by itself with an error: they interpret Python, so a
syntax error shows when it is run, and tell a `MemoryError` from no other exception.

A problem package names a submission after the verdict that one of its tests has to show; so for a
whole submission the last two rows ask for that status on any test, not on the first that failed.
"""

from __future__ import annotations

from collections.abc import Sequence

ACCEPTED = "accepted"

_STATUS = {
    "pass": ACCEPTED,
    "passed": ACCEPTED,
    "ac": ACCEPTED,
    "wa": "wrong_answer",
    "tle": "time_limit_exceeded",
    "timeout": "time_limit_exceeded",
    "mle": "memory_limit_exceeded",
    "ole": "output_limit_exceeded",
    "ce": "compile_error",
}
_OURS = frozenset({*_STATUS.values(), "runtime_error", "no_code"})
_RTE = frozenset({"runtime_error", "memory_limit_exceeded", "compile_error"})
_REJECTED = frozenset({"fail", "failed", "non_ac"})
_PARTIAL = "partial"
_CRASHED = "rte"

WORDS = (*_STATUS, *sorted(_REJECTED), _PARTIAL, _CRASHED, *sorted(_OURS))
"""Every word that is known, in lower case; case does not matter."""


def is_known(word: str) -> bool:
    """Whether `word` says something of a verdict."""
    return word.lower() in WORDS


def agrees(recorded: str, status: str, tests: Sequence[str] = ()) -> bool:
    """Whether a verdict is the recorded one.

    Args:
        recorded: a known word.
        status: the verdict on the submission, or on a single test.
        tests: for a submission, the verdicts on its tests as far as they ran.

    Raises:
        ValueError: the word is not known.
    """
    word = recorded.lower()
    if word in _REJECTED:
        return status != ACCEPTED
    if word == _PARTIAL:
        return status != ACCEPTED and ACCEPTED in tests
    wanted = _RTE if word == _CRASHED else {_STATUS.get(word, word)}
    if not wanted <= _OURS:
        raise ValueError(f"unknown verdict {recorded!r}; the known ones are {', '.join(WORDS)}")
    if ACCEPTED in wanted or not tests:
        return status in wanted
    return status != ACCEPTED and not wanted.isdisjoint((status, *tests))

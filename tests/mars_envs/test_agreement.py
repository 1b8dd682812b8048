"""Which of our verdicts a recorded one agrees with."""

from __future__ import annotations

import pytest

from mars_envs.judging.agreement import agrees, is_known
from sandbox import Status

EVERY = frozenset(str(status) for status in Status) | {"no_code"}
FAILED = EVERY - {"accepted"}


@pytest.mark.parametrize(
    ("recorded", "statuses"),
    [
        ("pass", {"accepted"}),
        ("AC", {"accepted"}),
        ("fail", FAILED),
        ("NON_AC", FAILED),
        ("WA", {"wrong_answer"}),
        ("TLE", {"time_limit_exceeded"}),
        ("timeout", {"time_limit_exceeded"}),
        ("RTE", {"runtime_error", "memory_limit_exceeded", "compile_error"}),
        ("runtime_error", {"runtime_error"}),
        ("no_code", {"no_code"}),
    ],
)
def test_a_recorded_word_agrees_with_these_statuses(recorded: str, statuses: set[str]) -> None:
    assert is_known(recorded)
    assert {status for status in EVERY if agrees(recorded, status)} == statuses


@pytest.mark.parametrize(
    ("recorded", "status", "tests", "expected"),
    [
        ("WA", "runtime_error", ["accepted", "runtime_error", "wrong_answer"], True),
        ("WA", "runtime_error", ["accepted", "runtime_error"], False),
        ("RTE", "wrong_answer", ["wrong_answer", "memory_limit_exceeded"], True),
        ("TLE", "accepted", ["accepted"], False),
        ("AC", "wrong_answer", ["accepted", "wrong_answer"], False),
        ("PARTIAL", "wrong_answer", ["accepted", "wrong_answer"], True),
        ("PARTIAL", "wrong_answer", ["wrong_answer", "wrong_answer"], False),
        ("PARTIAL", "accepted", ["accepted", "accepted"], False),
    ],
)
def test_a_submission_shows_the_verdict_it_is_named_after_on_some_test(
    recorded: str, status: str, tests: list[str], expected: bool
) -> None:
    assert agrees(recorded, status, tests) is expected


def test_an_unknown_word_is_refused_with_the_known_ones() -> None:
    assert not is_known("great")
    with pytest.raises(ValueError, match="unknown verdict 'great'; the known ones are pass, "):
        agrees("great", "accepted")

"""What one info of a memory environment must say by itself, whoever else says what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..parallel_memory.infos import NO_CALL, NOTHING
from ..parallel_memory.shell import OUTSIDE
from ..parallel_memory.workflow import Phase
from .endings import check_flags

STATUSES = ("yes", "no", "empty", "malformed", "done", "error")
TASK_ENDS = ("answered",)
"""Reasons that terminate; those of `OUTSIDE` truncate."""
EXITS = ("", "no_new_evidence", "max_turns", "read_all", "exit_gate", "backend_error")
SCORES = ("exact_match", "f1", "sub_em")
_COUNTS = (
    "turn",
    "level",
    "attempt",
    "prompt_tokens",
    "output_tokens",
    "n_chunks",
    "n_calls",
    "n_failed",
    "n_malformed",
    "turns_used",
    "turns_productive",
    "turns_left",
    "memory_tokens",
    "merge_dropped",
)


def check_facts(agent: str, info: Mapping[str, Any]) -> None:
    """Check that the facts of an info are in their ranges and agree with one another.

    Raises:
        AssertionError: they do not.
    """
    for key in _COUNTS:
        assert info[key] >= 0, f"info[{key!r}] of {agent} is a number of things, got {info[key]!r}"
    assert info["phase"] in set(Phase), (
        f"info['phase'] of {agent} is {info['phase']}; expected one of {[int(p) for p in Phase]}: "
        "READ, MERGE, ANSWER, DONE"
    )
    assert info["active"] == (info["ask_id"] != NOTHING), (
        f"info['ask_id'] of {agent} is {info['ask_id']} while info['active'] is {info['active']}; "
        f"it is {NOTHING} exactly where nothing is asked of this agent"
    )
    assert info["turns_productive"] <= info["turns_used"], (
        f"{info['turns_productive']} of {info['turns_used']} turns were productive"
    )
    assert info["gold_recall"] == NOTHING or 0.0 <= info["gold_recall"] <= 1.0, (
        f"info['gold_recall'] is a share in [0, 1], or {NOTHING} where the evidence is not known, "
        f"got {info['gold_recall']!r}"
    )
    assert info["exit_reason"] in EXITS, (
        f"info['exit_reason'] is {info['exit_reason']!r}; expected one of {', '.join(EXITS[1:])}, "
        "or '' while reading goes on"
    )
    unread = not info["n_calls"] and (info["memory_tokens"] or info["memory_truncated"])
    assert not unread, (
        f"info['memory_tokens'] is {info['memory_tokens']} and info['memory_truncated'] "
        f"{info['memory_truncated']} before anybody has said a thing"
    )
    if info["call_id"] == NOTHING:
        for key, nothing in NO_CALL.items():
            assert info[key] == nothing, (
                f"info[{key!r}] of {agent}, which has answered nothing yet (call_id {NOTHING}), "
                f"must be {nothing!r}, got {info[key]!r}"
            )
    else:
        _check_call(agent, info)


def check_ending(agent: str, info: Mapping[str, Any], terminated: bool, truncated: bool) -> None:
    """Check the flags of an agent against the reason that its info gives.

    Raises:
        AssertionError: they do not fit.
    """
    reason = info["stop_reason"]
    check_flags(
        agent,
        info,
        (terminated, truncated),
        terminating=TASK_ENDS,
        truncating=OUTSIDE,
        rule="an answer terminates, a failure or a limit from outside truncates",
    )
    assert (info["phase"] == Phase.DONE) == (reason in ("answered", "backend_error")), (
        f"info['phase'] is {info['phase']} with stop_reason {reason!r}; it is {int(Phase.DONE)} "
        "(DONE) once the question is answered or the backend has failed, and not before"
    )
    assert (info["exit_reason"] == "backend_error") == (reason == "backend_error"), (
        f"exit_reason is {info['exit_reason']!r} with stop_reason {reason!r}; a failed backend is "
        "named by both"
    )
    for key in SCORES:
        value = info[key]
        right = 0.0 <= value <= 1.0 if reason == "answered" else value == NOTHING
        assert right, (
            f"info[{key!r}] is {value!r} with stop_reason {reason!r}; it is in [0, 1] once there "
            f"is an answer to score, and {NOTHING} before, and where the episode was cut off"
        )
    assert reason == "answered" or info["reward_answer"] == info["reward_turns"] == 0.0, (
        f"reward_answer and reward_turns are {info['reward_answer']!r} and "
        f"{info['reward_turns']!r} with stop_reason {reason!r}; only an answer is paid"
    )
    assert info["reward_answer"] > 0 or info["reward_turns"] <= 0, (
        f"reward_turns is {info['reward_turns']!r} with reward_answer {info['reward_answer']!r}; "
        "few turns are paid with a right answer only, as being wrong is quick"
    )


def _check_call(agent: str, info: Mapping[str, Any]) -> None:
    assert info["call_id"] >= 0, f"info['call_id'] of {agent} is {info['call_id']}"
    assert info["status"] in STATUSES, (
        f"info['status'] of {agent} is {info['status']!r}; expected one of {', '.join(STATUSES)}"
    )
    assert 1 <= info["turn"] <= info["turns_used"], (
        f"info['turn'] of {agent}'s last call is {info['turn']}; turns count from 1, and "
        f"{info['turns_used']} were entered"
    )
    assert NOTHING <= info["chunk_index"] < info["n_chunks"], (
        f"info['chunk_index'] of {agent} is {info['chunk_index']}, of {info['n_chunks']} chunks"
    )
    assert info["chunk_gold"] in (NOTHING, 0, 1), (
        f"info['chunk_gold'] of {agent} is 1, 0 or {NOTHING}, got {info['chunk_gold']!r}"
    )
    assert info["read_score"] in (-1, 0, 1), (
        f"info['read_score'] of {agent} is -1, 0 or 1, got {info['read_score']!r}"
    )
    silent = info["status"] in ("no", "empty", "error")
    assert not (silent and info["found"]), (
        f"info['found'] of {agent} is true with status {info['status']!r}, which brings nothing"
    )
    if info["chunk_index"] == NOTHING:
        for key in ("chunk_gold", "span_start", "span_end"):
            assert info[key] == NOTHING, (
                f"info[{key!r}] of {agent} is {info[key]!r}, but its last call was about no chunk"
            )
    else:
        assert 0 <= info["span_start"] <= info["span_end"], (
            f"{agent} read the characters {info['span_start']} to {info['span_end']}"
        )

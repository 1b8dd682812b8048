"""What `infos[agent]` of the memory environments says: the contract that trainers live on.

One flat dict of plain scalars per agent, made afresh at every step, always with the same keys. Call
facts are those of the call that this agent answered last, so that (`turn`, agent, `chunk_index`)
joins a text with what came of it; `ask_id` and the observation say what is asked now. Nothing
depends on the clock or on a cache. `docs/contract.md` says the same in prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .episode import Episode, LastCall
from .tally import Tally
from .workflow import Call

Scalar = bool | int | float | str
Info = dict[str, Scalar]

NOTHING = -1
"""Where there is no such number, or nobody knows it."""

INFO_FIELDS: dict[str, type] = {
    # What is asked of this agent.
    "active": bool,
    "ask_id": int,
    "prompt_truncated": bool,
    # Its last call.
    "call_id": int,
    "turn": int,
    "chunk_index": int,
    "level": int,
    "attempt": int,
    "status": str,
    "found": bool,
    "chunk_gold": int,
    "read_score": int,
    "span_start": int,
    "span_end": int,
    "prompt_tokens": int,
    "output_tokens": int,
    "reply_truncated": bool,
    "action_truncated": bool,
    "action_repaired": bool,
    # The episode.
    "task_id": str,
    "phase": int,
    "n_chunks": int,
    "n_calls": int,
    "n_failed": int,
    "n_malformed": int,
    "turns_used": int,
    "turns_productive": int,
    "turns_left": int,
    "memory_tokens": int,
    "memory_truncated": bool,
    "merge_dropped": int,
    "gold_recall": float,
    "exit_reason": str,
    "stop_reason": str,
    "exact_match": float,
    "f1": float,
    "sub_em": float,
    "reward_answer": float,
    "reward_turns": float,
}
"""Every key, with the exact type of its value."""

NO_CALL: Mapping[str, Scalar] = {
    "call_id": NOTHING,
    "turn": 0,
    "chunk_index": NOTHING,
    "level": 0,
    "attempt": 0,
    "status": "",
    "found": False,
    "chunk_gold": NOTHING,
    "read_score": 0,
    "span_start": NOTHING,
    "span_end": NOTHING,
    "prompt_tokens": 0,
    "output_tokens": 0,
    "reply_truncated": False,
    "action_truncated": False,
    "action_repaired": False,
}
"""Call facts of an agent that has answered nothing yet."""

REQUEST_FIELDS = ("active", "ask_id", "prompt_truncated")
"""The keys that say what an agent is asked for; the others say what has happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What an episode came to. Before its end, and where it was cut off, there is nothing."""

    reward: float = 0.0
    """What everybody is paid."""
    answer: float = 0.0
    """The part of it that is for the answer."""
    turns: float = 0.0
    """The part of it that is for few turns."""
    exact_match: float = float(NOTHING)
    f1: float = float(NOTHING)
    sub_em: float = float(NOTHING)


def episode_facts(episode: Episode, score: Score, stop_reason: str) -> Info:
    """Return what every agent is told alike.

    Args:
        episode: as it stands.
        score: what it came to.
        stop_reason: what ended it; empty while it goes on.
    """
    workflow, tally = episode.workflow, episode.tally
    last = workflow.turns[-1] if workflow.turns else None
    return {
        "task_id": episode.task.task_id,
        "phase": int(workflow.phase),
        "n_chunks": workflow.n_chunks,
        "n_calls": tally.calls,
        "n_failed": tally.failed,
        "n_malformed": tally.malformed,
        "turns_used": workflow.turn,
        "turns_productive": tally.productive,
        "turns_left": max(0, workflow.max_turns - workflow.turn),
        "memory_tokens": 0 if last is None else last.memory_tokens,
        "memory_truncated": any(turn.memory_cut for turn in workflow.turns),
        "merge_dropped": sum(turn.dropped for turn in workflow.turns),
        "gold_recall": tally.gold_recall,
        "exit_reason": workflow.exit_reason,
        "stop_reason": stop_reason,
        "exact_match": score.exact_match,
        "f1": score.f1,
        "sub_em": score.sub_em,
        "reward_answer": score.answer,
        "reward_turns": score.turns,
    }


def call_facts(last: LastCall | None, tally: Tally) -> Mapping[str, Scalar]:
    """Return what became of an agent's last call; None: it had none."""
    if last is None:
        return NO_CALL
    record = last.record
    chunk = record.index if record.role in ("reader", "memorizer") else NOTHING
    return {
        "call_id": record.id,
        "turn": record.turn,
        "chunk_index": chunk,
        "level": record.level,
        "attempt": record.attempt,
        "status": record.status,
        "found": record.found,
        "chunk_gold": tally.is_gold(chunk),
        "read_score": last.read_score,
        "span_start": last.span[0],
        "span_end": last.span[1],
        "prompt_tokens": record.prompt_tokens,
        "output_tokens": record.output_tokens,
        "reply_truncated": record.cut,
        "action_truncated": last.truncated,
        "action_repaired": last.repaired,
    }


def request_facts(call: Call | None, *, truncated: bool) -> Info:
    """Return what an agent is asked now; None: nothing."""
    return {
        "active": call is not None,
        "ask_id": NOTHING if call is None else call.id,
        "prompt_truncated": truncated,
    }

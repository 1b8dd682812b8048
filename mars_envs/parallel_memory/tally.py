"""What has happened in an episode so far, counted call by call."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from .workflow import CallRecord, Workflow

_id = attrgetter("id")


@dataclass(slots=True)
class TurnTally:
    """What the readers, or the memorizer, of one turn have said."""

    read: set[int] = field(default_factory=set)
    """Chunks whose reader answered."""
    found: set[int] = field(default_factory=set)
    """Of these, those whose reader found something that was kept."""
    failed: set[int] = field(default_factory=set)
    """Chunks whose reader failed, and was not asked again with success."""
    malformed: int = 0


class Tally:
    """Counts the calls of a workflow as they are answered.

    Args:
        gold: chunks that hold evidence, and a number beyond the last chunk for each passage that is
            in none; None where nobody knows.
    """

    def __init__(self, gold: frozenset[int] | None) -> None:
        self.gold = gold
        self.calls = 0
        """Answered or failed."""
        self.failed = 0
        self.malformed = 0
        self.turns: dict[int, TurnTally] = defaultdict(TurnTally)
        """By turn, from 1."""
        self.found: set[int] = set()
        """Chunks in which some turn found something that was kept."""

    @property
    def productive(self) -> int:
        """Turns that found something."""
        return sum(bool(turn.found) for turn in self.turns.values())

    @property
    def gold_recall(self) -> float:
        """Share of the gold chunks in which something was found; -1 where none are known."""
        return len(self.found & self.gold) / len(self.gold) if self.gold else -1.0

    def is_gold(self, chunk: int) -> int:
        """Return 1 if a chunk holds evidence, 0 if not, -1 where nobody knows."""
        return -1 if self.gold is None or chunk < 0 else int(chunk in self.gold)

    def count(self, workflow: Workflow, told: Iterable[int]) -> Sequence[CallRecord]:
        """Count the calls of these ids, which have just been told or failed; return their records.

        Each call is counted once.
        """
        calls = workflow.calls
        records = [calls[bisect_left(calls, id_, key=_id)] for id_ in told]
        self.calls += len(records)
        for record in records:
            self.failed += record.status == "error"
            self.malformed += record.status == "malformed"
            if record.role in ("reader", "memorizer"):
                self._count_read(record)
        if not self.turns:  # without readers, what the answerer was shown has been read
            for turn in workflow.turns:
                self.turns[turn.turn].read.update(turn.read)
                self.turns[turn.turn].found.update(turn.found)
                self.found.update(turn.found)
        return records

    def _count_read(self, record: CallRecord) -> None:
        turn = self.turns[record.turn]
        if record.status == "error":
            turn.failed.add(record.index)
            return
        turn.failed.discard(record.index)
        turn.read.add(record.index)
        turn.malformed += record.status == "malformed"
        if record.found:
            turn.found.add(record.index)
            self.found.add(record.index)

"""The turns of a reading episode, followed from what agents see and infos say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parallel_memory.infos import NOTHING
from ..parallel_memory.state import STATE_COLUMNS
from ..parallel_memory.workflow import Phase
from .memory_texts import Texts
from .moments import Moment

FOLLOWS = {
    Phase.READ: (Phase.READ, Phase.MERGE, Phase.ANSWER, Phase.DONE),
    Phase.MERGE: (Phase.READ, Phase.MERGE, Phase.ANSWER, Phase.DONE),
    Phase.ANSWER: (Phase.ANSWER, Phase.DONE),
    Phase.DONE: (Phase.DONE,),
}
"""Which phase may come after which."""


Stretch = tuple[int, int]
"""The first and the last chunk that a note is from."""


@dataclass(slots=True)
class _Turn:
    """What is known of a turn."""

    read: set[int] = field(default_factory=set)
    found: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    merges: list[tuple[int, list[Stretch]]] = field(default_factory=list)
    """The level of each merge, and the chunks that each of its notes is from."""
    whole: bool = True
    """No merger saw less than there was."""
    memory: str | None = None
    """What its readers see."""


class Turns:
    """Follows one episode.

    Args:
        reads: whether there are agents that read, so that the answerer sees the memory alone.
    """

    def __init__(self, *, reads: bool) -> None:
        self._reads = reads
        self._turns: dict[int, _Turn] = {}
        self._asked: set[int] = set()
        self._chunks: dict[int, str] = {}
        self._gold: dict[int, int] = {}
        self._question: str | None = None
        self._texts = Texts()

    def follow(self, moment: Moment, before: Moment | None) -> None:
        """Check the next moment.

        Raises:
            AssertionError: it cannot come after the ones before.
        """
        info = next(iter(moment.infos.values()))
        if before is not None and before.infos:
            self._check_steps(moment, before)
            self._book(moment, before)
        for agent in moment.agents:
            if moment.infos[agent]["active"]:
                self._see(agent, moment)
        for agent in moment.agents:
            if moment.infos[agent]["active"]:
                self._texts.see(agent, moment)
        if self._reads:
            self._check_counts(info)
            self._check_exit(info)

    def state(self, info: Mapping[str, Any]) -> NDArray[np.float32]:
        """Return what `state()` must be; of one call for all, only as far as the turn."""
        expected = np.zeros(len(STATE_COLUMNS), np.float32)
        expected[info["phase"]] = 1.0
        most = info["turns_used"] + info["turns_left"]
        expected[len(Phase)] = info["turns_used"] / max(1, most)
        if not self._reads:
            return expected[: len(Phase) + 1]
        turn = self._turns.get(info["turns_used"], _Turn())
        for place, chunks in enumerate((turn.read, turn.found, turn.failed), start=len(Phase) + 1):
            expected[place] = len(chunks) / max(1, info["n_chunks"])
        return expected

    def _check_steps(self, moment: Moment, before: Moment) -> None:
        info = next(iter(moment.infos.values()))
        old = next(iter(before.infos.values()))
        assert info["phase"] in FOLLOWS[Phase(old["phase"])], (
            f"the phase went from {Phase(old['phase']).name} to {Phase(info['phase']).name}"
        )
        step = info["turns_used"] - old["turns_used"]
        assert step in (0, 1), (
            f"info['turns_used'] went from {old['turns_used']} to {info['turns_used']}; a turn "
            "comes after the other"
        )
        answered = [
            agent
            for agent in moment.movers
            if moment.infos[agent]["call_id"] == before.infos[agent]["ask_id"] != NOTHING
        ]
        assert info["n_calls"] - old["n_calls"] == len(answered), (
            f"info['n_calls'] went from {old['n_calls']} to {info['n_calls']}, but "
            f"{len(answered)} calls were answered or failed"
        )
        for key, status in (("n_failed", "error"), ("n_malformed", "malformed")):
            now = sum(moment.infos[agent]["status"] == status for agent in answered)
            assert info[key] - old[key] == now, (
                f"info[{key!r}] went from {old[key]} to {info[key]}, but {now} calls of this turn "
                f"have the status {status!r}"
            )

    def _book(self, moment: Moment, before: Moment) -> None:
        for agent in moment.movers:
            info, seen = moment.infos[agent], before.observations[agent]
            if info["call_id"] != before.infos[agent]["ask_id"] or info["call_id"] == NOTHING:
                continue
            self._texts.hear(agent, moment, seen)
            turn = self._turns.setdefault(info["turn"], _Turn())
            if seen["role"] == "merger" and info["status"] != "error":
                notes = json.loads(seen["selected"] or "[]")
                stretches = [(note["first"], note["last"]) for note in notes]
                turn.merges.append((info["level"], stretches))
                turn.whole &= not before.infos[agent]["prompt_truncated"]
            chunk = info["chunk_index"]
            if chunk == NOTHING:
                continue
            if info["status"] == "error":
                turn.failed.add(chunk)
                continue
            assert chunk not in turn.read, (
                f"{agent} has read chunk {chunk} in turn {info['turn']}, in which it was read "
                "before; a chunk is read once in a turn"
            )
            turn.failed.discard(chunk)
            turn.read.add(chunk)
            if info["found"]:
                turn.found.add(chunk)
            gold = self._gold.setdefault(chunk, info["chunk_gold"])
            assert gold == info["chunk_gold"], (
                f"info['chunk_gold'] of chunk {chunk} is {info['chunk_gold']}, but was {gold}"
            )
            if seen["role"] == "reader":
                _check_verdict(agent, info)

    def _see(self, agent: str, moment: Moment) -> None:
        seen, info = moment.observations[agent], moment.infos[agent]
        self._question = self._question or seen["question"]
        assert seen["question"] == self._question, (
            f"{agent} sees another question than was asked before: {seen['question']!r:.200}"
        )
        if seen["role"] in ("reader", "memorizer"):
            chunk = seen["chunk_index"]
            text = self._chunks.setdefault(chunk, seen["chunk"])
            assert text == seen["chunk"], (
                f"{agent} sees another text as chunk {chunk} than was shown before"
            )
        elif self._reads:
            assert not seen["chunk"], (
                f"{agent} sees a chunk; memory is the only channel to those who don't read"
            )
        if seen["role"] == "reader":
            turn = self._turns.setdefault(seen["turn"], _Turn())
            turn.memory = seen["memory"] if turn.memory is None else turn.memory
            assert seen["memory"] == turn.memory, (
                f"{agent} sees another memory than the readers before it in turn {seen['turn']}; "
                "those of a turn read independently, given the memory of the turn before"
            )
        if seen["role"] == "answerer" and seen["selected"]:
            assert not self._reads, "the answerer sees what readers reported, not the memory alone"
        assert info["ask_id"] not in self._asked, (
            f"the call {info['ask_id']} is asked again; a failed call comes again as another one"
        )
        self._asked.add(info["ask_id"])

    def _check_counts(self, info: Mapping[str, Any]) -> None:
        productive = sum(bool(turn.found) for turn in self._turns.values())
        assert info["turns_productive"] == productive, (
            f"info['turns_productive'] is {info['turns_productive']}, but something was found in "
            f"{productive} turns"
        )
        recall = info["gold_recall"]
        if recall != NOTHING:
            gold = {chunk for chunk, is_gold in self._gold.items() if is_gold == 1}
            found = gold & {chunk for turn in self._turns.values() for chunk in turn.found}
            right = (recall > 0) == bool(found)
            if right and found and len(self._gold) == info["n_chunks"]:
                # Passages that no chunk holds, of a document that was cut, count as not found.
                whole = round(len(found) / recall)
                right = whole >= len(gold) and abs(recall - len(found) / whole) < 1e-9
            assert right, (
                f"info['gold_recall'] is {recall!r}, but something was found in "
                f"{len(found)} of {len(gold)} gold chunks"
            )

    def _check_exit(self, info: Mapping[str, Any]) -> None:
        last = self._turns.get(info["turns_used"], _Turn())
        reason = info["exit_reason"]
        if reason == "no_new_evidence":
            assert not last.failed, (
                f"reading ended with 'no_new_evidence' in a turn in which the chunks "
                f"{sorted(last.failed)} could not be read; a failed read is not a no"
            )
            assert not last.found, (
                f"reading ended with 'no_new_evidence' in a turn in which something was found in "
                f"the chunks {sorted(last.found)}"
            )
        if reason == "max_turns":
            assert info["turns_left"] == 0, (
                f"reading ended with 'max_turns', but {info['turns_left']} turns are left"
            )
        for number, turn in self._turns.items():
            ended = number < info["turns_used"] or info["phase"] == Phase.ANSWER
            if ended and turn.merges and turn.whole and not info["merge_dropped"]:
                _check_merges(number, turn)


def _check_verdict(agent: str, info: Mapping[str, Any]) -> None:
    """Check whether a reader was right, where that depends on its reply alone."""
    silent = info["status"] in ("no", "empty")
    expected = {0: (1 if silent else -1,), NOTHING: (0,)}.get(info["chunk_gold"], (-1, 0, 1))
    assert info["read_score"] in expected, (
        f"info['read_score'] of {agent} must be {expected[0]}, got {info['read_score']}: it said "
        f"{info['status']!r} of a chunk with chunk_gold {info['chunk_gold']}"
    )


def _check_merges(number: int, turn: _Turn) -> None:
    """Check that every find goes into one merge, and every merge but the last into a later one."""
    loose = Counter((chunk, chunk) for chunk in turn.found)
    for _, notes in sorted(turn.merges, key=lambda merge: merge[0]):
        loose.subtract(notes)
        if notes:
            loose[notes[0][0], notes[-1][1]] += 1
    kept = [stretch for stretch, count in loose.items() if count > 0]
    twice = [stretch for stretch, count in loose.items() if count < 0]
    assert len(kept) == 1 and not twice, (  # noqa: PT018  # one thing: nothing lost, nothing twice
        f"in turn {number} something was found in the chunks {sorted(turn.found)}, and the merges "
        f"took {[notes for _, notes in turn.merges]}: left over {kept}, taken but not there "
        f"{twice}; every note enters exactly one merge, and one merge is the last"
    )

"""One episode of the memory environments: who is asked for which call, and what comes of it.

The core that all forms share: a workflow, and agents to answer its calls. No Gym and no clock.
Chunk i is read by the reader at place i modulo the number of readers, in waves: a reader answers
one call at a time, so a document that has more chunks than there are readers takes several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ProtocolError
from ..reading.task import ReadingTask
from ..spaces import TEXT_LIMIT, replace_surrogates
from .supervision import reader_supervision
from .tally import Tally
from .workflow import Call, CallRecord, Phase, Role, Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An action as it is taken: a text that every space holds."""

    text: str
    truncated: bool = False
    """It was longer than the space allows, and was cut."""
    repaired: bool = False
    """It held lone surrogates, which were replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """No text will come."""

    reason: str
    permanent: bool = False
    """Nor ever will from this agent, in this episode."""


Outcome = Reply | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """What became of the call that an agent answered last."""

    record: CallRecord
    span: tuple[int, int]
    """Where the chunk stands in the document, in characters; (-1, -1) without one."""
    read_score: int = 0
    """Whether a reader was right: 1, or -1; 0 where nobody can say (see `supervision`)."""
    truncated: bool = False
    repaired: bool = False


def read_action(action: Any) -> Reply:
    """Take an action: too long a text is cut, lone surrogates are replaced.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(action, str):
        raise TypeError(f"an action is a text (str), got {type(action).__name__}")
    cut = action[:TEXT_LIMIT]
    text = replace_surrogates(cut)
    return Reply(text=text, truncated=len(action) > TEXT_LIMIT, repaired=text != cut)


class Episode:
    """One question about one document, on its way to an answer.

    Args:
        task: what it is about.
        workflow: of this task; nothing asked yet.
        pools: role -> the agents that answer its calls, at least one each.
        gold: for each piece of the task's evidence, the chunks that hold it.
        max_calls: calls after which nothing more is asked; None: no limit.
    """

    def __init__(
        self,
        task: ReadingTask,
        workflow: Workflow,
        pools: Mapping[Role, Sequence[str]],
        *,
        gold: Sequence[Sequence[int]],
        max_calls: int | None = None,
    ) -> None:
        self.task = task
        self.workflow = workflow
        # A passage that a cut has left out counts as a chunk of its own, which nobody reads.
        held = {i for places in gold for i in places}
        for number, (piece, places) in enumerate(zip(task.evidence, gold, strict=True)):
            if not places and piece.start < piece.end:
                held.add(workflow.n_chunks + number)
        known = bool(gold) or task.no_evidence
        self.tally = Tally(frozenset(held) if known else None)
        self.asked: dict[str, Call] = {}
        """The agents that must answer now, and the call of each."""
        self.last: dict[str, LastCall] = {}
        """What became of each agent's last call, of those that had one."""
        self.tally.count(workflow, ())
        self._gold = gold
        self._pools = pools
        self._max_calls = max_calls
        self._waiting: list[Call] = []  # their agents are busy with earlier ones
        self._retired: set[str] = set()
        self._deserted = False

    @property
    def agents(self) -> list[str]:
        """Everybody, whether asked or not."""
        return [agent for pool in self._pools.values() for agent in pool]

    @property
    def width(self) -> int:
        """The most agents that can be asked at once."""
        return max(map(len, self._pools.values()))

    @property
    def stop_reason(self) -> str:
        """What ended the episode; empty while it goes on."""
        if self.workflow.phase == Phase.DONE:
            return "backend_error" if self.workflow.exit_reason == "backend_error" else "answered"
        if self._deserted:
            return "agents"
        if self._max_calls is not None and self.tally.calls >= self._max_calls:
            return "calls"
        return ""

    def ask(self, k: int) -> None:
        """Ask up to `k` agents for one call each; 0: nobody.

        Raises:
            ProtocolError: the workflow is not done but asks for nothing: it has a bug.
        """
        if k < 1 or self.stop_reason:
            return
        if self._max_calls is not None:
            k = min(k, self._max_calls - self.tally.calls)
        missing = k - len(self._waiting)
        waiting = self._waiting + (self.workflow.ask(missing) if missing > 0 else [])
        if not waiting:
            raise ProtocolError(
                f"{type(self.workflow).__name__} awaits no reply and asks for no call, but its "
                f"phase is {self.workflow.phase!r}"
            )
        self._waiting = []
        for call in waiting:
            agent = self._agent_of(call)
            if agent is None:
                self.asked, self._deserted = {}, True
                return
            if agent in self.asked or len(self.asked) == k:
                self._waiting.append(call)
            else:
                self.asked[agent] = call

    def settle(self, outcomes: Mapping[str, Outcome]) -> None:
        """Tell the workflow what its calls came to, in the order of the calls.

        Args:
            outcomes: agent -> its reply or failure. An agent that was asked and is not among them
                has failed.
        """
        told: list[tuple[str, Call, Outcome]] = []
        for agent, call in sorted(self.asked.items(), key=lambda pair: pair[1].id):
            outcome = outcomes.get(agent, Failure(reason="no action was given"))
            told.append((agent, call, outcome))
            if isinstance(outcome, Reply):
                self.workflow.tell(call.id, outcome.text)
            else:
                self.workflow.fail(call.id, outcome.reason)
                if outcome.permanent:
                    self._retired.add(agent)
            if self.workflow.phase == Phase.DONE:
                break  # one failure too many: what the others said does not count any more
        self.asked = {}
        records = self.tally.count(self.workflow, [call.id for _, call, _ in told])
        scores = reader_supervision(self.workflow, self.task, self._gold, records=records)
        for (agent, call, outcome), record in zip(told, records, strict=True):
            reads = call.role == "reader" and isinstance(outcome, Reply)
            self.last[agent] = LastCall(
                record=record,
                span=call.span,
                read_score=scores.get((call.turn, call.index), 0) if reads else 0,
                truncated=isinstance(outcome, Reply) and outcome.truncated,
                repaired=isinstance(outcome, Reply) and outcome.repaired,
            )

    def _agent_of(self, call: Call) -> str | None:
        """Return who answers a call; None where nobody is left."""
        pool = self._pools[call.role]
        agent = pool[call.index % len(pool)]
        if agent in self._retired:
            able = [agent for agent in pool if agent not in self._retired]
            return able[call.index % len(able)] if able else None
        return agent

"""Where a reading episode stands, in a few numbers: for centralised critics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .tally import Tally
from .workflow import Phase, Workflow

STATE_COLUMNS = (
    "reading",
    "merging",
    "answering",
    "done",
    "turn",
    "read",
    "found",
    "failed",
)
"""The phase, one of four; then shares: turn of the most turns; of the chunks, in this turn: those
that were read, those in which something was found, and those whose reader failed."""


def state_of(workflow: Workflow, tally: Tally) -> NDArray[np.float32]:
    """Return the numbers of `STATE_COLUMNS`, all in [0, 1]: [8]."""
    state = np.zeros(len(STATE_COLUMNS), np.float32)
    state[int(workflow.phase)] = 1.0
    state[len(Phase)] = workflow.turn / max(1, workflow.max_turns)
    turn = tally.turns.get(workflow.turn)
    if turn is not None:
        chunks = max(1, workflow.n_chunks)
        state[len(Phase) + 1 :] = [len(s) / chunks for s in (turn.read, turn.found, turn.failed)]
    return state

"""What agents see: the prompt, and its parts for agents that need not parse one.

Observations of one environment are alike for all roles, so that one policy can play them all, and
equal to what `call_view` shows to a `Speaker`: whoever plays a workflow directly plays the
environment, too. The document is never among them, only the chunk of the reader that is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete

from ..errors import InvalidSetting, InvalidTask
from ..spaces import TEXT_LIMIT, UnicodeText, replace_surrogates
from .play import call_view, write_selected
from .workflow import Call, Note, Phase, Workflow

MAX_CHUNKS = 2**16 - 1
"""The most chunks of a document. A bound of the space: small enough for one-hot encodings."""

MAX_TURNS = 255
"""The most turns, or passes, of an episode; likewise."""

MAX_TOKENS = 2**16 - 1
"""Likewise of a reply; who may say more is told this number."""

TEXTS = ("prompt", "question", "memory", "chunk", "selected")
ROLES = ("", "reader", "merger", "answerer", "memorizer")

Observation = dict[str, Any]


def observation_space() -> gymnasium.spaces.Dict:
    """Return the space of what one agent sees."""
    return gymnasium.spaces.Dict(
        {
            **{name: UnicodeText(TEXT_LIMIT) for name in TEXTS},
            "role": UnicodeText(max(map(len, ROLES))),
            "phase": Discrete(len(Phase)),
            "active": Discrete(2),
            "turn": Discrete(MAX_TURNS + 1),
            "max_turns": Discrete(MAX_TURNS + 1),
            "chunk_index": Discrete(MAX_CHUNKS + 1, start=-1),
            "n_chunks": Discrete(MAX_CHUNKS + 1),
            "max_tokens": Discrete(MAX_TOKENS + 1),
            "gated": Discrete(2),
        }
    )


def check_sizes(workflow: Workflow, task_id: str) -> None:
    """Refuse an episode that observations cannot number.

    Raises:
        InvalidTask: the document is in too many pieces.
        InvalidSetting: there may be too many turns.
    """
    if workflow.n_chunks > MAX_CHUNKS:
        raise InvalidTask(
            f"{task_id}: the document has {workflow.n_chunks} chunks, but an environment numbers "
            f"{MAX_CHUNKS} at most; make them larger with chunk_tokens"
        )
    if workflow.max_turns > MAX_TURNS:
        raise InvalidSetting(
            f"an environment numbers {MAX_TURNS} turns at most, got {workflow.max_turns}"
        )


def see_call(workflow: Workflow, call: Call) -> tuple[Observation, bool]:
    """Return what an agent sees that is asked for `call`, and whether some of it was cut."""
    seen = call_view(workflow, call)
    seen["max_tokens"] = min(seen["max_tokens"], MAX_TOKENS)
    cut = False
    for name in TEXTS:
        text = replace_surrogates(seen[name])
        if len(text) > TEXT_LIMIT:
            cut = True
            text = _fitting_notes(call.selected) if name == "selected" else _middle_cut(text)
        seen[name] = text
    return seen, cut


def see_nothing(workflow: Workflow) -> Observation:
    """Return what an agent sees that is not asked: where the episode stands, and no text."""
    return {
        **dict.fromkeys(TEXTS, ""),
        "role": "",
        "phase": int(workflow.phase),
        "active": 0,
        "turn": workflow.turn,
        "max_turns": workflow.max_turns,
        "chunk_index": -1,
        "n_chunks": workflow.n_chunks,
        "max_tokens": 0,
        "gated": 0,
    }


def _middle_cut(text: str) -> str:
    note = f"\n[… {len(text) - TEXT_LIMIT + 100} characters left out …]\n"
    room = TEXT_LIMIT - 100
    return f"{text[: room - room // 2]}{note}{text[len(text) - room // 2 :]}"


def _fitting_notes(notes: Sequence[Note]) -> str:
    """Return the first notes, as many as fit, as JSON."""
    room, count = TEXT_LIMIT - len("[]"), 0
    for note in notes:
        room -= len(write_selected([note]))
        if room < 0:
            break
        count += 1
    return replace_surrogates(write_selected(notes[:count]))

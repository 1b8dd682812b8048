"""Who was asked for what, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..errors import ProtocolError
from .selection import Choice, Expansion


class Ledger:
    """The expansions of one search: each is pending until it is answered or abandoned."""

    def __init__(self) -> None:
        self.asked = 0
        """How many were ever asked for; the next id."""
        self.pending: dict[int, Expansion] = {}
        """By id, oldest first."""
        self.told: dict[int, int] = {}
        """The node that answered each, by id."""
        self.abandoned: dict[int, str] = {}
        """Why each failed, by id."""
        self.waiting: Counter[str] = Counter()
        """How many are pending, by agent."""

    def enter(self, choice: Choice) -> Expansion:
        """Ask for one more."""
        expansion = Expansion(self.asked, choice.parent_id, choice.agent)
        self.asked += 1
        self.pending[expansion.id] = expansion
        self.waiting[expansion.agent] += 1
        return expansion

    def take_back(self, count: int) -> None:
        """Undo `enter` for so many that were asked for last."""
        for _ in range(count):
            self.asked -= 1
            self._settle(self.pending[self.asked])

    def find(self, expansion_id: int) -> Expansion:
        """Return a pending expansion.

        Raises:
            ProtocolError: there is none of this id.
        """
        if expansion_id not in self.pending:
            raise ProtocolError(
                f"expansion {expansion_id!r} was never asked for; use the ids that `ask` returned"
                if expansion_id not in self.told and expansion_id not in self.abandoned
                else f"expansion {expansion_id!r} is settled; only a pending one can change"
            )
        return self.pending[expansion_id]

    def move(self, expansion_id: int, parent_id: int) -> Expansion:
        """Give a pending expansion another parent."""
        moved = self.pending[expansion_id]._replace(parent_id=parent_id)
        self.pending[expansion_id] = moved
        return moved

    def answer(self, expansion: Expansion, node_id: int) -> None:
        """Settle an expansion: this node came of it."""
        self._settle(expansion)
        self.told[expansion.id] = node_id

    def abandon(self, expansion: Expansion, reason: str) -> None:
        """Settle an expansion: nothing comes of it."""
        self._settle(expansion)
        self.abandoned[expansion.id] = reason

    def undo(self, asked: int, pending: Mapping[int, Expansion]) -> None:
        """Go back to when so many were asked for, and these were pending."""
        for settled in (self.told, self.abandoned):
            for expansion_id in [i for i in reversed(settled) if i >= asked or i in pending]:
                del settled[expansion_id]
        self.asked, self.pending = asked, dict(pending)
        self.waiting = Counter(item.agent for item in pending.values())

    def _settle(self, expansion: Expansion) -> None:
        del self.pending[expansion.id]
        self.waiting[expansion.agent] -= 1

    def to_json(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        return {
            "asked": self.asked,
            "pending": [list(item) for item in self.pending.values()],
            "told": [list(item) for item in self.told.items()],
            "abandoned": [list(item) for item in self.abandoned.items()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """Rebuild a ledger from `to_json`."""
        ledger = cls()
        ledger.asked = data["asked"]
        ledger.pending = {item[0]: Expansion(*item) for item in data["pending"]}
        ledger.waiting = Counter(item.agent for item in ledger.pending.values())
        ledger.told = dict(data["told"])
        ledger.abandoned = dict(data["abandoned"])
        return ledger

"""Episodes in which agents fail to act, now and then or for good."""

from __future__ import annotations

from typing import Any

from .episodes import Player


class Failing:
    """An episode in which all that are asked fail in some turns.

    Args:
        player: plays it.
        env: the environment.
        seed: of the episode.
        permanent: whether those who fail are gone for the episode.

    Raises:
        AssertionError: the start breaks a rule.
    """

    def __init__(self, player: Player, env: Any, seed: int, *, permanent: bool = False) -> None:
        self.retired: set[str] = set()
        self._form, self._env, self._permanent = player.form, env, permanent
        self._turns = 0
        self._witness, self._moment = player.begin(env, seed)
        self._witness.see(self._moment)

    @property
    def over(self) -> bool:
        """Whether nobody acts any more."""
        return self._moment.over

    @property
    def reason(self) -> str:
        """What ended the episode; empty while it runs."""
        return str(next(iter(self._moment.infos.values()))["stop_reason"])

    def act(self, *, fails: bool = True) -> None:
        """Take a turn, in which all that are asked fail, or nobody does.

        Raises:
            AssertionError: it breaks a rule, or asks somebody who is gone.
        """
        asked = self._moment.asked
        failing = len(asked) if fails else 0
        permanent = fails and self._permanent
        if permanent:
            self.retired.update(asked)
        self._moment = self._form.act(
            self._env, self._moment, self._turns, failing=failing, permanent=permanent
        )
        self._witness.see(self._moment)
        self._turns += 1
        again = [] if self.over else sorted(self.retired.intersection(self._moment.asked))
        assert not again, (
            f"{again} are asked again after fail(agent, reason, permanent=True), which retires an "
            "agent for the episode"
        )

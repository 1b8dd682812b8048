"""Agents that follow a script: for tests, examples and baselines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ..rollout import Generation, Request
from .base import PolicyExhausted

Script = Callable[[Request], "str | Awaitable[str]"]


class ScriptedPolicy:
    """Says what a function of the request returns, or the texts of a list, one after the other.

    Each agent of each episode has its own place in the list, so that concurrent episodes do not
    depend on one another.
    """

    version = 0

    def __init__(
        self, script: Script | Sequence[str], *, name: str = "scripted", cycle: bool = False
    ) -> None:
        """Make the policy.

        Args:
            script: a function, plain or async, or a list of texts.
            name: stamped on every generation.
            cycle: start a list anew where it ends, instead of raising `PolicyExhausted`.
        """
        if isinstance(script, str):
            raise TypeError(
                "script is a function or a list of texts, got a single text; wrap it in []"
            )
        if not callable(script) and not script:
            raise ValueError("the list of texts is empty; give at least one")
        self.name = name
        self._script = script if callable(script) else tuple(script)
        self._cycle = cycle
        self._said: dict[tuple[str, str], int] = {}

    async def generate(self, request: Request) -> Generation:
        """Answer with the next text.

        Raises:
            PolicyExhausted: the list has ended for this agent in this episode.
        """
        if callable(self._script):
            answer = self._script(request)
            text = answer if isinstance(answer, str) else await answer
        else:
            text = self._next(request, self._script)
        return Generation(text=text, policy=self.name, policy_version=self.version)

    def _next(self, request: Request, texts: Sequence[str]) -> str:
        key = (request.episode_id, request.agent)
        said = self._said.get(key, 0)
        if said >= len(texts) and not self._cycle:
            raise PolicyExhausted(
                f"{self.name}: {request.agent} has said all {len(texts)} texts of its script in "
                f"episode {request.episode_id!r}"
            )
        self._said[key] = said + 1
        return texts[said % len(texts)]

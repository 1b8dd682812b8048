"""An agent that answers with recorded generations, each at most once per episode.

It ignores the prompt, so it tests search and selection, not refinement.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from ..errors import ConfigError
from ..rollout import Generation, Request
from .base import PolicyExhausted
from .recordings import Recording


class ReplayPolicy:
    """Draws the recordings of the request's task without replacement.

    All agents that it plays in one episode share its recordings. Which episode a request belongs to
    is told by `Request.episode_id`; requests without one all belong to the same episode. The order
    is a function of seed, name, episode and task alone, so concurrent episodes are reproducible.
    """

    version = 0

    def __init__(
        self,
        recordings: Mapping[str, Sequence[Recording]],
        *,
        prefixes: Mapping[str, str] | None = None,
        order: Literal["shuffled", "recorded"] = "shuffled",
        seed: int = 0,
        name: str = "replay",
    ) -> None:
        """Make the policy.

        Args:
            recordings: per task id, what can be said.
            prefixes: per task id, the prompt that completions without one of their own continue.
            order: shuffled anew for every episode, or as recorded.
            seed: of the shuffles.
            name: stamped on every generation.
        """
        if order not in ("shuffled", "recorded"):
            raise ConfigError(f'order must be "shuffled" or "recorded", got {order!r}')
        self.name = name
        self._recordings = {task_id: tuple(found) for task_id, found in recordings.items()}
        self._prefixes = dict(prefixes or {})
        self._order = order
        self._seed = seed
        self._drawn: dict[tuple[str, str], int] = {}

    async def generate(self, request: Request) -> Generation:
        """Answer with a recording that this episode has not had yet.

        Raises:
            PolicyExhausted: there is none.
            ConfigError: the recording is a completion, and its prompt is not known.
        """
        recordings = self._recordings.get(request.task_id, ())
        key = (request.episode_id, request.task_id)
        drawn = self._drawn.get(key, 0)
        if drawn >= len(recordings):
            raise PolicyExhausted(
                f"{self.name}: all {len(recordings)} recordings for task {request.task_id!r} were "
                f"drawn in episode {request.episode_id!r}"
            )
        recording = recordings[self._permutation(key, len(recordings))[drawn]]
        text = self._text(recording, request.task_id)
        self._drawn[key] = drawn + 1
        return Generation(text=text, policy=self.name, policy_version=self.version)

    def answers(self, task_id: str, episode_id: str = "") -> list[str]:
        """Return all that `generate` will say in an episode, in that order; nothing is drawn.

        Raises:
            ConfigError: a recording is a completion, and its prompt is not known.
        """
        recordings = self._recordings.get(task_id, ())
        order = self._permutation((episode_id, task_id), len(recordings))
        return [self._text(recordings[index], task_id) for index in order]

    def _text(self, recording: Recording, task_id: str) -> str:
        return reply_text(recording, prefix=self._prefixes.get(task_id))

    def _permutation(self, key: tuple[str, str], count: int) -> Sequence[int]:
        """Return the order of one episode; it is made anew at each draw, so nothing piles up."""
        if self._order == "recorded":
            return range(count)
        order = list(range(count))
        random.Random(repr((self._seed, self.name, *key))).shuffle(order)
        return order


def reply_text(recording: Recording, *, prefix: str | None = None) -> str:
    """Return a recording as a chat reply: programs in a fence, replies as they are.

    Args:
        recording: what was generated.
        prefix: the prompt that a completion continues, unless it has its own.

    Raises:
        ConfigError: a completion has no prompt.
    """
    if recording.form == "reply":
        return recording.text
    if recording.form == "full_program":
        return fence(recording.text)
    prompt = recording.prompt if recording.prompt is not None else prefix
    if prompt is None:
        raise ConfigError(
            f"a recording by {recording.source!r} is a {recording.form} without a prompt; pass the "
            "task's prompt in prefixes={task_id: prompt}"
        )
    return fence(prompt + recording.text)


def fence(program: str) -> str:
    """Wrap a program in a code fence that nothing inside it can close."""
    longest = max((len(run) for run in re.findall("`+", program)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}python\n{program}\n{marks}"

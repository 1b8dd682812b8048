"""What every shell around episodes of several agents has: limits, a generator, an end, renders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from .errors import InvalidSetting, ProtocolError


@dataclass(frozen=True, slots=True)
class EpisodeEnd:
    """Why an episode is over; empty while it runs. A kind of environment says what truncates."""

    OUTSIDE: ClassVar[tuple[str, ...]] = ()
    """Reasons from outside of the task."""

    reason: str = ""

    @property
    def over(self) -> bool:
        """Whether nobody is asked any more."""
        return self.reason != ""

    @property
    def truncated(self) -> bool:
        """Whether something from outside ended it."""
        return self.reason in self.OUTSIDE

    @property
    def terminated(self) -> bool:
        """Whether the task's own rules ended it."""
        return self.over and not self.truncated


_MEANT = {"tasks": "task", "task_id": "task", "agent": "agents"}
"""What is said by mistake for an option of `reset`."""
_OF_TASKS = ("document", "question")
"""What episodes are about, which `reset` cannot say."""


class Shell(ABC):
    """The first base of an environment, before PettingZoo's own class.

    Args:
        render_mode: one of the environment's `metadata["render_modes"]`, or None.
        max_cycles: steps after which an episode is truncated; None: no limit.

    Raises:
        InvalidSetting: one of them has a value that it cannot have.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["ansi", "human", "rgb_array"],
        "render_fps": 1,
        "supports_fail": True,
    }
    agents: list[str]

    def __init__(self, *, render_mode: str | None, max_cycles: int | None) -> None:
        super().__init__()
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            known = ", ".join(map(repr, modes))
            raise InvalidSetting(f"render_mode must be {known} or None, got {render_mode!r}")
        self.render_mode = render_mode
        self.max_cycles = whole_limit("max_cycles", max_cycles)
        self._np_random: np.random.Generator | None = None

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that episodes are drawn from."""
        if self._np_random is None:
            self._np_random, _ = seeding.np_random()
        return self._np_random

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the episode as text ("ansi") or as a picture ("rgb_array"), or print it ("human").

        A picture is uint8 of shape [480, 640, 3], see the module `drawing` of the environment.

        Raises:
            ImportError: a picture is wanted, and there is no Pillow.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the environment has no render_mode")
            return None
        if self.render_mode == "rgb_array":
            return self._to_image()
        text = self._to_text()
        if self.render_mode == "human":
            print(text)
            return None
        return text

    @abstractmethod
    def _to_image(self) -> NDArray[np.uint8]:
        """Return the picture."""

    @abstractmethod
    def _to_text(self) -> str:
        """Return the text."""

    def _seed(self, seed: int | None) -> None:
        """Start the generator anew; None: go on with it."""
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)

    def _check_running(self) -> None:
        if not self.agents:
            raise ProtocolError("no episode is running; call reset() first")


def reset_options(options: Mapping[str, Any] | None, *known: str) -> Mapping[str, Any]:
    """Return the options of `reset`. Unknown ones are ignored, as PettingZoo asks.

    Not so those that somebody gave in place of one that counts, who would get another episode than
    the one asked for, and a document, which is part of a task.

    Args:
        options: as they were given.
        known: those that count.

    Raises:
        InvalidSetting: they are no dict, or hold such a name.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidSetting(
            f'options are a dict, such as {{"task": task_id}}, or None, got {options!r:.80}'
        )
    for name in options:
        if name in known:
            continue
        if (meant := _MEANT.get(name)) in known:
            raise InvalidSetting(f"unknown option {name!r} of reset; did you mean {meant!r}?")
        if name in _OF_TASKS:
            raise InvalidSetting(
                f"reset has no option {name!r}: it belongs to a task. Give the environment tasks= "
                "when you make it, and choose one of them with options={'task': task_id}"
            )
    return options


def whole_limit(name: str, value: int | None) -> int | None:
    """Return a limit, made sure that it is one.

    Raises:
        InvalidSetting: it is neither a whole number of at least 1 nor None.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= 1):
        raise InvalidSetting(
            f"{name} must be a whole number of at least 1, or None, got {value!r:.80}"
        )
    return value

"""What the three checks share: single observations and infos, and comparing whole episodes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

RESERVED_INFO_KEYS = frozenset(
    {"episode", "final_obs", "final_info", "action_mask", "active_agent", "prefix", "suffix"}
)
"""Keys that Gymnasium, PettingZoo or AgileRL give a meaning of their own."""

TextPolicy = Callable[[str, Any, Mapping[str, Any], int], Any]
"""From agent, observation, info and turn to an action."""

Frame = dict[str, Any]
"""All that an environment says at one turn, as data that compares with `==`."""

CLONES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("deepcopy", copy.deepcopy),
    ("pickle", lambda env: pickle.loads(pickle.dumps(env))),
)


def check_info(
    info: Mapping[str, Any],
    info_fields: Mapping[str, type] | None = None,
    action_space: Any = None,
) -> None:
    """Check one info: flat, plain scalars, no reserved key; exactly `info_fields` where given.

    Args:
        info: of one agent.
        info_fields: the exact keys and types; None: any plain scalars.
        action_space: an `action_mask` is allowed where this space takes it as a mask.

    Raises:
        AssertionError: it breaks the contract.
    """
    info = dict(info)
    if action_space is not None and "action_mask" in info:
        _check_mask(info.pop("action_mask"), action_space)
    for key, value in info.items():
        reserved = key in RESERVED_INFO_KEYS or key.startswith("_")
        assert not reserved, (
            f"info key {key!r} is reserved: other libraries give it a meaning of their own; rename "
            "it (docs/contract.md lists the reserved keys)"
        )
        assert type(value) in (bool, int, float, str), (
            f"info[{key!r}] must be a plain bool, int, float or str, got {type(value).__name__}; "
            "convert NumPy scalars with .item(), and flatten dicts and lists into keys"
        )
    if info_fields is not None:
        assert set(info) == set(info_fields), (
            f"info keys differ from the contract: missing {sorted(set(info_fields) - set(info))}, "
            f"unexpected {sorted(set(info) - set(info_fields))}"
        )
        for key, kind in info_fields.items():
            assert type(info[key]) is kind, (
                f"info[{key!r}] must be a {kind.__name__}, got {info[key]!r}"
            )


def _check_mask(mask: Any, action_space: Any) -> None:
    try:
        action = copy.deepcopy(action_space).sample(mask)
    except Exception as error:
        raise AssertionError(
            f"info['action_mask'] is no mask of {action_space}: sampling with it raises {error!r}; "
            "give what `action_space.sample(mask)` takes, or use another key"
        ) from error
    assert action_space.contains(action), f"a masked sample {action!r} is not in {action_space}"


def check_observation(space: Any, observation: Any, agent: str) -> None:
    """Check that an observation is in its space and holds a prompt.

    Raises:
        AssertionError: it does not.
    """
    assert space.contains(observation), (
        f"the observation of {agent} is not in its space: {observation!r:.300} is not in {space}; "
        "mind the dtype and the bounds of arrays, missing and additional keys, lone surrogates"
    )
    prompt = observation.get("prompt") if isinstance(observation, Mapping) else observation
    assert isinstance(prompt, str), (
        f"the observation of {agent} holds no prompt: expected a str, or a dict with a str at "
        f'"prompt", got {observation!r:.300}'
    )


class InfoKeys:
    """Remembers each agent's info keys, which must not change within an episode."""

    def __init__(self) -> None:
        self._keys: dict[str, frozenset[str]] = {}

    def check(self, agent: str, info: Mapping[str, Any]) -> None:
        """Check one info against the ones before.

        Raises:
            AssertionError: a key came or went.
        """
        keys = frozenset(info)
        before = self._keys.setdefault(agent, keys)
        assert keys == before, (
            f"the info keys of {agent} changed within an episode: {sorted(before ^ keys)} came or "
            "went; send every key at every step, with a sentinel where there is nothing to say"
        )


def plain(value: Any) -> Any:
    """Return an observation or info as data that compares with `==`, byte for byte."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return value


def without(frame: Frame, facts: Collection[str]) -> Frame:
    """Return a frame without what is paid, and without these facts of infos."""
    shown = {key: part for key, part in frame.items() if key not in ("rewards", "owed")}
    shown["infos"] = {
        agent: {key: fact for key, fact in info.items() if key not in facts}
        for agent, info in frame["infos"].items()
    }
    return shown


def assert_same(expected: list[Frame], actual: list[Frame], what: str) -> None:
    """Compare two episodes.

    Raises:
        AssertionError: they differ; the message says where first.
    """
    for turn, (left, right) in enumerate(zip(expected, actual, strict=False)):
        for key in left:
            assert left[key] == right[key], (
                f"{what}: {key} of turn {turn} differs:\n  {left[key]!r:.2000}\n"
                f"  {right[key]!r:.2000}\nDraw only from a generator that reset(seed=...) starts, "
                "keep nothing from one episode to the next, and look at no clock"
            )
    assert len(expected) == len(actual), (
        f"{what}: the episode took {len(actual)} turns instead of {len(expected)}"
    )


def assert_fresh(agent: str, before: Any, after: Any) -> None:
    """Check that a step made a new info.

    Raises:
        AssertionError: it is the same object.
    """
    assert before is not after, (
        f"the info of {agent} is the same dict after a step: whoever kept it sees it change; make "
        "a new dict at every step"
    )

"""A compliance kit for text environments, and stand-ins that need no sandbox.

`check_text_aec` plays whole episodes and checks what PettingZoo's own tests leave out: every
observation of every agent in its space, the info contract, byte-identical repetition including the
terminal step, and copies that continue identically. It raises AssertionError with a sentence that
says what differs. `StubJudge` and `stub_tasks` are deterministic and can be named in constructor
arguments: `judge="mars_envs.testing:StubJudge"`.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .judging.base import CaseFeedback, Feedback, Verdict
from .tasks.code import CodeTask, ExpectedCase
from .tree_search.infos import INFO_FIELDS
from .tree_search.tree import Node, SearchTree

RESERVED_INFO_KEYS = frozenset(
    {"episode", "final_obs", "final_info", "action_mask", "active_agent", "prefix", "suffix"}
)
"""Keys that Gymnasium, PettingZoo or AgileRL give a meaning of their own."""

ODD_TEXTS = (
    "print(1)",
    "",
    "```python\nprint(input())\n```",
    "naïve 漢字 🙂 \u202e\u0000 text",
    "lone \ud800 surrogate \udfff",
    "\n" * 1000,
)
"""Completions that a model may well produce."""

TextPolicy = Callable[[str, Any, Mapping[str, Any], int], str]
"""From agent, observation, info and turn to a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StubJudge:
    """Judges by a hash of task and text: deterministic, instant, meaningless.

    Args:
        solve_rate: share of texts that solve their task.
        public_total: public tests that it pretends to run.
    """

    solve_rate: float = 0.3
    public_total: int = 3

    def judge(self, task: CodeTask, completion: str) -> Verdict:
        """Return the verdict that the hash gives."""
        digest = hashlib.sha256(
            f"{task.task_id}\0{completion}".encode("utf-8", "surrogatepass")
        ).digest()
        solved = int.from_bytes(digest[:4], "big") < self.solve_rate * 2**32
        passed = self.public_total if solved else digest[4] % self.public_total
        status = "accepted" if solved else "wrong_answer"
        failure = None if solved else CaseFeedback(name="stub", status=status, actual="nothing")
        return Verdict(
            score=passed / self.public_total,
            solved=solved,
            status=status,
            public_passed=passed,
            public_total=self.public_total,
            feedback=Feedback(
                passed=passed, total=self.public_total, status=status, failure=failure
            ),
            program=completion,
        )

    def close(self) -> None:
        """Do nothing."""


def stub_tasks(count: int = 3) -> list[CodeTask]:
    """Return small tasks for environments whose judge is a stub."""
    return [
        CodeTask(
            task_id=f"stub/{index}",
            statement=f"Print {index}.",
            public=(ExpectedCase(name="1", input="", expected=str(index)),),
        )
        for index in range(count)
    ]


def stub_score(task: CodeTask, tree: SearchTree, node: Node) -> float:
    """Score by a hash of task and text: a stand-in for a reward model."""
    digest = hashlib.sha256(
        f"{task.task_id}\0{node.reply}\0score".encode("utf-8", "replace")
    ).digest()
    return digest[0] / 255


def odd_policy(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> str:
    """Answer with the odd texts in turn."""
    return ODD_TEXTS[turn % len(ODD_TEXTS)]


def odd_partner(observation: Any, info: Mapping[str, Any]) -> str:
    """Play a partner of `SingleAgentView` with an odd text for every number of nodes."""
    return ODD_TEXTS[int(info["nodes_left"]) % len(ODD_TEXTS)]


def check_text_aec(
    make_env: Callable[[], Any],
    *,
    policy: TextPolicy = odd_policy,
    seeds: Sequence[int] = (0, 1),
    info_fields: Mapping[str, type] | None = None,
) -> None:
    """Check a PettingZoo AEC environment whose actions are texts, over whole episodes.

    Args:
        make_env: makes the environment anew.
        policy: speaks for every agent; must depend on its arguments alone.
        seeds: one episode is played for each.
        info_fields: the exact keys and types of each info; None: only flat scalars, always with
            the same keys.

    Raises:
        AssertionError: the first rule that is broken.
    """
    for seed in seeds:
        first, second = make_env(), make_env()
        trace = _episode(first, seed, policy, info_fields)
        again = _episode(second, seed, policy, info_fields)
        _assert_same(trace, again, f"seed {seed}, played twice")
        # The same object again: nothing may leak from one episode into the next.
        _assert_same(trace, _episode(first, seed, policy, info_fields), f"seed {seed}, replayed")
        for name, clone in (
            ("deepcopy", copy.deepcopy),
            ("pickle", lambda env: pickle.loads(pickle.dumps(env))),
        ):
            resumed = _episode(
                second, seed, policy, info_fields, clone_at=len(trace) // 2, clone=clone
            )
            _assert_same(trace, resumed, f"seed {seed}, continued from a {name}")
        first.close()
        second.close()


def check_tree_search(make_env: Callable[[], Any], **options: Any) -> None:
    """Check an environment against the contract of the tree environments (docs/contract.md)."""
    check_text_aec(make_env, info_fields=INFO_FIELDS, **options)


def check_info(info: Mapping[str, Any], info_fields: Mapping[str, type] | None = None) -> None:
    """Check one info: flat, plain scalars, no reserved key; exactly `info_fields` where given.

    Raises:
        AssertionError: it breaks the contract.
    """
    for key, value in info.items():
        reserved = key in RESERVED_INFO_KEYS or key.startswith("_")
        assert not reserved, f"info key {key!r} is reserved; see docs/contract.md"
        assert type(value) in (bool, int, float, str), (
            f"info[{key!r}] must be a plain bool, int, float or str, got {type(value).__name__}"
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


Frame = dict[str, Any]


def _episode(
    env: Any,
    seed: int,
    policy: TextPolicy,
    info_fields: Mapping[str, type] | None,
    *,
    clone_at: int | None = None,
    clone: Callable[[Any], Any] | None = None,
) -> list[Frame]:
    """Play one episode to its end and return a frame for every turn, dead steps included."""
    env.reset(seed=seed)
    trace: list[Frame] = []
    keys: dict[str, frozenset[str]] = {}
    seen: dict[str, Any] = {}
    while env.agents:
        if clone is not None and len(trace) == clone_at:
            env = clone(env)
        for agent in env.agents:
            observation, info = env.observe(agent), env.infos[agent]
            assert env.observation_space(agent).contains(observation), (
                f"the observation of {agent} is not in its space: {observation!r}"
            )
            check_info(info, info_fields)
            assert keys.setdefault(agent, frozenset(info)) == frozenset(info), (
                f"the info keys of {agent} changed within an episode"
            )
        agent = env.agent_selection
        observation, reward, terminated, truncated, info = env.last()
        over = terminated or truncated
        action = None if over else policy(agent, observation, info, len(trace))
        trace.append(
            {
                "agent": agent,
                "agents": list(env.agents),
                "observations": {a: _plain(env.observe(a)) for a in env.agents},
                "reward": float(reward),
                "terminated": terminated,
                "truncated": truncated,
                "infos": {a: dict(env.infos[a]) for a in env.agents},
                "action": action,
            }
        )
        seen = {a: env.infos[a] for a in env.agents}
        env.step(action)
        if not over:
            for a in env.agents:
                assert env.infos[a] is not seen[a], f"the info of {a} is the same dict after a step"
    return trace


def _plain(value: Any) -> Any:
    """Return an observation as data that compares with `==`, byte for byte."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return value


def _assert_same(expected: list[Frame], actual: list[Frame], what: str) -> None:
    for turn, (left, right) in enumerate(zip(expected, actual, strict=False)):
        for key in left:
            assert left[key] == right[key], (
                f"{what}: {key} of turn {turn} differs:\n  {left[key]!r}\n  {right[key]!r}"
            )
    assert len(expected) == len(actual), (
        f"{what}: the episode took {len(actual)} turns instead of {len(expected)}"
    )

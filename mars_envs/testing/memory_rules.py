"""What must hold at every moment of an episode of a memory environment (docs/contract.md).

`MemoryRules` follows an AEC or a Parallel environment, in which every agent is seen. Of a
Gymnasium view, which shows one agent at a time, `MemoryViewRules` checks what can be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from ..parallel_memory.infos import INFO_FIELDS, NO_CALL, NOTHING, REQUEST_FIELDS
from ..parallel_memory.observations import TEXTS
from ..parallel_memory.state import STATE_COLUMNS
from ..parallel_memory.workflow import Phase
from ..spaces import TEXT_LIMIT
from .actions import check_taken
from .gym import LEARNER, check_prompt
from .memory_infos import check_ending, check_facts
from .memory_texts import check_prompt_holds, check_tokens
from .memory_turns import Turns
from .moments import Moment

SHARED = tuple(key for key in INFO_FIELDS if key not in {*NO_CALL, *REQUEST_FIELDS})
"""Facts of the episode: all agents are told the same."""
CONSTANT = ("task_id", "n_chunks")
GROWING = ("n_calls", "n_failed", "n_malformed", "turns_used", "turns_productive", "gold_recall")
PHASES = {
    "reader": Phase.READ,
    "memorizer": Phase.READ,
    "merger": Phase.MERGE,
    "answerer": Phase.ANSWER,
}
"""When the agents of a role are asked."""


class MemoryRules:
    """The rules of one episode of an AEC or Parallel environment.

    Args:
        env: the environment; only its spaces, names and metadata are read.

    Raises:
        AssertionError: it has no such state or agents as the contract says.
    """

    def __init__(self, env: Any) -> None:
        space: Any = getattr(env.unwrapped, "state_space", None)
        shape = (len(STATE_COLUMNS),)
        table = isinstance(space, Box) and space.dtype == np.float32 and space.shape == shape
        assert table, (
            f"state_space must be a float32 Box of shape [{len(STATE_COLUMNS)}], got {space!r:.200}"
        )
        roles = {role_of(agent) for agent in env.possible_agents}
        assert roles <= set(PHASES), (
            f"agents are called reader_0, merger_0, answerer_0 or memorizer_0, by role and number; "
            f"got {list(env.possible_agents)[:5]}"
        )
        assert env.metadata.get("shared_reward") is True, (
            "metadata['shared_reward'] must be True: all agents are paid the team's reward, which "
            "counts once"
        )
        self._turns = Turns(reads={"reader", "memorizer"} & roles != set())
        self._before: Moment | None = None

    def __call__(self, moment: Moment) -> None:
        """Check the next moment."""
        for agent, info in moment.infos.items():
            check_facts(agent, info)
            check_ending(agent, info, moment.terminations[agent], moment.truncations[agent])
        if moment.infos:
            info = next(iter(moment.infos.values()))
            self._check_shared(moment, info)
            self._check_calls(moment)
            self._check_requests(moment, info)
            self._turns.follow(moment, self._before)
            _check_rewards(moment, info)
            expected = self._turns.state(info)
            assert np.allclose(moment.state[: len(expected)], expected, atol=1e-6), (
                f"state() is {moment.state}, expected {expected}: {', '.join(STATE_COLUMNS)}, as "
                "infos tell them. It holds public facts only"
            )
        self._before = moment

    def _check_shared(self, moment: Moment, info: Mapping[str, Any]) -> None:
        for key in SHARED:
            told = {agent: other[key] for agent, other in moment.infos.items()}
            assert len(set(told.values())) == 1, (
                f"info[{key!r}] is a fact of the episode, the same for all agents, got {told}"
            )
        if self._before is None or not self._before.infos:
            return
        before = next(iter(self._before.infos.values()))
        for key in CONSTANT:
            assert info[key] == before[key], (
                f"info[{key!r}] changed within an episode, from {before[key]!r} to {info[key]!r}"
            )
        for key in GROWING:
            assert info[key] >= before[key], (
                f"info[{key!r}] counts what has happened, but it fell from {before[key]!r} to "
                f"{info[key]!r}"
            )

    def _check_calls(self, moment: Moment) -> None:
        """Check that those who had a call, and they alone, are told what became of it."""
        before = self._before
        for agent in moment.agents:
            info = moment.infos[agent]
            if before is None or agent not in moment.movers or not before.infos[agent]["active"]:
                old = NO_CALL if before is None else before.infos[agent]
                for key in NO_CALL:
                    assert info[key] == old[key], (
                        f"info[{key!r}] of {agent} went from {old[key]!r} to {info[key]!r}, but it "
                        "was not asked in this turn; call facts are those of its last call"
                    )
                continue
            asked, seen = before.infos[agent], before.observations[agent]
            if info["stop_reason"] == "backend_error" and info["call_id"] != asked["ask_id"]:
                continue  # one failure too many came first
            for key, expected in (
                ("call_id", asked["ask_id"]),
                ("turn", seen["turn"]),
                ("chunk_index", seen["chunk_index"]),
            ):
                assert info[key] == expected, (
                    f"{agent} was asked for the call {asked['ask_id']} (turn {seen['turn']}, chunk "
                    f"{seen['chunk_index']}), so its info[{key!r}] must be {expected}, got "
                    f"{info[key]}"
                )
            failed = agent not in moment.actions
            assert (info["status"] == "error") == failed, (
                f"info['status'] of {agent} is {info['status']!r}, but it "
                + ("failed to act" if failed else f"said {moment.actions[agent]!r:.80}")
                + "; 'error' is for failures, and a bad reply is none"
            )
            self._check_text(agent, moment, before)

    def _check_text(self, agent: str, moment: Moment, before: Moment) -> None:
        info, seen = moment.infos[agent], before.observations[agent]
        text = moment.actions.get(agent, "")
        check_taken(agent, info, text)
        for key, told in (("output_tokens", text[:TEXT_LIMIT]), ("prompt_tokens", seen["prompt"])):
            if info["status"] != "error" and not before.infos[agent]["prompt_truncated"]:
                check_tokens(f"info[{key!r}] of {agent} is {info[key]}, for", info[key], told)
        if seen["chunk"] and len(seen["chunk"]) < TEXT_LIMIT and info["chunk_index"] != NOTHING:
            length = info["span_end"] - info["span_start"]
            assert length == len(seen["chunk"]), (
                f"{agent} read a chunk of {len(seen['chunk'])} characters, but span_start and "
                f"span_end are {length} apart; they say where it stands in the document"
            )

    def _check_requests(self, moment: Moment, info: Mapping[str, Any]) -> None:
        if moment.over:
            asked: tuple[str, ...] = ()
        else:
            asked = moment.asked
        active = tuple(agent for agent in moment.agents if moment.infos[agent]["active"])
        assert set(active) == set(asked), (
            f"info['active'] is true for {list(active)}, but it is the turn of {list(asked)}"
        )
        for agent in moment.agents:
            seen = moment.observations[agent]
            expected = {
                "phase": info["phase"],
                "active": int(agent in active),
                "turn": info["turns_used"],
                "n_chunks": info["n_chunks"],
            }
            for key, value in expected.items():
                assert seen[key] == value, (
                    f"the observation of {agent} has {key} {seen[key]!r}, but infos say {value!r}"
                )
            assert seen["max_turns"] - seen["turn"] == info["turns_left"], (
                f"the observation of {agent} is in turn {seen['turn']} of {seen['max_turns']}, but "
                f"info['turns_left'] is {info['turns_left']}"
            )
            if agent in active:
                _check_request(agent, seen)
            else:
                texts = {name: seen[name] for name in (*TEXTS, "role") if seen[name]}
                assert not texts, (
                    f"{agent} is not asked but sees {texts!r:.200}; those who are not asked see "
                    "empty texts"
                )
                assert seen["chunk_index"] == NOTHING, (
                    f"{agent} is not asked but sees chunk_index {seen['chunk_index']}"
                )


class MemoryViewRules:
    """The rules of one episode of a Gymnasium view.

    Args:
        env: the environment.
    """

    def __init__(self, env: Any) -> None:
        self._before: Mapping[str, Any] = {}

    def __call__(self, moment: Moment) -> None:
        """Check the next moment."""
        info, before = moment.infos[LEARNER], self._before
        check_facts("the agent", info)
        check_ending("the agent", info, moment.terminations[LEARNER], moment.truncations[LEARNER])
        check_prompt(moment)
        seen = moment.observations[LEARNER]
        if isinstance(seen, Mapping):
            check_prompt_holds("the agent", seen, cut=info["prompt_truncated"])
        _check_rewards(moment, info)
        if before:
            for key in CONSTANT:
                assert info[key] == before[key], f"info[{key!r}] changed within an episode"
            assert info["n_calls"] > before["n_calls"], (
                f"info['n_calls'] went from {before['n_calls']} to {info['n_calls']} in a step; "
                "every action answers a call"
            )
            assert info["call_id"] == before["ask_id"], (
                f"info['ask_id'] was {before['ask_id']}, but after the action info['call_id'] is "
                f"{info['call_id']}; a step's info is that of the agent that acted"
            )
        self._before = info


def role_of(agent: str) -> str:
    """Return the role in an agent's name."""
    return agent.rpartition("_")[0]


def _check_request(agent: str, seen: Mapping[str, Any]) -> None:
    role = role_of(agent)
    assert seen["prompt"], f"{agent} is asked, but its prompt is empty"
    assert seen["role"] == role, f"{agent} is asked to be a {seen['role']!r}"
    assert seen["phase"] == PHASES[role], (
        f"{agent} is asked in the phase {seen['phase']}; those of its role are asked in "
        f"{int(PHASES[role])} ({PHASES[role].name})"
    )
    reads = role in ("reader", "memorizer")
    assert reads == (seen["chunk_index"] != NOTHING), (
        f"{agent} sees chunk_index {seen['chunk_index']}; it is {NOTHING} but for those who read"
    )
    assert seen["question"], f"{agent} is asked, but sees no question"


def _check_rewards(moment: Moment, info: Mapping[str, Any]) -> None:
    # What stands after the end is paid once, by the step that ended it.
    paid = info["reward_answer"] + info["reward_turns"] if moment.movers else 0.0
    for agent, reward in moment.rewards.items():
        assert abs(reward - paid) < 1e-9, (
            f"the reward of {agent} is {reward!r}, but reward_answer + reward_turns is {paid!r}; "
            "every agent is paid the team's reward once, by the last action"
        )

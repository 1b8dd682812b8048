"""What must hold at every moment of an episode of a tree environment (docs/contract.md).

`TreeRules` follows an AEC or a Parallel environment, in which every agent is seen. Of a Gymnasium
view, which shows one agent at a time, `ViewRules` checks what can be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from ..tree_search.choosing import read_choice
from ..tree_search.node_table import COLUMNS
from ..tree_search.tree import NOTHING, ROOT
from .actions import check_taken
from .gym import LEARNER, check_prompt
from .moments import Moment
from .tree_infos import check_ending, check_facts
from .tree_shadow import Known, Shadow

SHARED = (
    "task_id",
    "oracle",
    "nodes_left",
    "tokens_left",
    "stop_reason",
    "best_node_id",
    "best_score",
    "best_solved",
)
"""Facts of the episode: all agents are told the same."""
REQUESTS = ("active", "expand_id", "expand_depth", "action_mask")


class TreeRules:
    """The rules of one episode of an AEC or Parallel environment.

    Args:
        env: the environment; only its spaces and names are read.

    Raises:
        AssertionError: it has no such state as the contract says.
    """

    def __init__(self, env: Any) -> None:
        space: Any = getattr(env.unwrapped, "state_space", None)
        table = (
            isinstance(space, Box)
            and space.dtype == np.float32
            and space.shape[1:] == (len(COLUMNS),)
        )
        assert table, (
            f"state_space must be a float32 Box of shape [budget + 1, 6], got {space!r:.200}"
        )
        self._shadow = Shadow(env.possible_agents, space.shape[0] - 1)
        self._before: Moment | None = None
        self._start: Mapping[str, Mapping[str, Any]] = {}

    def __call__(self, moment: Moment) -> None:
        """Check the next moment."""
        for agent, info in moment.infos.items():
            check_facts(agent, info)
            check_ending(agent, info, moment.terminations[agent], moment.truncations[agent])
        self._check_shared(moment)
        made = self._grow(moment)
        self._check_rewards(moment, made)
        if moment.infos:
            self._check_budgets(moment)
            self._check_best(moment)
        self._check_turns(moment)
        for agent in moment.agents:
            self._check_observation(agent, moment)
            self._check_mask(agent, moment.infos[agent])
        assert np.array_equal(moment.state, self._shadow.state()), (
            "state() is not what infos say (row of the parent, author, depth, public score, "
            f"visits, valid):\n{moment.state}\nexpected\n{self._shadow.state()}\nIt holds public "
            "facts only"
        )
        self._before = moment

    def _check_shared(self, moment: Moment) -> None:
        infos = list(moment.infos.values())
        for key in SHARED:
            told = {agent: info[key] for agent, info in moment.infos.items()}
            assert len(set(told.values())) <= 1, (
                f"info[{key!r}] is a fact of the episode, the same for all agents, got {told}"
            )
        if self._before is None:
            self._start = moment.infos
        elif infos:
            first = next(iter(self._start.values()))
            for key in ("task_id", "oracle"):
                assert infos[0][key] == first[key], (
                    f"info[{key!r}] changed within an episode, from {first[key]!r} to "
                    f"{infos[0][key]!r}"
                )

    def _grow(self, moment: Moment) -> dict[str, Known]:
        """Add the nodes of those who acted, and check that nobody else made one."""
        made: dict[str, Known] = {}
        for agent in moment.agents:
            info = moment.infos[agent]
            if agent in moment.actions:
                self._check_parent(agent, moment.actions[agent], info)
                made[agent] = self._shadow.grow(agent, info)
                continue
            before = {"node_id": NOTHING} if self._before is None else self._before.infos[agent]
            for key in sorted(set(before) - {*SHARED, *REQUESTS, "own_nodes_left"}):
                assert info[key] == before[key], (
                    f"info[{key!r}] of {agent} went from {before[key]!r} to {info[key]!r}, but it "
                    "made no node in this turn; node facts are those of its latest node, and a "
                    "failure or a reset makes none"
                )
        return made

    def _check_parent(self, agent: str, action: Any, info: Mapping[str, Any]) -> None:
        """Check that an action became a node below the parent that was asked for, or chosen."""
        assert self._before is not None
        asked = self._before.infos[agent]
        expected, refused, text = asked["expand_id"], False, action
        if "action_mask" in asked:
            text, chosen = read_choice(action, self._shadow.budget)
            mask = asked["action_mask"]["parent"]
            if chosen is not None:
                refused = not (ROOT <= chosen < len(self._shadow.nodes) and mask[chosen + 1])
                expected = expected if refused else chosen
        told = (info["node_parent_id"], info["parent_refused"])
        assert told == (expected, refused), (
            f"{agent} was asked to expand {asked['expand_id']} and acted {action!r:.80}; expected "
            f"node_parent_id {expected} and parent_refused {refused}, got {told[0]} and {told[1]}"
        )
        check_taken(agent, info, text)

    def _check_rewards(self, moment: Moment, made: Mapping[str, Known]) -> None:
        for agent, reward in moment.rewards.items():
            solved = agent in made and made[agent].solved
            assert reward == float(solved), (
                f"the reward of {agent} is {reward!r}, but it "
                + ("made a solved node" if solved else "made no solved node in this turn")
                + "; a solved node pays 1.0 to its author, on its own step, and all else 0.0"
            )

    def _check_budgets(self, moment: Moment) -> None:
        left = self._shadow.budget - len(self._shadow.nodes)
        for agent, info in moment.infos.items():
            assert info["nodes_left"] == left, (
                f"info['nodes_left'] is {info['nodes_left']}, but {len(self._shadow.nodes)} nodes "
                f"of {self._shadow.budget} are made; nothing but a node spends the budget"
            )
            own = self._start[agent]["own_nodes_left"] - self._shadow.count(agent)
            expected = max(0, min(own, left))
            assert info["own_nodes_left"] == expected, (
                f"info['own_nodes_left'] of {agent} is {info['own_nodes_left']}, expected "
                f"{expected} after {self._shadow.count(agent)} nodes of its own"
            )
            tokens = self._start[agent]["tokens_left"]
            if tokens != NOTHING:
                tokens = max(0, tokens - sum(node.tokens for node in self._shadow.nodes))
            assert info["tokens_left"] == tokens, (
                f"info['tokens_left'] is {info['tokens_left']}, expected {tokens}: what was left "
                "at the start less info['tokens'] of every node"
            )
        reason = next(iter(moment.infos.values()))["stop_reason"]
        solved = any(node.solved_public for node in self._shadow.nodes)
        assert reason != "solved" or solved, (
            "stop_reason is 'solved', but no node passes every public test"
        )
        spent = all(info["own_nodes_left"] == 0 for info in moment.infos.values())
        assert spent or reason != "agent_budgets", (
            "stop_reason is 'agent_budgets', but an agent has own_nodes_left"
        )
        assert reason or not spent, "the episode runs though no agent may make a node any more"

    def _check_best(self, moment: Moment) -> None:
        info = next(iter(moment.infos.values()))
        best, nodes = info["best_node_id"], self._shadow.nodes
        if not nodes:
            assert best == NOTHING, f"info['best_node_id'] is {best} in an empty tree"
            return
        top = max(node.score for node in nodes)
        equals = [node.id for node in nodes if node.score == top]
        # At the end a reward model may choose between nodes of equal public score.
        allowed = equals if info["stop_reason"] else equals[-1:]
        assert best in allowed, (
            f"info['best_node_id'] is {best}; the highest public score is {top!r}, of "
            f"{equals}, and of equals the latest is the best"
        )
        told = (info["best_score"], info["best_solved"])
        assert told == (nodes[best].score, nodes[best].solved), (
            f"best_score and best_solved are {told}, which is not what was said of node {best}"
        )

    def _check_turns(self, moment: Moment) -> None:
        if moment.over:
            return
        active = tuple(agent for agent in moment.agents if moment.infos[agent]["active"])
        assert active == moment.asked, (
            f"info['active'] is true for {list(active)}, but it is the turn of {list(moment.asked)}"
        )
        left = self._shadow.budget - len(self._shadow.nodes)
        assert len(active) <= left, (
            f"{len(active)} agents are asked, but only {left} nodes are left; the budget is spent "
            "exactly"
        )
        for agent in active:
            assert moment.infos[agent]["own_nodes_left"] > 0, (
                f"{agent} is asked, but its own_nodes_left is 0"
            )

    def _check_observation(self, agent: str, moment: Moment) -> None:
        info, observation = moment.infos[agent], moment.observations[agent]
        asked = info["active"]
        prompt = observation["prompt"]
        assert bool(prompt) == asked, (
            f"the prompt of {agent} is {prompt!r:.200} and info['active'] {asked}; those who are "
            "asked see what to answer, and others an empty text"
        )
        if asked:
            parent = info["expand_id"]
            assert ROOT <= parent < len(self._shadow.nodes), (
                f"{agent} is asked to expand {parent}, but there are {len(self._shadow.nodes)} "
                f"nodes, from 0, and the root, {ROOT}"
            )
            assert info["expand_depth"] == self._shadow.depth(parent), (
                f"info['expand_depth'] of {agent} is {info['expand_depth']}, but {parent} is "
                f"{self._shadow.depth(parent)} deep"
            )
        expected = self._shadow.features(agent, info["expand_id"] if asked else None)
        assert np.allclose(observation["features"], expected, atol=1e-6), (
            f"the features of {agent} are {observation['features']}, expected {expected}: depth, "
            "public score and descendants of the parent (0 if it is not its turn), budget left, "
            "own nodes; depths and counts divided by the budget"
        )
        if "tree" in observation:
            assert np.array_equal(observation["tree"], moment.state), (
                f"the `tree` that {agent} sees is not what state() returns"
            )

    def _check_mask(self, agent: str, info: Mapping[str, Any]) -> None:
        if "action_mask" not in info:
            return
        mask, nodes = info["action_mask"]["parent"], self._shadow.nodes
        must = {0} | {node.id + 1 for node in nodes if not node.solved_public}
        may = must | {node.id + 1 for node in nodes}
        rows = set(np.flatnonzero(mask).tolist())
        if info["active"]:
            assert must <= rows <= may, (
                f"info['action_mask'] of {agent} allows the rows {sorted(rows)}; expected the "
                f"root and all nodes, {sorted(may)}, where only those that pass every public test "
                f"may be left out, so at least {sorted(must)}"
            )
        else:
            assert rows == {0}, (
                f"info['action_mask'] of {agent}, which is not asked, allows the rows "
                f"{sorted(rows)}; it is the root alone, [0]"
            )


class ViewRules:
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
        reward = moment.rewards[LEARNER]
        assert not before or reward == float(info["solved"]), (
            f"the reward is {reward!r} and info['solved'] of the agent that acted "
            f"{info['solved']}; a solved node pays 1.0 to its author, and all else 0.0"
        )
        if before:
            assert info["task_id"] == before["task_id"], "the task changed within an episode"
            assert info["nodes_left"] < before["nodes_left"], (
                f"info['nodes_left'] went from {before['nodes_left']} to {info['nodes_left']} in a "
                "step; every action makes a node"
            )
            assert info["node_id"] >= 0, (
                f"an action makes a node, but info['node_id'] is {info['node_id']}; a step's info "
                "is that of the agent that acted"
            )
        self._before = info

"""The compliance kit: one broken environment for every rule of Parallel and Gymnasium ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv, UnicodeText
from mars_envs.testing import (
    StubJudge,
    check_info,
    check_text_aec,
    check_text_gym,
    check_text_parallel,
    check_tree_search,
    stub_tasks,
)
from mars_envs.tree_search.view import TreeSearchView


class Rounds(ParallelTreeSearchEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(tasks=stub_tasks(), judge=StubJudge, budget=5, agents=3, **options)


# Parallel -------------------------------------------------------------------------------------


class Edited(Rounds):
    """Edits what `step` returns."""

    def edit(self, *parts: dict[str, Any]) -> None:
        raise NotImplementedError

    def step(self, actions: Any) -> Any:
        returned = super().step(actions)
        self.edit(*returned)
        return returned


class LeavesOutRewards(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        del parts[1]["coder_2"]


class NumpyFlags(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[3]["coder_0"] = np.False_  # type: ignore[assignment]


class ArrayRewards(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[1]["coder_0"] = np.zeros(1)


class WrongObservation(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[0]["coder_1"] = {**parts[0]["coder_1"], "features": np.full(5, 2.0, np.float32)}


class WrongInfo(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[4]["coder_0"]["tokens"] = [1, 2]


class LateKey(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[4]["coder_1"]["late"] = 1


class SitsOut(Edited):
    """Takes agents that are not active out of `agents`."""

    def edit(self, *parts: dict[str, Any]) -> None:
        self.agents = [agent for agent in self.agents if parts[4][agent]["active"]]


class NobodyActive(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        for info in parts[4].values():
            info["active"] = False


class GlobalRandom(Edited):
    def edit(self, *parts: dict[str, Any]) -> None:
        parts[1]["coder_0"] = random.random()


class ClockAtTheEnd(Edited):
    """Differs in the last step alone, where PettingZoo's own seed test does not look."""

    episodes = 0

    def edit(self, *parts: dict[str, Any]) -> None:
        if not self.agents:
            ClockAtTheEnd.episodes += 1
            parts[4]["coder_0"]["status"] = f"took {ClockAtTheEnd.episodes} s"


class HearsTheIdle(Rounds):
    """Lets agents act that were not asked."""

    heard = ""

    def step(self, actions: Any) -> Any:
        self.heard += "".join(str(action) for action in actions.values())
        returned = super().step(actions)
        returned[4]["coder_0"]["status"] = self.heard
        return returned


class StaleInfo(Rounds):
    def step(self, actions: Any) -> Any:
        returned = list(super().step(actions))
        self.kept = getattr(self, "kept", None) or returned[4]
        returned[4] = self.kept
        return tuple(returned)


class FailsOtherwise(Rounds):
    """Retires for good who says that it fails, but not who is missing."""

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason, permanent=True)


class Forgetful(Rounds):
    """Loses its episode on the way through a copy."""

    def __deepcopy__(self, memo: Any) -> Rounds:
        twin = type(self)()
        twin.reset(seed=99)
        return twin


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LeavesOutRewards, r"rewards are for \['coder_0', 'coder_1'\], but the agents that were"),
        (NumpyFlags, "terminations and truncations are plain bools, got np.False_ for coder_0"),
        (ArrayRewards, "the reward of coder_0 must be a plain number"),
        (WrongObservation, "the observation of coder_1 is not in its space"),
        (WrongInfo, r"info\['tokens'\] must be a plain bool, int, float or str, got list; convert"),
        (LateKey, r"the info keys of coder_1 changed within an episode: \['late'\] came or went"),
        (SitsOut, "one that has nothing to say stays, with info.'active'. false"),
        (NobodyActive, "3 agents are alive but none is active"),
        (GlobalRandom, r"seed 0, played twice: rewards of turn 1 differs(.|\n)*Draw only from"),
        (ClockAtTheEnd, r"seed 0, played twice: infos of turn 2 differs"),
        (HearsTheIdle, "(replayed|other actions of agents that are not active)"),
        (StaleInfo, "the info of coder_0 is the same dict after a step"),
        (FailsOtherwise, "an agent that is missing from the actions, and one that fail"),
        (Forgetful, "seed 0, continued from a deepcopy"),
    ],
)
def test_the_kit_finds_a_broken_parallel_environment(
    broken: Callable[[], Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_text_parallel(broken)


def test_the_kit_accepts_parallel_environments_that_keep_the_rules() -> None:
    check_text_parallel(Rounds)


class Endless(Rounds):
    def step(self, actions: Any) -> Any:
        observations, _ = self.reset(seed=0)
        zero, no = dict.fromkeys(self.agents, 0.0), dict.fromkeys(self.agents, False)
        return observations, zero, no, no, {a: dict(i) for a, i in self._infos_now().items()}

    def _infos_now(self) -> Any:
        return self._infos(self._ending())


def test_an_endless_episode_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mars_envs.testing.episodes.MAX_TURNS", 20)
    with pytest.raises(AssertionError, match="the episode did not end within 20 steps"):
        check_text_parallel(Endless)


# Failing in the AEC form ----------------------------------------------------------------------


class Turns(TreeSearchEnv):
    def __init__(self) -> None:
        super().__init__(tasks=stub_tasks(), judge=StubJudge, budget=4)


class PaysForFailing(Turns):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason, permanent)
        self.rewards[agent] = 1.0


class DropsWhoFails(Turns):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason, permanent=True)
        self.agents.remove(agent)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (PaysForFailing, "paid 1.0 to coder_.; a failure earns nothing"),
        (DropsWhoFails, "changed `agents` from .*; agents keep their place"),
    ],
)
def test_the_kit_finds_an_environment_that_fails_wrongly(
    broken: Callable[[], Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_text_aec(broken)


# Gymnasium ------------------------------------------------------------------------------------


class View(TreeSearchView):
    def __init__(self) -> None:
        super().__init__(tasks=stub_tasks(), judge=StubJudge, budget=4)


class NumpyEnd(View):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated), truncated, info


class TextReward(View):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, str(reward), terminated, truncated, info


class NoPrompt(gym.Env[Any, Any]):
    observation_space = gym.spaces.Discrete(3)
    action_space = UnicodeText()

    def reset(self, **options: Any) -> Any:
        return 1, {}


class Clock(View):
    steps = 0

    def step(self, action: Any) -> Any:
        Clock.steps += 1
        *returned, info = super().step(action)
        return *returned, {**info, "nodes_left": Clock.steps}


class KeepsInfo(View):
    def step(self, action: Any) -> Any:
        *returned, info = super().step(action)
        self.kept = getattr(self, "kept", None) or info
        return *returned, self.kept


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NumpyEnd, "terminations and truncations are plain bools, got .*; wrap it in bool"),
        (TextReward, "the reward of the agent must be a plain number, got '1.0'"),
        (NoPrompt, "the observation of the agent holds no prompt: expected a str"),
        (Clock, "seed 0, played twice: infos of turn 1 differs"),
        (KeepsInfo, "the info of the agent is the same dict after a step"),
    ],
)
def test_the_kit_finds_a_broken_view(broken: Callable[[], Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_text_gym(broken)


def test_the_kit_accepts_views_that_keep_the_rules() -> None:
    check_text_gym(View)
    check_tree_search(View)


def test_a_view_must_keep_the_tree_contract_s_keys() -> None:
    class Short(View):
        def _info(self, actor: str, agent: str) -> dict[str, Any]:
            info = super()._info(actor, agent)
            del info["depth"]
            return info

    with pytest.raises(AssertionError, match=r"missing \['depth'\]"):
        check_tree_search(Short)


# Masks ----------------------------------------------------------------------------------------


def test_a_true_mask_may_be_in_an_info_and_nothing_else_by_that_name() -> None:
    space = gym.spaces.Dict(parent=gym.spaces.Discrete(2), text=UnicodeText())
    mask = {"parent": np.array([1, 0], np.int8), "text": None}
    check_info({"action_mask": mask}, action_space=space)
    with pytest.raises(AssertionError, match=r"info\['action_mask'\] is no mask of Dict"):
        check_info({"action_mask": np.ones(2, np.int8)}, action_space=space)
    with pytest.raises(AssertionError, match="info key 'action_mask' is reserved"):
        check_info({"action_mask": mask})


# Policies -------------------------------------------------------------------------------------


class Narrow(Turns):
    """Takes no other texts than those of its space."""

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Text(20, charset="abc")

    def step(self, action: Any) -> None:
        assert action is None or self.action_space("coder_0").contains(action)
        super().step(action)


def test_an_environment_with_a_narrow_action_space_needs_a_policy_of_its_own() -> None:
    with pytest.raises(AssertionError, match=r"does not hold the text .* or pass policy="):
        check_text_aec(Narrow)
    check_text_aec(Narrow, policy=lambda agent, seen, info, turn: "abc"[: 1 + turn % 3])


def test_the_kit_says_what_it_must_be_given() -> None:
    not_a_maker: Any = Turns()
    with pytest.raises(AssertionError, match="expected something that makes the environment anew"):
        check_tree_search(not_a_maker)
    with pytest.raises(AssertionError, match=r"makes a pettingzoo\..*AECEnv, got a Rounds"):
        check_text_aec(Rounds)

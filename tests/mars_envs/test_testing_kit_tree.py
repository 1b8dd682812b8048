"""The compliance kit and the tree contract: one broken environment for every rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.errors import JudgeUnavailable
from mars_envs.testing import StubJudge, check_tree_search, stub_tasks
from mars_envs.tree_search.view import TreeSearchView

STUBS: dict[str, Any] = {"tasks": stub_tasks(), "judge": StubJudge, "budget": 5}


class Turns(TreeSearchEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**STUBS, **options})


class Rounds(ParallelTreeSearchEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**STUBS, **options})


class View(TreeSearchView):
    def __init__(self) -> None:
        super().__init__(**STUBS)


class Choosing(Turns):
    def __init__(self) -> None:
        super().__init__(select="agent")


# States and observations ----------------------------------------------------------------------


class NoState(Rounds):
    def state(self) -> Any:
        raise NotImplementedError


class TextState(Turns):
    def state(self) -> Any:
        return "nonsense"


class HiddenState(Turns):
    """Shows a critic what only hidden tests know."""

    def state(self) -> Any:
        state = super().state()
        for node in self.tree:
            state[node.id + 1, 3] = float(node.solved)
        return state


class HiddenPrompt(Turns):
    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        if seen["prompt"]:
            seen["prompt"] += " ".join(str(node.solved) for node in self.tree)
        return seen


class PromptsForAll(Turns):
    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        return {**seen, "prompt": seen["prompt"] or "not your turn"}


class WrongFeatures(Turns):
    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        return {**seen, "features": seen["features"][::-1].copy()}


class SharedArray(Turns):
    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        self.kept = getattr(self, "kept", seen["features"])
        self.kept[:] = seen["features"]
        return {**seen, "features": self.kept}


class OldTree(Choosing):
    def observe(self, agent: str) -> dict[str, Any]:
        seen = super().observe(agent)
        seen["tree"][1:] = 0
        return seen


# Infos ----------------------------------------------------------------------------------------


class Told(Turns):
    """Tells every agent, or the first one, something else."""

    says: dict[str, Any]
    first_only = False

    def _infos(self, ending: Any) -> Any:
        infos = super()._infos(ending)
        for info in list(infos.values())[: 1 if self.first_only else None]:
            info.update(self.says)
        return infos


def told(first_only: bool = False, **says: Any) -> Callable[[], Told]:
    return type("Told", (Told,), {"says": says, "first_only": first_only})


class Lies(Turns):
    """Says something else of nodes, once there are any."""

    says: dict[str, Any]

    def _infos(self, ending: Any) -> Any:
        infos = super()._infos(ending)
        for info in infos.values():
            if info["node_id"] >= 0:
                info.update(self.says)
        return infos


def lies(**says: Any) -> Callable[[], Lies]:
    return type("Lies", (Lies,), {"says": says})


class ForgetsNodes(Turns):
    """Counts the budget down in every turn, and in failures, too."""

    def _infos(self, ending: Any) -> Any:
        self.turns = getattr(self, "turns", 0) + 1 if len(self.tree) else 0
        infos = super()._infos(ending)
        for info in infos.values():
            info["nodes_left"] = max(0, info["nodes_left"] - (self.turns > 2))
            info["own_nodes_left"] = info["nodes_left"]
        return infos


class FirstIsBest(Turns):
    def _infos(self, ending: Any) -> Any:
        infos = super()._infos(ending)
        for info in infos.values():
            if len(self.tree):
                info["best_node_id"] = 0
        return infos


class OpenMask(Choosing):
    def _infos(self, ending: Any) -> Any:
        infos = super()._infos(ending)
        for info in infos.values():
            info["action_mask"]["parent"][:] = 1
        return infos


# Rewards and endings --------------------------------------------------------------------------


class PaysAll(Turns):
    def _pay(self, agent: str, reward: float) -> None:
        super()._pay(agent, reward)
        self.rewards = dict.fromkeys(self.agents, reward)
        self._cumulative_rewards = dict(self.rewards)


class OwesNothing(Turns):
    def _accumulate_rewards(self) -> None:
        pass


class NumpyReward(Turns):
    def _pay(self, agent: str, reward: float) -> None:
        super()._pay(agent, np.float32(reward))  # type: ignore[arg-type]


class NotANumber(Rounds):
    def step(self, actions: Any) -> Any:
        seen, rewards, *rest = super().step(actions)
        return (seen, dict.fromkeys(rewards, float("nan")), *rest)


class NumberFlags(Turns):
    def _next_turn(self, ending: Any, infos: Any) -> None:
        super()._next_turn(ending, infos)
        self.terminations = {agent: int(flag) for agent, flag in self.terminations.items()}  # type: ignore[misc]


class SwapsEndings(Turns):
    def _next_turn(self, ending: Any, infos: Any) -> None:
        super()._next_turn(ending, infos)
        self.terminations, self.truncations = self.truncations, self.terminations


class ViewPaysTwice(View):
    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        return seen, 2 * reward + 1, *rest


# reset and fail -------------------------------------------------------------------------------


class OneSeed(Turns):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed=0, options=options)


class SeedsAfresh(Turns):
    """Begins a new stream at a reset without a seed, instead of going on."""

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed=7 if seed is None else seed, options=options)


class NoOptions(Turns):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed=seed)


class NoTeams(Turns):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        options = {key: value for key, value in (options or {}).items() if key != "agents"}
        super().reset(seed=seed, options=options)


class OptionsShift(Turns):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed=seed, options=options)
        if "task" in (options or {}):
            self.np_random.random()


class RefusesOptions(Turns):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed=seed, options=options)
        self.np_random.random(len(options or {}))
        super().reset(options=options)


class FailureIsANode(Turns):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        self.step("")


class FailureIsForGood(Turns):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason, permanent=True)


class NeverForGood(Rounds):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason)


# Judges ---------------------------------------------------------------------------------------


class CutsTexts(Turns):
    def step(self, action: Any) -> None:
        super().step(action[:10] if isinstance(action, str) else action)


class ScoresFailures(Turns):
    """Takes a failure of the infrastructure for a bad text."""

    def step(self, action: Any) -> None:
        try:
            super().step(action)
        except JudgeUnavailable:
            judge, self._judge = self._judge, type(self._judge)(StubJudge(solve_rate=0.0))
            super().step(action)
            self._judge = judge


class CountsFailures(Rounds):
    """Draws a number before a judge may fail."""

    def step(self, actions: Any) -> Any:
        self._episode.search.rng.random()
        return super().step(actions)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoState, r"state\(\) raised NotImplementedError\(\); where there is a state_space"),
        (TextState, r"state\(\) must be an array in state_space, got 'nonsense'"),
        (HiddenState, r"state\(\) is not what infos say(.|\n)*It holds public facts only"),
        (HiddenPrompt, "whose hidden tests pass, and one where they fail(.|\n)*observations of"),
        (PromptsForAll, "the prompt of coder_. is 'not your turn' and info.'active'. False"),
        (WrongFeatures, "the features of coder_0 are .* expected .*: depth, public score"),
        (SharedArray, "the observations of a turn changed after the next one: whoever kept them"),
        (OldTree, r"the `tree` that coder_0 sees is not what state\(\) returns"),
        (told(active=True), r"info\['expand_id'\] of coder_. is -2 while info\['active'\] is True"),
        (told(active=False), r"info\['expand_id'\] of coder_. is -1 while info\['active'\] is F"),
        (told(score=5.0), r"info\['score'\] of coder_0 must be a share in \[0, 1\], got 5.0"),
        (told(best_score=-3.0), r"info\['best_score'\] of coder_0 must be a share in \[0, 1\]"),
        (told(depth=-1), r"info\['depth'\] of coder_0, which has made no node yet .* must be -2"),
        (told(tokens_left=-3), r"info\['tokens_left'\] is a number of tokens, or -2"),
        (told(status="accepted"), r"info\['status'\] of coder_0.* no node yet.* must be ''"),
        (told(stop_reason="bored"), "info.'stop_reason'. is 'bored'; expected one of nodes"),
        (told(task_id="x", first_only=True), r"info\['task_id'\] is a fact of the episode"),
        (told(own_nodes_left=9), r"coder_0 may make 9 more nodes \(own_nodes_left\), but only 5"),
        (
            lies(refine=True, node_parent_id=-1),
            "info.'refine'. of coder_. is True for a node whose",
        ),
        (lies(depth=3), r"info\['depth'\] of coder_. is 3 for a node below -1; it is 1 below the"),
        (
            lies(parent_solved=True),
            r"info\['parent_solved'\] of coder_. is true for a fresh answer",
        ),
        (lies(node_parent_id=7, refine=True), "the parent of coder_.'s node 0 must be -1 .* got 7"),
        (lies(node_id=3), "coder_. acted, so info.'node_id'. must be 0, the next node, got 3"),
        (lies(public_passed=9), "coder_. passes 9 of 3 public tests"),
        (lies(public_passed=0, score=0.5), "but 0 of 3 public tests pass; the score is their"),
        (lies(public_passed=2, score=2 / 3, solved=True), "has solved the task with 2 of 3 public"),
        (lies(status="lost"), r"info\['status'\] of coder_. is 'lost' and info\['solved'\] True"),
        (lies(action_repaired=True), r"info\['action_repaired'\] of coder_. must be False after"),
        (lies(action_truncated=True), r"info\['action_truncated'\] of coder_. must be False after"),
        (lies(parent_refused=True), "expected node_parent_id -1 and parent_refused False, got -1 "),
        (lies(best_node_id=-2), "there is no best node, but coder_. has made node"),
        (ForgetsNodes, r"info\['nodes_left'\] is 1, but 3 nodes of 5 are made"),
        (
            FirstIsBest,
            "info.'best_node_id'. is 0; the highest public score is .*, and of equals the latest",
        ),
        (OpenMask, r"info\['action_mask'\] of coder_. allows the rows \[0, 1, 2, 3, 4, 5\]"),
        (PaysAll, "the reward of coder_. is 1.0, but it made no solved node in this turn"),
        (OwesNothing, r"last\(\) pays 0.0 to coder_., but `rewards` came to 1.0 since its last"),
        (NumpyReward, "the reward of coder_0 must be a plain number"),
        (NotANumber, "the reward of coder_0 must be finite, got nan"),
        (NumberFlags, "terminations and truncations are plain bools, got 0 for coder_0"),
        (SwapsEndings, "terminated=False, truncated=True with stop_reason 'nodes', which means"),
        (ViewPaysTwice, "the reward is .* and info.'solved'. of the agent that acted"),
        (OneSeed, r"reset\(seed=0\), reset\(seed=1\), … gave the task .* 20 times of 20"),
        (SeedsAfresh, r"reset\(\), … gave the task .* 20 times of 20, with 3 tasks"),
        (NoOptions, r"reset\(options=\{'task': '.*'\}\) began the task .*; the option chooses"),
        (NoTeams, r"reset\(options=\{'agents': \['coder_1'\]\}\) began an episode of \['coder_0'"),
        (OptionsShift, r"the reset\(\) after reset\(seed=0, options=.*options shift no later"),
        (RefusesOptions, r"reset with an unknown option \(to be ignored\)"),
        (FailureIsANode, "but it made no node in this turn; node facts are those of its latest"),
        (FailureIsForGood, r"the episode ended \(agents\) after fail\(agent, reason\) for every"),
        (NeverForGood, r"are asked again after fail\(agent, reason, permanent=True\)"),
        (CutsTexts, "was never judged, but .*; the judge gets what the agent wrote"),
        (ScoresFailures, "an episode in which the judge failed for a while, and each step was"),
        (CountsFailures, "an episode in which the judge failed for a while, and each step was"),
    ],
)
def test_the_kit_finds_an_environment_that_breaks_the_tree_contract(
    broken: Callable[[], Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_tree_search(broken)


@pytest.mark.parametrize("sound", [Turns, Rounds, View, Choosing])
def test_the_kit_accepts_what_keeps_the_tree_contract(sound: Callable[[], Any]) -> None:
    check_tree_search(sound)


def test_hidden_tests_of_a_stub_fail_without_a_word_in_public() -> None:
    (task,) = stub_tasks(1)
    right, wrong = (
        StubJudge(solve_rate=1.0, hidden_fails=fails).judge(task, "x") for fails in (False, True)
    )
    assert (right.solved, wrong.solved) == (True, False)
    assert (right.status, wrong.status) == ("accepted", "wrong_answer")
    assert (right.score, right.feedback) == (wrong.score, wrong.feedback)


def test_the_judge_of_an_environment_can_be_replaced_between_episodes() -> None:
    env = Turns(judge=StubJudge(solve_rate=0.0), budget=1)
    earned = []
    for judge in (None, StubJudge(solve_rate=1.0)):
        if judge is not None:
            env.judge = judge
        env.reset(seed=0)
        env.step("x")
        earned.append(sum(env.rewards.values()))
    assert earned == [0.0, 1.0]

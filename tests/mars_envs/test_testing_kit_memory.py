"""The compliance kit and the contract of reading: one broken environment for every rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mars_envs import ParallelMemoryEnv, TurnBasedMemoryEnv
from mars_envs.parallel_memory.loop import MemoryLoop
from mars_envs.parallel_memory.views import ParallelMemoryView
from mars_envs.parallel_memory.workflow import Phase
from mars_envs.reading import Evidence
from mars_envs.testing import check_memory, odd_reader, stub_reading_tasks

STUBS: dict[str, Any] = {
    "tasks": stub_reading_tasks(2, chunks=3),
    "chunk_tokens": 9,
    "prompts": "compact",
}


class Rounds(ParallelMemoryEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**STUBS, **options})


class Turns(TurnBasedMemoryEnv):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**STUBS, **options})


class View(ParallelMemoryView):
    def __init__(self) -> None:
        super().__init__(**STUBS)


# States and observations ----------------------------------------------------------------------


class NoState(Rounds):
    def __init__(self) -> None:
        super().__init__()
        self.state_space = None  # type: ignore[assignment]


class WrongState(Rounds):
    def state(self) -> Any:
        return np.roll(super().state(), 1)


class Sees(Rounds):
    """Shows those of a role something else."""

    role = ""
    says: Mapping[str, Any]

    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        return {**seen, **self.says} if seen["role"] == self.role else seen


def sees(role: str, /, **says: Any) -> Callable[[], Sees]:
    return type("Sees", (Sees,), {"role": role, "says": says})


class ReadsOnesOwnMemory(Rounds):
    """Gives each reader another memory."""

    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        return {**seen, "memory": agent} if seen["role"] == "reader" else seen


class OtherChunks(Rounds):
    """Shows another text as a chunk in the second turn."""

    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        later = seen["role"] == "reader" and seen["turn"] > 1
        return {**seen, "chunk": seen["chunk"].upper()} if later else seen


class LosesNotes(Rounds):
    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        return {**seen, "selected": "[]"} if seen["selected"] else seen


class InventsNotes(Rounds):
    """Gives the merger other notes than readers wrote."""

    def _observation(self, agent: str) -> dict[str, Any]:
        seen = super()._observation(agent)
        if seen["role"] != "merger":
            return seen
        notes = [{**note, "text": seen["question"]} for note in json.loads(seen["selected"])]
        return {**seen, "selected": json.dumps(notes)}


# Infos ----------------------------------------------------------------------------------------


class Told(Rounds):
    """Tells every agent, or the first one, something else."""

    says: dict[str, Any]
    first_only = False

    def _infos(self) -> Any:
        infos = super()._infos()
        for info in list(infos.values())[: 1 if self.first_only else None]:
            info.update(self.says)
        return infos


def told(first_only: bool = False, **says: Any) -> Callable[[], Told]:
    return type("Told", (Told,), {"says": says, "first_only": first_only})


class Lies(Rounds):
    """Says something else of calls, once there are any."""

    says: dict[str, Any]

    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            if info["call_id"] >= 0:
                info.update(self.says)
        return infos


def lies(**says: Any) -> Callable[[], Lies]:
    return type("Lies", (Lies,), {"says": says})


class RemembersMuch(Rounds):
    """Counts more tokens of the memory than it has."""

    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            info["memory_tokens"] = 999 if info["memory_tokens"] else 0
        return infos


class ForgetsCalls(Rounds):
    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            info["n_calls"] = info["n_calls"] // 2
        return infos


class Rephases(Rounds):
    """Calls a merge reading."""

    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            info["phase"] = Phase.READ.value if info["phase"] == Phase.MERGE else info["phase"]
        return infos


class Remembers(Rounds):
    """Tells those who were not asked of calls that they never had."""

    def _infos(self) -> Any:
        infos = super()._infos()
        infos["answerer_0"].update({k: infos["reader_0"][k] for k in ("call_id", "turn", "status")})
        return infos


class ChangesGold(Rounds):
    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            if info["chunk_index"] >= 0:
                info["chunk_gold"] = info["turn"] % 2
            info["gold_recall"] = -1.0
        return infos


class BoastsOfRecall(Rounds):
    def _infos(self) -> Any:
        infos = super()._infos()
        for info in infos.values():
            info["gold_recall"] = 0.5
        return infos


# Rewards, endings, resets and failures --------------------------------------------------------


class PaysOne(Rounds):
    def step(self, actions: Any) -> Any:
        seen, rewards, *rest = super().step(actions)
        return (seen, {a: r if a == "answerer_0" else 0.0 for a, r in rewards.items()}, *rest)


class PaysEarly(Rounds):
    def step(self, actions: Any) -> Any:
        seen, rewards, *rest = super().step(actions)
        return (seen, dict.fromkeys(rewards, 0.1), *rest)


class PaysHaste(Rounds):
    """Pays for few turns, whatever the answer."""

    def step(self, actions: Any) -> Any:
        seen, rewards, ends, cuts, infos = super().step(actions)
        if any(ends.values()):
            rewards = {agent: float(infos[agent]["reward_answer"]) + 0.2 for agent in rewards}
            for info in infos.values():
                info["reward_turns"] = 0.2
        return seen, rewards, ends, cuts, infos


class Selfish(Rounds):
    def __init__(self) -> None:
        super().__init__()
        self.metadata = {**self.metadata, "shared_reward": False}  # type: ignore[misc]


class SwapsEndings(Rounds):
    def step(self, actions: Any) -> Any:
        seen, rewards, ends, cuts, infos = super().step(actions)
        return seen, rewards, cuts, ends, infos


class OneSeed(Rounds):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=0, options=options)


class NoOptions(Rounds):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)


class NeverForGood(Rounds):
    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        super().fail(agent, reason)


class SilenceIsNo(Rounds):
    """Takes a reader that gives no action for one that finds nothing."""

    def step(self, actions: Any) -> Any:
        readers = [agent for agent in self._asked() if agent.startswith("reader")]
        return super().step({**dict.fromkeys(readers, "<check>no</check>"), **actions})


class CopiesDrawAnew(Rounds):
    """Loses the random generator in a pickle."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_np_random": None}


class FailuresAreNo(Turns):
    """Takes a failed call for a reply, as released evaluation code does."""

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        self.step("<check>no</check>")


class Deaf(MemoryLoop):
    """Forgets that a read was given up, so that it counts as a no."""

    def _spare(self, request: Any) -> bool:
        return bool(request.role == "reader")


class EndsInFailure(Rounds):
    """Ends reading with `no_new_evidence` though reads have failed."""

    def __init__(self) -> None:
        super().__init__(retries=0)
        self._start_workflow = self._deaf

    @staticmethod
    def _deaf(question: str, chunks: Any) -> Any:
        from mars_envs.parallel_memory.settings import memory_settings

        return Deaf(question, chunks, settings=memory_settings(retries=0), prompts="compact")


class ViewPaysTwice(View):
    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        return seen, 2 * reward + 1, *rest


class ViewOfAnother(View):
    def _info(self, actor: str, agent: str) -> dict[str, Any]:
        return super()._info("answerer_0", agent)


def says_no(agent: str, observation: Any, info: Mapping[str, Any], turn: int) -> str:
    """Play readers that find nothing."""
    if observation["role"] == "reader":
        return "<check>no</check>"
    return odd_reader(agent, observation, info, turn)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoState, r"state_space must be a float32 Box of shape \[8\], got None"),
        (WrongState, r"state\(\) is (.|\n)* expected (.|\n)*: reading, merging, answering"),
        (sees("", prompt="wait"), "merger_0 is not asked but sees {'prompt': 'wait'}"),
        (sees("", chunk_index=0), "merger_0 is not asked but sees chunk_index 0"),
        (sees("reader", prompt=""), "reader_0 is asked, but its prompt is empty"),
        (sees("reader", role="merger"), "reader_0 is asked to be a 'merger'"),
        (sees("reader", active=0), "the observation of reader_0 has active 0, but infos say 1"),
        (sees("reader", turn=2), "the observation of reader_0 has turn 2, but infos say 1"),
        (sees("reader", max_turns=9), "is in turn 1 of 9, but info.'turns_left'. is 2"),
        (sees("reader", chunk_index=-1), "reader_0 sees chunk_index -1; it is -1 but for those"),
        (sees("reader", question=""), "reader_0 is asked, but sees no question"),
        (sees("merger", question="Why?"), "merger_0 sees another question than was asked before"),
        (sees("merger", chunk="x"), "merger_0 sees a chunk; memory is the only channel"),
        (sees("answerer", selected="[]"), "the answerer sees what readers reported"),
        (sees("reader", chunk="o"), "read a chunk of 1 characters, but span_start and span_end"),
        (ReadsOnesOwnMemory, "reader_1 sees another memory than the readers before it in turn 1"),
        (OtherChunks, "reader_0 sees another text as chunk 0 than was shown before"),
        (
            LosesNotes,
            r"in turn 1 something was found in the chunks .* the merges took \[\[\]\]: left",
        ),
        (sees("reader", prompt="Read."), r"the prompt of reader_0 lacks \[.* of the question"),
        (
            sees("reader", prompt="What is the city of traveller 0 1?"),
            r"the prompt of reader_0 lacks \[.* of the chunk 'Line 0",
        ),
        (
            sees("answerer", prompt="What is the city of traveller 0 1?"),
            r"the prompt of answerer_0 lacks \[.* of the memory",
        ),
        (
            sees("reader", memory=""),
            r"info\['memory_tokens'\] is ., and reader_0 sees the memory ''",
        ),
        (sees("answerer", memory=""), "and answerer_0 sees the memory ''"),
        (sees("answerer", memory="Rome"), r"answerer_0 sees the memory 'Rome', but \['rome'\]"),
        (InventsNotes, "merger_0 is given 'What is the city of traveller .*' as a note"),
        (told(active=True), r"info\['ask_id'\] of merger_0 is -1 while info\['active'\] is True"),
        (told(phase=7), r"info\['phase'\] of reader_0 is 7; expected one of \[0, 1, 2, 3\]"),
        (told(n_failed=-1), r"info\['n_failed'\] of reader_0 is a number of things, got -1"),
        (told(exit_reason="bored"), "info.'exit_reason'. is 'bored'; expected one of no_new_"),
        (told(stop_reason="bored"), "info.'stop_reason'. is 'bored'; expected one of answered"),
        (told(status="yes"), r"info\['status'\] of reader_0, which has answered nothing yet"),
        (told(f1=0.0), r"info\['f1'\] is 0.0 with stop_reason ''; it is in \[0, 1\] once there"),
        (told(gold_recall=2.0), r"info\['gold_recall'\] is a share in \[0, 1\], or -1"),
        (told(reward_turns=0.1), "only an answer is paid"),
        (told(turns_productive=3), "3 of 1 turns were productive"),
        (told(task_id="x", first_only=True), r"info\['task_id'\] is a fact of the episode"),
        (lies(call_id=0), "reader_1 was asked for the call 1 .* its info.'call_id'. must be 1"),
        (lies(chunk_index=0), r"its info\['chunk_index'\] must be 1, got 0"),
        (lies(turn=2), r"info\['turn'\] of reader_0's last call is 2; turns count from 1, and 1"),
        (lies(status="error", found=False), "info.'status'. of reader_0 is 'error', but it said"),
        (lies(status="hm"), r"info\['status'\] of reader_0 is 'hm'; expected one of yes, no"),
        (lies(status="no", found=True), "info.'found'. of reader_0 is true with status 'no'"),
        (lies(chunk_gold=5), r"info\['chunk_gold'\] of reader_0 is 1, 0 or -1, got 5"),
        (lies(read_score=5), r"info\['read_score'\] of reader_0 is -1, 0 or 1, got 5"),
        (lies(prompt_tokens=0), r"info\['prompt_tokens'\] of reader_. is 0, for 'q What is"),
        (lies(output_tokens=0), r"info\['output_tokens'\] of reader_. is 0, for "),
        (lies(output_tokens=9999), r"info\['output_tokens'\] of reader_. is 9999, for "),
        (RemembersMuch, r"info\['memory_tokens'\] is 999, and .* sees the memory"),
        (told(memory_tokens=999), r"info\['memory_tokens'\] is 999 .* before anybody has said"),
        (told(memory_truncated=True), r"info\['memory_truncated'\] True before anybody has said"),
        (lies(span_start=9, span_end=3), "reader_0 read the characters 9 to 3"),
        (lies(action_repaired=True), r"info\['action_repaired'\] of reader_. must be False after"),
        (lies(action_truncated=True), r"info\['action_truncated'\] of reader_. must be False"),
        (told(n_malformed=99), r"info\['n_malformed'\] went from 99 to 99, but . calls of this"),
        (ForgetsCalls, r"info\['n_calls'\] went from 0 to 1, but 3 calls were answered or failed"),
        (Rephases, "the observation of reader_0 has phase 1, but infos say 0"),
        (Remembers, r"info\['call_id'\] of answerer_0 went from -1 to 0, but it was not asked"),
        (ChangesGold, r"info\['chunk_gold'\] of chunk 0 is 0, but was 1"),
        (BoastsOfRecall, "info.'gold_recall'. is 0.5, but something was found in 0 of . gold"),
        (PaysEarly, "the reward of reader_0 is 0.1, but reward_answer . reward_turns is 0.0"),
        (PaysHaste, "reward_turns is 0.2 with reward_answer 0.0; few turns are paid with a right"),
        (Selfish, r"metadata\['shared_reward'\] must be True"),
        (SwapsEndings, "terminated=False, truncated=True with stop_reason 'answered', which means"),
        (OneSeed, r"reset\(seed=0\), reset\(seed=1\), … gave the task .* 20 times of 20"),
        (NoOptions, r"reset\(options=\{'task': '.*'\}\) began the task .*; the option chooses"),
        (NeverForGood, r"are asked again after fail\(agent, reason, permanent=True\)"),
        (
            FailuresAreNo,
            r"info\['call_id'\] of|info\['status'\] of reader_. is 'no', but it failed",
        ),
        (SilenceIsNo, r"info\['status'\] of reader_0 is 'no', but it failed to act"),
        (CopiesDrawAnew, "resets without a seed of a deepcopy .which goes on with the random"),
        (ViewPaysTwice, "the reward of the agent is 1.0, but reward_answer . reward_turns is 0.0"),
        (ViewOfAnother, r"info\['ask_id'\] was 0, but after the action info\['call_id'\] is -1"),
    ],
)
def test_the_kit_finds_an_environment_that_breaks_the_contract(
    broken: Callable[[], Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_memory(broken)


def test_the_kit_finds_a_failed_read_that_counts_as_a_no() -> None:
    with pytest.raises(AssertionError, match="a failed read is not a no"):
        check_memory(EndsInFailure, policy=says_no)


def test_the_kit_finds_a_reward_that_the_team_does_not_share() -> None:
    with pytest.raises(AssertionError, match=r"reward of reader_0 is 0.0, but reward_answer . rew"):
        check_memory(PaysOne, seeds=range(6))


def test_the_kit_accepts_what_keeps_the_contract() -> None:
    check_memory(Rounds)


def test_the_kit_accepts_passages_that_a_cut_has_left_out() -> None:
    tasks = []
    for task in stub_reading_tasks():
        start = task.document.read(0, len(task.document)).index("Line 3")
        middle = Evidence(start=start, end=start + len("Line 3"), text="Line 3")
        tasks.append(replace(task, evidence=(*task.evidence, middle)))
    # Four lines of six: of two passages, one is in the middle.
    check_memory(lambda: ParallelMemoryEnv(tasks=tasks, chunk_tokens=9, document_tokens=36))

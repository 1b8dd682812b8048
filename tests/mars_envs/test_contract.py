"""The contract is documented as it is, and the kit finds what breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import mars_envs
from mars_envs import TreeSearchEnv
from mars_envs.parallel_memory import infos as memory_infos
from mars_envs.parallel_memory import shell as memory_shell
from mars_envs.parallel_memory.observations import observation_space
from mars_envs.parallel_memory.state import STATE_COLUMNS
from mars_envs.testing import (
    ODD_TEXTS,
    StubJudge,
    check_info,
    check_text_aec,
    check_tree_search,
    stub_tasks,
)
from mars_envs.tree_search import INFO_FIELDS
from mars_envs.tree_search.node_table import COLUMNS
from mars_envs.tree_search.shell import OUTSIDE
from mars_envs.tree_search.stopping import StopReason

ROW = re.compile(r"^\| `(\w+)` \| (bool|int|float|str) \| (.+) \|$", re.MULTILINE)


def test_the_document_lists_exactly_the_infos_with_their_types(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    documented = [(key, kind) for key, kind, _ in ROW.findall(text)]
    assert documented == [(key, kind.__name__) for key, kind in INFO_FIELDS.items()]


def test_the_document_lists_every_way_to_end(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    (table,) = re.findall(r"\| `stop_reason` \| flag \|.+\n((?:\|.+\n)+)", text)
    rows = dict(re.findall(r"^\| `(\w+)` \| (terminated|truncated) \| ", table, re.MULTILINE))
    assert set(rows) == {*get_args(StopReason), "max_cycles"} - {""}
    assert {reason for reason, flag in rows.items() if flag == "truncated"} == set(OUTSIDE)


def test_the_document_lists_the_columns_of_the_state(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    assert len(re.findall(r"^\| [0-5] \| ", text, re.MULTILINE)) == len(COLUMNS)


def test_the_document_lists_exactly_the_infos_of_reading(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| (request|call|episode) \| (bool|int|float|str) \| .+ \|$",
        text,
        re.MULTILINE,
    )
    fields = memory_infos.INFO_FIELDS
    assert [(key, kind) for key, _, kind in rows] == [(k, v.__name__) for k, v in fields.items()]
    of = {part: {key for key, what, _ in rows if what == part} for part in ("request", "call")}
    assert of["request"] == set(memory_infos.REQUEST_FIELDS)
    assert of["call"] == set(memory_infos.NO_CALL)


def test_the_document_lists_every_way_in_which_reading_ends(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    (table,) = re.findall(r"\| `stop_reason` \| ends as \|.+\n((?:\|.+\n)+)", text)
    rows = dict(re.findall(r"^\| `(\w+)` \| (terminated|truncated) \|", table, re.MULTILINE))
    assert rows == {"answered": "terminated", **dict.fromkeys(memory_shell.OUTSIDE, "truncated")}


def test_the_document_lists_what_readers_see_and_what_critics_see(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    seen = text[text.index("### What an agent sees") : text.index("### State of reading")]
    rows = re.findall(r"^\| (`.+?`) \| `(.+?)` \|", seen, re.MULTILINE)
    listed = {key.strip(" `"): space for keys, space in rows for key in keys.split(",")}
    spaces = observation_space().spaces
    assert set(listed) == set(spaces)
    for key, space in listed.items():
        shown = space.replace("2**20", "0, 1048576").replace("Text(9)", "Text(0, 9)")
        assert repr(spaces[key]) == shown
    state = text[text.index("### State of reading") : text.index("### What it pays")]
    assert re.findall(r"`(\w+)`", state.partition(":")[2]) == list(STATE_COLUMNS)


def test_the_document_states_the_version(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    assert f"Contract version: **{mars_envs.CONTRACT_VERSION}**" in text


def test_the_document_s_example_runs(repo_dir: Path) -> None:
    text = (repo_dir / "docs" / "contract.md").read_text()
    (example,) = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    exec(compile(example, "docs/contract.md", "exec"), {})


# Environments that break one rule each --------------------------------------------------------


class Stubbed(TreeSearchEnv):
    def __init__(self) -> None:
        super().__init__(tasks=stub_tasks(), judge=StubJudge, budget=3)


class WrongObservation(Stubbed):
    def observe(self, agent: str) -> dict[str, Any]:
        return {**super().observe(agent), "prompt": "\ud800"}


class WrongInfo(Stubbed):
    extra: dict[str, Any]

    def _infos(self, ending: Any) -> dict[str, dict[str, Any]]:
        return {agent: {**info, **self.extra} for agent, info in super()._infos(ending).items()}


class ReservedKey(WrongInfo):
    extra = {"episode": 1}  # noqa: RUF012


class Nested(WrongInfo):
    extra = {"score": {"public": 1.0}}  # noqa: RUF012


class WrongType(WrongInfo):
    extra = {"score": 1}  # noqa: RUF012


class UnknownKey(WrongInfo):
    extra = {"temperature": 1.0}  # noqa: RUF012


class LateKey(Stubbed):
    def _infos(self, ending: Any) -> dict[str, dict[str, Any]]:
        late = {"late": True} if len(self.tree) > 1 else {}
        return {agent: {**info, **late} for agent, info in super()._infos(ending).items()}


class Counting(Stubbed):
    """Counts its episodes where all can see it, so that they differ."""

    episodes = 0

    def reset(self, *args: Any, **kwargs: Any) -> None:
        Counting.episodes += 1
        super().reset(*args, **kwargs)

    def _infos(self, ending: Any) -> dict[str, dict[str, Any]]:
        count = {"task_id": f"episode {Counting.episodes}"}
        return {agent: {**info, **count} for agent, info in super()._infos(ending).items()}


class StaleInfo(Stubbed):
    def step(self, action: str | None) -> None:
        before = self.infos
        super().step(action)
        self.infos = {agent: before[agent] for agent in self.infos}


class Forgetful(Stubbed):
    """Loses its budget on the way through a copy."""

    def __deepcopy__(self, memo: Any) -> Stubbed:
        twin = Stubbed()
        twin.reset(seed=0)
        return twin


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (WrongObservation, "the observation of coder_0 is not in its space"),
        (ReservedKey, "info key 'episode' is reserved"),
        (Nested, r"info\['score'\] must be a plain bool, int, float or str, got dict"),
        (WrongType, r"info\['score'\] must be a float, got 1"),
        (UnknownKey, r"missing \[\], unexpected \['temperature'\]"),
        (LateKey, "unexpected .'late'."),
        (Counting, "seed 0, played twice: infos of turn 0 differs"),
        (StaleInfo, "the info of coder_0 is the same dict after a step"),
        (Forgetful, "seed 0, in a deepcopy: (asked|observations) of turn 1 differs"),
    ],
)
def test_the_kit_finds_a_broken_rule(broken: Callable[[], Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_tree_search(broken)


def test_the_kit_finds_keys_that_come_late_in_any_text_environment() -> None:
    with pytest.raises(AssertionError, match=r"the info keys of coder_. changed within an episode"):
        check_text_aec(LateKey)


def test_the_kit_accepts_an_environment_that_keeps_the_rules() -> None:
    check_tree_search(Stubbed)


def test_numpy_scalars_are_not_plain() -> None:
    import numpy as np

    with pytest.raises(AssertionError, match="got float64"):
        check_info({"score": np.float64(1.0)})


def test_stub_verdicts_depend_on_task_and_text_alone() -> None:
    task, other = stub_tasks(2)
    judge = StubJudge(solve_rate=0.5)
    verdicts = [judge.judge(task, text) for text in ODD_TEXTS]
    assert verdicts == [StubJudge(solve_rate=0.5).judge(task, text) for text in ODD_TEXTS]
    texts = [str(number) for number in range(400)]
    rate = sum(judge.judge(task, text).solved for text in texts) / 400
    assert rate == pytest.approx(0.5, abs=0.1)
    assert [judge.judge(task, t).solved for t in texts] != [
        judge.judge(other, t).solved for t in texts
    ]

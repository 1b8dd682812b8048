"""From the reading environment through the collector to training rows: who gets which credit."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from mars_envs import ParallelMemoryEnv
from mars_envs.parallel_memory.scripted import oracle
from mars_envs.reading.load import load_reading_tasks
from trainers import Generation, Request, Rollout
from trainers.collect import Episode, Patience, collect_all
from trainers.credit import CreditSettings, credit_settings
from trainers.policies import GenerationFailed
from trainers.rows import Row, make_rows

# Three short documents, each with a chain of two passages.
TASKS = list(load_reading_tasks("kg2?tokens=600&n=3"))
PIMEM = credit_settings("pimem")
ROLES = {"reader_*": "p", "merger_*": "p", "answerer_*": "p"}


class Reader:
    """An oracle that misses passages by chance, with made-up token ids: one for each word."""

    name, version = "p", 0

    def __init__(self, lost: Sequence[str] = ()) -> None:
        self.lost = lost

    async def generate(self, request: Request) -> Generation:
        if request.episode_id in self.lost:
            raise GenerationFailed("the server is down")
        task = next(task for task in TASKS if task.task_id == request.task_id)
        seed = int(request.episode_id.split("/")[1])
        text = oracle(task, miss=0.4, false_yes=0.1, seed=seed)(request.observation)
        ids = tuple(range(1, len(text.split()) + 1))
        return Generation(
            text=text, prompt_ids=(1, 2), completion_ids=ids, logprobs=(-1.0,) * len(ids)
        )


def played(reader: Reader, count: int = 6) -> list[Rollout]:
    episodes = [
        Episode(
            episode_id=f"{task.task_id}/{index}",
            group_id=task.task_id,
            seed=0,
            options={"task": task.task_id},
        )
        for task in TASKS
        for index in range(count)
    ]
    return collect_all(
        lambda: ParallelMemoryEnv(tasks=TASKS, chunk_tokens=120, readers=3),
        episodes,
        {"p": reader},
        roles=ROLES,
        patience=Patience(failures_in_a_row=1000),
    )


@pytest.fixture(scope="module")
def rollouts() -> list[Rollout]:
    return played(Reader())


def by_rollout(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.rollout_id].append(row)
    return found


def test_episodes_earn_what_the_reward_says_and_once(rollouts: list[Rollout]) -> None:
    earned = set()
    for rollout in rollouts:
        facts = rollout.summary
        right = float(facts["exact_match"])
        # Grounded, K = 3: 1.2 after two turns with a find, 1.0 after three.
        bonus = 0.2 * right * (facts["turns_used"] == 2 and facts["turns_productive"] > 0)
        assert rollout.episode_reward == pytest.approx(right + bonus)
        assert facts["reward_answer"] == right
        assert facts["reward_turns"] == pytest.approx(bonus)
        earned.add(rollout.episode_reward)
    assert len(earned) > 1  # else nothing below is tested


def test_every_call_is_a_row_with_the_advantage_of_its_episode(rollouts: list[Rollout]) -> None:
    found = by_rollout(make_rows(rollouts, PIMEM))
    assert {rollout.rollout_id for rollout in rollouts} == set(found)
    lengths = set()
    for rollout in rollouts:
        rows = found[rollout.rollout_id]
        peers = [other for other in rollouts if other.group_id == rollout.group_id]
        mean = sum(other.episode_reward for other in peers) / len(peers)
        assert len(rows) == len(rollout.turns) == rollout.summary["n_calls"]
        assert {round(row.advantage, 9) for row in rows} == {
            round(rollout.episode_reward - mean, 9)
        }
        lengths.add(len(rows))
    assert len(lengths) > 1  # episodes of different lengths, and yet one mean


def test_readers_are_credited_for_what_they_said(rollouts: list[Rollout]) -> None:
    mixed = make_rows(rollouts, dataclasses.replace(PIMEM, read_weight=0.5))
    plain = make_rows(rollouts, PIMEM)
    turns = [(rollout, turn) for rollout in rollouts for turn in rollout.turns]
    scores: dict[Any, list[int]] = defaultdict(list)
    for rollout, turn in turns:
        if turn.info["read_score"]:
            step = rollout.group_id, turn.info["turn"], turn.info["chunk_index"]
            scores[step].append(int(turn.info["read_score"]))
    assert {score for found in scores.values() for score in found} == {-1, 1}
    for (rollout, turn), row, before in zip(turns, mixed, plain, strict=True):
        own = int(turn.info["read_score"])
        if not own:
            assert row.advantage == before.advantage
            continue
        assert turn.agent.startswith("reader_")
        peers = scores[rollout.group_id, turn.info["turn"], turn.info["chunk_index"]]
        local = own - sum(peers) / len(peers)
        assert row.advantage == pytest.approx(0.5 * before.advantage + 0.5 * local)


@pytest.mark.parametrize("broadcast", ["token_mean", "traj_mean", "role_mean"])
def test_rows_are_neither_lost_nor_made_up_by_any_weights(
    broadcast: Any, rollouts: list[Rollout]
) -> None:
    settings: CreditSettings = dataclasses.replace(
        PIMEM,
        broadcast=broadcast,
        role_shares={"reader_*": 0.5, "merger_*": 0.2, "answerer_*": 0.3},
    )
    rows = make_rows(rollouts, settings)
    assert [row.rollout_id for row in rows] == [r.rollout_id for r in rollouts for _ in r.turns]
    kept = [row for row in rows if not row.degenerate]
    tokens = sum(len(row.completion_ids) for row in kept)
    assert sum(row.weight * len(row.completion_ids) for row in kept) == pytest.approx(tokens)


def test_an_episode_without_a_server_is_in_no_mean_and_in_no_loss(rollouts: list[Rollout]) -> None:
    lost = rollouts[0].rollout_id
    again = played(Reader(lost=[lost]))
    assert (again[0].outcome, again[0].summary["stop_reason"]) == ("truncated", "backend_error")
    assert again[0].episode_reward == 0.0
    with_it, without = make_rows(again, PIMEM), make_rows(rollouts[1:], PIMEM)
    assert [(row.rollout_id, row.advantage) for row in with_it] == [
        (row.rollout_id, row.advantage) for row in without
    ]

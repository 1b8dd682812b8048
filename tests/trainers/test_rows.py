"""Rows: sampled ids, credited per tree, laid out for a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from trainers import Generation, Rollout, Turn
from trainers.credit import CreditSettings, tree_credit
from trainers.errors import ConfigError
from trainers.rows import Row, make_batch, make_rows, model_logprobs, trainable, tree_nodes


def make_turn(agent: str, node: int, parent: int, reward: float, ids: Sequence[int]) -> Turn:
    return Turn(
        agent=agent,
        prompt="p",
        generation=Generation(
            text="x",
            prompt_ids=(1, 2) if ids else (),
            completion_ids=tuple(ids),
            logprobs=(-0.5,) * len(ids),
            policy_version=4,
        ),
        reward=reward,
        info={"node_id": node, "node_parent_id": parent},
    )


def make_rollout(turns: Sequence[Turn], **changes: Any) -> Rollout:
    rollout = Rollout(
        rollout_id="r",
        group_id="g",
        env_id="env",
        task_id="t",
        seed=0,
        prompt_hash="",
        turns=tuple(turns),
        outcome="terminated",
        episode_reward=sum(turn.reward for turn in turns),
        summary={},
    )
    return dataclasses.replace(rollout, **changes)


TREE = [
    make_turn("a", 0, -1, 0.0, [5]),
    make_turn("b", 1, -1, 1.0, [6, 7]),
    make_turn("a", 2, 0, 1.0, [8]),
]


def test_every_node_becomes_a_row_with_the_credit_of_its_tree() -> None:
    rows = make_rows([make_rollout(TREE)], CreditSettings())
    expected = tree_credit([0, 1, 1], [-1, -1, 0]).advantages
    np.testing.assert_allclose([row.advantage for row in rows], expected)
    assert [row.agent for row in rows] == ["a", "b", "a"]
    assert rows[1].completion_ids == (6, 7)
    assert rows[1].policy_version == 4
    assert not any(row.degenerate for row in rows)


def test_scripted_nodes_count_in_the_tree_but_become_no_rows() -> None:
    scripted = [*TREE[:1], make_turn("b", 1, -1, 1.0, []), *TREE[2:]]
    rows = make_rows([make_rollout(scripted)], CreditSettings())
    whole = make_rows([make_rollout(TREE)], CreditSettings())
    assert rows == [whole[0], whole[2]]


def test_node_ids_need_not_be_the_turns_places() -> None:
    turns = [
        make_turn("a", 3, -1, 0.0, [5]),
        make_turn("a", -2, -2, 0.0, [5]),  # an action that made no node
        make_turn("a", 7, 3, 1.0, [5]),
    ]
    nodes, parents = tree_nodes(make_rollout(turns))
    assert [node.info["node_id"] for node in nodes] == [3, 7]
    assert parents == [-1, 0]


def test_failed_rollouts_are_never_trained_on() -> None:
    assert make_rows([make_rollout(TREE, outcome="failed")], CreditSettings()) == []


def test_trees_of_equal_rewards_are_marked() -> None:
    equal = [dataclasses.replace(turn, reward=1.0) for turn in TREE]
    rows = make_rows([make_rollout(equal)], CreditSettings())
    assert all(row.degenerate and row.advantage == 0 for row in rows)


def test_overlong_answers_cost_reward() -> None:
    long = [*TREE[:2], make_turn("a", 2, 0, 1.0, [8] * 16)]
    plain = make_rows([make_rollout(long)], CreditSettings())
    fined = make_rows([make_rollout(long)], CreditSettings(overlong_factor=1.0), max_tokens=16)
    assert fined[2].advantage < plain[2].advantage


def test_without_trees_groups_of_episodes_are_compared() -> None:
    turns = [make_turn("a", -2, -2, 1.0, [5]), make_turn("a", -2, -2, 0.0, [6])]
    rollouts = [
        make_rollout(turns, rollout_id="x", episode_reward=1.0),
        make_rollout(turns[:1], rollout_id="y", episode_reward=0.0),
        make_rollout(turns[:1], rollout_id="z", group_id="other", episode_reward=0.0),
    ]
    rows = make_rows(rollouts, CreditSettings(group="episodes"))
    np.testing.assert_allclose(
        [row.advantage for row in rows], [0.7071, 0.7071, -0.7071, 0.0], atol=1e-4
    )
    assert [row.degenerate for row in rows] == [False, False, False, True]


def test_credit_may_be_settled_between_the_nodes_of_one_agent() -> None:
    settings = CreditSettings(group="agent", estimator="mean", gamma=0.0)
    rows = make_rows([make_rollout(TREE)], settings)
    assert [row.advantage for row in rows] == [-0.5, 0.0, 0.5]  # a: 0 and 1; b has one node
    assert [row.degenerate for row in rows] == [False, True, False]


def test_trees_all_right_or_all_wrong_may_be_filtered_out() -> None:
    wrong = [dataclasses.replace(turn, reward=0.0) for turn in TREE]
    rollouts = [make_rollout(TREE), make_rollout(wrong), make_rollout(TREE, outcome="failed")]
    filtering = CreditSettings(drop_uniform=True)
    assert trainable(rollouts, filtering) == rollouts[:1]
    assert trainable(rollouts, CreditSettings()) == rollouts[:2]
    # Fined for their lengths, equal answers would teach to be short.
    fines = CreditSettings(overlong_factor=1.0, overlong_buffer=2)
    assert not all(row.degenerate for row in make_rows([make_rollout(wrong)], fines, max_tokens=2))
    no_rows = dataclasses.replace(fines, drop_uniform=True)
    assert make_rows([make_rollout(wrong)], no_rows, max_tokens=2) == []


def test_tokens_may_count_by_episode_or_by_role() -> None:
    rows = make_rows([make_rollout(TREE)], CreditSettings(broadcast="traj_mean"))
    assert [row.weight for row in rows] == [1.0, 1.0, 1.0]  # one episode: nothing to even out
    shares = {"a": 0.25, "b*": 0.75}
    rows = make_rows(
        [make_rollout(TREE)], CreditSettings(broadcast="role_mean", role_shares=shares)
    )
    # a has 2 tokens of 4 and a quarter of the weight, b has 2 and the rest.
    assert [row.weight for row in rows] == [0.5, 1.5, 0.5]
    batch = make_batch(rows, pad_id=0)
    advantages = [row.advantage * row.weight for row in rows]
    np.testing.assert_allclose(batch.advantages.numpy(), advantages, rtol=1e-6)
    with pytest.raises(ConfigError, match=r"so no share for \['b'\]"):
        make_rows(
            [make_rollout(TREE)], CreditSettings(broadcast="role_mean", role_shares={"a": 1.0})
        )


def test_rows_that_say_nothing_take_no_part_in_the_weights() -> None:
    other = make_rollout([dataclasses.replace(turn, reward=1.0) for turn in TREE], rollout_id="s")
    rows = make_rows([make_rollout(TREE), other], CreditSettings(broadcast="traj_mean"))
    assert [row.weight for row in rows[:3]] == [1.0, 1.0, 1.0]
    assert all(row.degenerate for row in rows[3:])


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([dataclasses.replace(TREE[0], info={"score": 1.0})], 'choose group="episodes"'),
        ([TREE[2], TREE[0]], "node 2 is older than its parent 0"),
        ([TREE[0], TREE[0]], "node 0 is made twice"),
    ],
)
def test_infos_that_describe_no_tree_are_refused(turns: list[Turn], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_rows([make_rollout(turns)], CreditSettings())


def test_completions_without_prompt_ids_are_refused() -> None:
    bare = dataclasses.replace(
        TREE[0], generation=dataclasses.replace(TREE[0].generation, prompt_ids=())
    )
    with pytest.raises(ConfigError, match="completion ids without prompt ids"):
        make_rows([make_rollout([bare])], CreditSettings())


def make_row(prompt: Sequence[int], completion: Sequence[int]) -> Row:
    return Row(
        rollout_id="r",
        agent="a",
        policy_version=0,
        prompt_ids=tuple(prompt),
        completion_ids=tuple(completion),
        logprobs=tuple(-float(token) for token in completion),
        reward=0.0,
        advantage=float(len(completion)),
        degenerate=False,
    )


ROWS = [make_row([1, 2, 3], [4]), make_row([5], [6, 7]), make_row([8, 9], [1, 2, 3, 4])]


def test_rows_are_padded_on_the_right_and_masked() -> None:
    batch = make_batch(ROWS, pad_id=0)
    assert batch.input_ids.tolist() == [
        [1, 2, 3, 4, 0, 0],
        [5, 6, 7, 0, 0, 0],
        [8, 9, 1, 2, 3, 4],
    ]
    assert batch.attention_mask.sum(1).tolist() == [4, 3, 6]
    assert batch.position_ids[2].tolist() == list(range(6))
    assert batch.mask.tolist() == [[0, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 1, 1]]
    assert batch.targets[batch.mask.bool()].tolist() == [4, 6, 7, 1, 2, 3, 4]
    assert batch.old_logprobs[batch.mask.bool()].tolist() == [-4, -6, -7, -1, -2, -3, -4]
    assert batch.advantages.tolist() == [1, 2, 4]


class Whole(torch.nn.Module):
    """A model that does not know `logits_to_keep`."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any) -> Any:
        return self.inner(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids
        )


@pytest.mark.parametrize("whole", [False, True])
def test_a_batch_says_of_each_row_what_the_row_alone_says(whole: bool) -> None:
    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=12,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=16,
        )
    ).eval()
    batch = make_batch(ROWS, pad_id=0)
    with torch.no_grad():
        result = model_logprobs(Whole(model) if whole else model, batch, temperature=0.8)
        for index, row in enumerate(ROWS):
            ids = torch.tensor([row.prompt_ids + row.completion_ids])
            log_softmax = torch.log_softmax(model(ids).logits[0] / 0.8, -1)
            first = len(row.prompt_ids)
            alone = [log_softmax[first + i - 1, t] for i, t in enumerate(row.completion_ids)]
            own = result.logprobs[index][batch.mask[index].bool()]
            torch.testing.assert_close(own, torch.stack(alone), atol=1e-5, rtol=1e-5)


def test_the_vocabulary_head_runs_only_where_it_is_needed() -> None:
    seen: list[int] = []

    class Counting(torch.nn.Module):
        def forward(
            self, input_ids: Any, attention_mask: Any, position_ids: Any, logits_to_keep: int
        ) -> Any:
            seen.append(logits_to_keep)
            return type("Output", (), {"logits": torch.zeros(len(input_ids), logits_to_keep, 12)})

    rows = [make_row(range(1, 10), [1, 2]), make_row(range(1, 9), [3])]
    model_logprobs(Counting(), make_batch(rows, pad_id=0), temperature=1.0)
    assert seen == [4]  # of 11 positions: from the last of the shortest prompt on

"""From rollouts to training rows, and from rows to tensors.

A row is one action of one agent: a prompt and the completion that was sampled for it, by token ids,
with one advantage for all its tokens. Credit is settled per group *before* turns become rows, so
losing or buffering rows afterwards cannot change it. `B` rows, `L` positions, `K` predicted ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .credit import group_advantages, overlong_penalty, tree_credit
from .errors import ConfigError
from .losses import TokenLogProbs, token_logprobs
from .rollout import Rollout, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sampled completion with its credit."""

    rollout_id: str
    agent: str
    policy_version: int
    """Of the weights that sampled it."""
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Under the sampling distribution; one per completion id."""
    reward: float
    advantage: float
    degenerate: bool
    """Whether its group says nothing, all its members being equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRules:
    """How rewards become advantages; see `credit`."""

    credit: Literal["tree", "group"] = "tree"
    """"tree": each rollout is a tree, known by `node_id` and `node_parent_id` in the infos, and a
    group by itself. "group": every turn gets its rollout's advantage among those of its group."""
    group: Literal["tree", "agent"] = "tree"
    gamma: float = 0.3
    lam: float = 0.5
    max_tokens: int = 0
    """The completions' limit, for the overlong penalty."""
    overlong_factor: float = 0.0
    """The overlong penalty's size; 0 leaves it out."""


def make_rows(rollouts: Iterable[Rollout], rules: CreditRules) -> list[Row]:
    """Credit every sampled completion of `rollouts`, in order.

    Failed rollouts are left out. Turns without tokens (of scripted agents) count in their group's
    statistics, as any node does, but become no rows; nor do tree turns that made no node.

    Raises:
        ConfigError: credit "tree" for rollouts whose infos describe no tree.
    """
    usable = [rollout for rollout in rollouts if rollout.outcome != "failed"]
    if rules.credit == "group":
        return _group_rows(usable)
    return [row for rollout in usable for row in _tree_rows(rollout, rules)]


def tree_nodes(rollout: Rollout) -> tuple[list[Turn], list[int]]:
    """Return the turns that made a node, and for each its parent's place among them (root -1).

    Raises:
        ConfigError: the infos describe no tree.
    """
    nodes: list[Turn] = []
    parents: list[int] = []
    place: dict[int, int] = {-1: -1}
    for turn in rollout.turns:
        if "node_id" not in turn.info or "node_parent_id" not in turn.info:
            raise ConfigError(
                f"{rollout.env_id}: expected node_id and node_parent_id in the infos of a tree, "
                f"got {sorted(turn.info)}; for an environment without a tree choose "
                'credit="group"'
            )
        node_id, parent_id = int(turn.info["node_id"]), int(turn.info["node_parent_id"])
        if node_id < 0:
            continue
        if node_id in place or parent_id not in place:
            raise ConfigError(
                f"rollout {rollout.rollout_id!r}: node {node_id} is "
                + ("made twice" if node_id in place else f"older than its parent {parent_id}")
            )
        place[node_id] = len(nodes)
        nodes.append(turn)
        parents.append(place[parent_id])
    return nodes, parents


def _tree_rows(rollout: Rollout, rules: CreditRules) -> list[Row]:
    nodes, parents = tree_nodes(rollout)
    penalties = None
    if rules.overlong_factor:
        lengths = [len(turn.generation.completion_ids) for turn in nodes]
        penalties = overlong_penalty(
            lengths, max_tokens=rules.max_tokens, factor=rules.overlong_factor
        )
    credit = tree_credit(
        [turn.reward for turn in nodes],
        parents,
        agents=[turn.agent for turn in nodes],
        group=rules.group,
        gamma=rules.gamma,
        lam=rules.lam,
        penalties=penalties,
    )
    return [
        _row(rollout, turn, advantage=float(advantage), degenerate=bool(degenerate))
        for turn, advantage, degenerate in zip(
            nodes, credit.advantages, credit.degenerate, strict=True
        )
        if turn.generation.completion_ids
    ]


def _group_rows(rollouts: Sequence[Rollout]) -> list[Row]:
    credit = group_advantages(
        [rollout.episode_reward for rollout in rollouts],
        groups=[rollout.group_id for rollout in rollouts],
    )
    return [
        _row(rollout, turn, advantage=float(advantage), degenerate=bool(degenerate))
        for rollout, advantage, degenerate in zip(
            rollouts, credit.advantages, credit.degenerate, strict=True
        )
        for turn in rollout.turns
        if turn.generation.completion_ids
    ]


def _row(rollout: Rollout, turn: Turn, *, advantage: float, degenerate: bool) -> Row:
    generation = turn.generation
    if not generation.prompt_ids:
        raise ConfigError(
            f"rollout {rollout.rollout_id!r}: policy {generation.policy!r} returned completion ids "
            "without prompt ids; training needs both"
        )
    return Row(
        rollout_id=rollout.rollout_id,
        agent=turn.agent,
        policy_version=generation.policy_version,
        prompt_ids=tuple(generation.prompt_ids),
        completion_ids=tuple(generation.completion_ids),
        logprobs=tuple(generation.logprobs),
        reward=turn.reward,
        advantage=advantage,
        degenerate=degenerate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows as right-padded tensors. Only the last `K` positions hold completion tokens."""

    input_ids: Tensor  # [B, L]
    attention_mask: Tensor  # [B, L]
    position_ids: Tensor  # [B, L]
    targets: Tensor  # [B, K], the last K ids of `input_ids`
    mask: Tensor  # [B, K], 1 where the target is a completion token
    old_logprobs: Tensor  # [B, K], 0 where masked out
    advantages: Tensor  # [B]


def make_batch(rows: Sequence[Row], *, pad_id: int, device: torch.device | str = "cpu") -> Batch:
    """Lay `rows`, at least one, side by side."""
    lengths = [len(row.prompt_ids) + len(row.completion_ids) for row in rows]
    length = max(lengths)
    first = min(len(row.prompt_ids) for row in rows)
    ids = torch.full((len(rows), length), pad_id, dtype=torch.long)
    attention = torch.zeros((len(rows), length), dtype=torch.long)
    mask = torch.zeros((len(rows), length - first), dtype=torch.long)
    old = torch.zeros((len(rows), length - first), dtype=torch.float32)
    for index, row in enumerate(rows):
        start, end = len(row.prompt_ids), lengths[index]
        ids[index, :end] = torch.tensor(row.prompt_ids + row.completion_ids)
        attention[index, :end] = 1
        mask[index, start - first : end - first] = 1
        old[index, start - first : end - first] = torch.tensor(row.logprobs)
    batch = Batch(
        input_ids=ids,
        attention_mask=attention,
        position_ids=torch.arange(length).expand(len(rows), length).contiguous(),
        targets=ids[:, first:],
        mask=mask,
        old_logprobs=old,
        advantages=torch.tensor([row.advantage for row in rows], dtype=torch.float32),
    )
    return Batch(**{name: getattr(batch, name).to(device) for name in batch.__slots__})


def model_logprobs(model: Any, batch: Batch, *, temperature: float) -> TokenLogProbs:
    """Ask `model` for the log-probs of the batch's targets, [B, K].

    The vocabulary head is applied only where a completion token may be predicted, if the model
    takes `logits_to_keep`: with a large vocabulary the head is most of the memory.
    """
    keep = batch.targets.shape[1] + 1  # one more than there are targets: the last predicts nothing
    offers = _keywords(model)
    extra: Mapping[str, Any] = {
        key: value
        for key, value in (("logits_to_keep", keep), ("use_cache", False))
        if key in offers
    }
    logits = model(
        input_ids=batch.input_ids,
        attention_mask=batch.attention_mask,
        position_ids=batch.position_ids,
        **extra,
    ).logits
    return token_logprobs(logits[:, -keep:-1], batch.targets, temperature=temperature)


def _keywords(model: Any) -> frozenset[str]:
    return frozenset(inspect.signature(model.forward).parameters)

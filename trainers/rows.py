"""From rollouts to training rows, and from rows to tensors.

A row is one action of one agent: a prompt and the completion that was sampled for it, by token ids,
with one advantage for all its tokens. Credit is settled per group *before* turns become rows, so
losing or buffering rows afterwards cannot change it. `B` rows, `L` positions, `K` predicted ones.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .credit import (
    CreditSettings,
    is_mixed,
    overlong_penalty,
    token_weights,
    tree_credit,
)
from .errors import ConfigError
from .losses import TokenLogProbs, token_logprobs
from .play import assigned
from .rollout import Rollout, Turn
from .turn_credit import TurnCredit, credit_episodes, is_scored


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
    weight: float = 1.0
    """What each of its tokens counts in the loss; 1 for the average token."""


def make_rows(
    rollouts: Iterable[Rollout], settings: CreditSettings, *, max_tokens: int = 0
) -> list[Row]:
    """Credit every sampled completion of `rollouts`, in order.

    Rollouts that are not `trainable` are left out. Turns without tokens (of scripted agents) count
    in their group's statistics, as any node does, but become no rows; nor do tree turns that made
    no node.

    Args:
        rollouts: what was played.
        settings: how rewards become advantages.
        max_tokens: the completions' limit, for the overlong penalty.

    Raises:
        ConfigError: groups within trees for rollouts whose infos describe no tree.
    """
    usable = trainable(rollouts, settings)
    if settings.group == "episodes":
        credited = credit_episodes(usable, settings)
    else:
        credited = [turn for one in usable for turn in _credit_tree(one, settings, max_tokens)]
    return _weighted(
        [_row(turn) for turn in credited if turn.turn.generation.completion_ids],
        [turn.rollout.group_id for turn in credited if turn.turn.generation.completion_ids],
        settings,
    )


def trainable(rollouts: Iterable[Rollout], settings: CreditSettings) -> list[Rollout]:
    """Return the rollouts that can be learned from: not failed, and not filtered out.

    Of whole episodes that are compared, those that ended because nobody answered any more are left
    out, too: their reward says nothing.

    Raises:
        ConfigError: see `make_rows`.
    """
    if settings.group == "episodes":
        return [rollout for rollout in rollouts if is_scored(rollout)]
    played = [rollout for rollout in rollouts if rollout.outcome != "failed"]
    if not settings.drop_uniform:
        return played
    return [one for one in played if is_mixed([turn.reward for turn in tree_nodes(one)[0]])]


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
                'group="episodes"'
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


def _credit_tree(rollout: Rollout, settings: CreditSettings, max_tokens: int) -> list[TurnCredit]:
    nodes, parents = tree_nodes(rollout)
    penalties = None
    if settings.overlong_factor:
        penalties = overlong_penalty(
            [len(turn.generation.completion_ids) for turn in nodes],
            max_tokens=max_tokens,
            buffer=settings.overlong_buffer,
            factor=settings.overlong_factor,
        )
    credit = tree_credit(
        [turn.reward for turn in nodes],
        parents,
        agents=[turn.agent for turn in nodes],
        penalties=penalties,
        settings=settings,
    )
    return [
        TurnCredit(rollout, turn, float(advantage), bool(degenerate))
        for turn, advantage, degenerate in zip(
            nodes, credit.advantages, credit.degenerate, strict=True
        )
    ]


def _row(credited: TurnCredit) -> Row:
    rollout, turn = credited.rollout, credited.turn
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
        advantage=credited.advantage,
        degenerate=credited.degenerate,
    )


def _weighted(rows: list[Row], groups: Sequence[str], settings: CreditSettings) -> list[Row]:
    """Give each row the weight of its tokens; rows that say nothing take no part in it."""
    if settings.broadcast == "token_mean":
        return rows
    places = [index for index, row in enumerate(rows) if not row.degenerate]
    shares = settings.role_shares
    agents = [rows[index].agent for index in places]
    if shares is not None:
        unnamed = sorted({agent for agent in agents if assigned(shares, agent) is None})
        if unnamed:
            raise ConfigError(f"role_shares names {sorted(shares)}, so no share for {unnamed}")
    weights = token_weights(
        [len(rows[index].completion_ids) for index in places],
        rule=settings.broadcast,
        trajectories=[rows[index].rollout_id for index in places],
        groups=[groups[index] for index in places],
        roles=[_role(shares, agent) for agent in agents],
        shares=shares,
    )
    weighted = list(rows)
    for index, weight in zip(places, weights, strict=True):
        weighted[index] = dataclasses.replace(rows[index], weight=float(weight))
    return weighted


def _role(shares: Mapping[str, float] | None, agent: str) -> str:
    """Return the name, or glob, under which `agent` has its share."""
    return agent if shares is None else assigned({glob: glob for glob in shares}, agent) or agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows as right-padded tensors. Only the last `K` positions hold completion tokens."""

    input_ids: Tensor  # [B, L]
    attention_mask: Tensor  # [B, L]
    position_ids: Tensor  # [B, L]
    targets: Tensor  # [B, K], the last K ids of `input_ids`
    mask: Tensor  # [B, K], 1 where the target is a completion token
    old_logprobs: Tensor  # [B, K], 0 where masked out
    advantages: Tensor  # [B], times the rows' weights


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
        # The clipped objective grows in proportion to the advantage: weighting one is weighting
        # the other. A divergence from the reference stays a plain mean over tokens.
        advantages=torch.tensor([row.advantage * row.weight for row in rows], dtype=torch.float32),
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

"""The trainer: two policies learn in shared trees, each from its own nodes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from trainers import Generation, Sampling
from trainers.collect import Episode, Patience
from trainers.credit import CREDIT_PRESETS, credit_settings
from trainers.episodes import RandomTasks
from trainers.errors import CollectionFailed, ConfigError
from trainers.learner import Learner
from trainers.path_grpo import PathGRPOConfig, PathGRPOTrainer
from trainers.rollout import read_rollouts
from trainers.rows import Row

ROLES = {"coder_0": "a", "coder_1": "b"}


def config(**changes: Any) -> PathGRPOConfig:
    settings = {
        "steps": 3,
        "concurrency": 4,
        "sampling": Sampling(max_tokens=1),
        "learning_rate": 1e-2,
        "minibatch": 8,
        "buffer_rows": 8,
        "microbatch": 4,
        "warmup_updates": 2,
    }
    return PathGRPOConfig(**{**settings, **changes})


MakeTrainer = Callable[..., PathGRPOTrainer]


@pytest.fixture
def make_trainer(toy: ModuleType, tmp_path: Path) -> MakeTrainer:
    def make(settings: PathGRPOConfig | None = None, **options: Any) -> PathGRPOTrainer:
        torch.set_num_threads(1)
        defaults = {
            "env_fn": toy.ToyTree,
            "policies": {"a": toy.ToyPolicy("a", 1), "b": toy.ToyPolicy("b", 2)},
            "roles": ROLES,
            "episodes": RandomTasks(count=8, tasks="abcd"),
            "run_dir": tmp_path / "run",
        }
        return PathGRPOTrainer(settings or config(), **{**defaults, **options})

    return make


def weights(policy: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten().clone() for p in policy.model.parameters()])


def test_both_policies_learn(make_trainer: MakeTrainer) -> None:
    metrics = make_trainer(config(steps=24, minibatch=16, buffer_rows=16)).train()
    for agent in ROLES:
        rewards = [step[f"agents/{agent}/reward"] or 0.0 for step in metrics]
        assert sum(rewards[:3]) / 3 < 0.3
        assert sum(rewards[-3:]) / 3 > 0.7


def test_every_row_is_accounted_for(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(config(steps=6, buffer_rows=24))
    produced = dict.fromkeys("ab", 0)
    for step in trainer.train():
        for agent, name in ROLES.items():
            books = {
                k.split("/")[-1]: v for k, v in step.items() if k.startswith(f"policies/{name}/")
            }
            produced[name] += step[f"agents/{agent}/actions"] or 0  # type: ignore[assignment]
            assert books["produced"] == produced[name]
            assert books["produced"] == (
                books["consumed"] + books["kept"] + books["degenerate"] + books["stale"]
            )
            assert (books["trained_rows"] or 0) % 8 == 0
    assert produced["a"] + produced["b"] == 6 * 8 * 8


def test_trees_that_are_filtered_out_are_reported_and_become_no_rows(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    settings = credit_settings("released", drop_uniform=True)
    metrics = make_trainer(config(credit=settings, steps=1)).train()[0]
    trees = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    uniform = sum(len({turn.reward for turn in tree.turns}) == 1 for tree in trees)
    assert 0 < uniform < 8
    assert metrics["filtered_share"] == uniform / 8
    produced = sum(metrics[f"policies/{name}/produced"] or 0 for name in "ab")
    assert produced == (8 - uniform) * 8


@pytest.mark.parametrize("preset", sorted(CREDIT_PRESETS))
def test_every_preset_trains(make_trainer: MakeTrainer, preset: str) -> None:
    settings = config(credit=credit_settings(preset), steps=1, epochs=1)
    tasks = RandomTasks(count=8, tasks="abcd")

    def one_group(step: int) -> list[Episode]:
        return [dataclasses.replace(episode, group_id="g") for episode in tasks(step)]

    metrics = make_trainer(settings, episodes=one_group).train()[-1]
    assert any(metrics[f"policies/{name}/trained_rows"] for name in "ab")


def test_a_policy_is_trained_on_its_own_nodes_only(
    make_trainer: MakeTrainer, toy: ModuleType
) -> None:
    class OneAgent(toy.ToyTree):  # type: ignore[misc, name-defined]
        def _choose(self) -> None:
            super()._choose()
            if self.agents and not any(self.terminations.values()):
                self.agent_selection = "coder_0"

    policies = {"a": toy.ToyPolicy("a", 1), "b": toy.ToyPolicy("b", 2)}
    before = {name: weights(policy) for name, policy in policies.items()}
    trainer = make_trainer(env_fn=OneAgent, policies=policies)
    metrics = trainer.train()
    assert metrics[-1]["policies/a/consumed"]
    assert not torch.equal(before["a"], weights(policies["a"]))
    assert metrics[-1]["policies/b/produced"] == 0
    assert metrics[-1]["policies/b/ratio"] is None
    assert torch.equal(before["b"], weights(policies["b"]))
    assert (policies["a"].version > 0, policies["b"].version) == (True, 0)


def test_a_partner_plays_and_stays_as_it_is(make_trainer: MakeTrainer, toy: ModuleType) -> None:
    partner = toy.ToyPolicy("b", 2)
    before = weights(partner)
    trainer = make_trainer(policies={"a": toy.ToyPolicy("a", 1)}, partners={"b": partner})
    metrics = trainer.train()[-1]
    assert torch.equal(before, weights(partner))
    assert metrics["agents/coder_1/actions"]
    assert "policies/b/produced" not in metrics


def test_one_policy_may_speak_for_several_agents(
    make_trainer: MakeTrainer, toy: ModuleType
) -> None:
    trainer = make_trainer(policies={"a": toy.ToyPolicy("a", 1)}, roles={"coder_*": "a"})
    assert trainer.train()[-1]["policies/a/produced"] == 3 * 8 * 8


def test_the_first_ratio_is_one_and_trainer_and_sampler_agree(make_trainer: MakeTrainer) -> None:
    # One epoch of one minibatch: every token is trained on under the weights that sampled it.
    trainer = make_trainer(
        config(
            epochs=1, minibatch=8, buffer_rows=8, sampling=Sampling(temperature=0.7, max_tokens=2)
        )
    )
    rows = 0
    for step in trainer.train():
        if step["policies/a/trained_rows"] == 8 and step["policies/a/logprob_gap"] is not None:
            rows += 1
            assert step["policies/a/logprob_gap"] == pytest.approx(0, abs=1e-6)
    assert rows


def test_the_learning_rate_warms_up(make_trainer: MakeTrainer) -> None:
    steps = make_trainer(config(steps=5, warmup_updates=4)).train()
    rates = [step["policies/a/learning_rate"] for step in steps]
    used = [rate for rate in rates if rate is not None]
    assert used[:4] == pytest.approx([0.0025, 0.005, 0.0075, 0.01][: len(used)])


def test_metrics_and_rollouts_are_written_as_they_come(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    seen: list[tuple[int, Any]] = []
    trainer = make_trainer(on_step=lambda step, metrics: seen.append((step, dict(metrics))))
    metrics = trainer.train()
    assert seen == list(enumerate(metrics, start=1))
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == metrics == trainer.log.read_metrics()
    rollouts = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert [r.rollout_id for r in rollouts][7:9] == ["step-000001/0007", "step-000002/0000"]
    assert {turn.generation.policy_version for turn in rollouts[0].turns} == {0}
    assert len({frozenset(step) for step in metrics}) == 1  # the same keys in every step


def test_a_run_folder_holds_one_run(make_trainer: MakeTrainer) -> None:
    make_trainer(config(steps=1)).train()
    with pytest.raises(ConfigError, match="holds a run already; resume it"):
        make_trainer(config(steps=1)).train()


def test_failed_episodes_are_left_out_and_counted(
    make_trainer: MakeTrainer, toy: ModuleType
) -> None:
    class Broken(toy.ToyTree):  # type: ignore[misc, name-defined]
        def step(self, action: str | None) -> None:
            if self.task == "a" and action is not None:
                raise RuntimeError("no judge")
            super().step(action)

    patience = Patience(step_retries=0)
    metrics = make_trainer(config(steps=1), env_fn=Broken, patience=patience).train()[0]
    assert metrics["failed_episodes"] == 2
    assert metrics["actions"] == 6 * 8

    def only_a(step: int) -> list[Episode]:
        return [Episode(episode_id="e", group_id="g", seed=0, options={"task": "a"})]

    trainer = make_trainer(config(seed=1), env_fn=Broken, patience=patience, episodes=only_a,
                           run_dir=make_trainer().log.folder / "other")  # fmt: skip
    with pytest.raises(CollectionFailed, match="no judge"):
        trainer.train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"minibatch": 0}, "minibatch must be at least 1, got 0"),
        ({"buffer_rows": 7}, r"buffer_rows \(7\) must be at least minibatch \(8\)"),
        ({"sampling": Sampling(temperature=0)}, "temperature above 0, got 0"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**changes)


def test_policies_that_cannot_be_trained_are_refused(
    make_trainer: MakeTrainer, toy: ModuleType
) -> None:
    class Scripted:
        name, version = "a", 0

        async def generate(self, request: object) -> Generation:
            return Generation(text="w")

    toy_policy = toy.ToyPolicy("a", 1)
    with pytest.raises(ConfigError, match="'a' cannot be trained: expected `model` and `pad_id`"):
        make_trainer(policies={"a": Scripted(), "b": toy_policy})
    with pytest.raises(ConfigError, match=r"\['a'\] are given both"):
        make_trainer(policies={"a": toy_policy}, partners={"a": toy_policy})
    with pytest.raises(ConfigError, match="policy 'b' has no role"):
        make_trainer(roles={"coder_*": "a"})


def make_row(*, version: int = 0, degenerate: bool = False, token: int = 4) -> Row:
    return Row(
        rollout_id="r",
        agent="coder_0",
        policy_version=version,
        prompt_ids=(0, 10),
        completion_ids=(token,),
        logprobs=(-2.5,),
        reward=1.0,
        advantage=1.0,
        degenerate=degenerate,
    )


@pytest.fixture
def learner(toy: ModuleType, make_trainer: MakeTrainer) -> Learner:
    trainer = make_trainer(config(buffer_rows=16, max_lag=1))
    return trainer._learners["a"]


def test_a_policy_waits_until_it_has_gathered_enough(learner: Learner) -> None:
    learner.add([make_row() for _ in range(15)])
    assert set(learner.update(seed=0).values()) == {None}
    assert (learner.kept, learner.policy.version) == (15, 0)
    learner.add([make_row() for _ in range(6)])
    assert learner.update(seed=0)["trained_rows"] == 16  # two full minibatches of 21 rows
    assert (learner.kept, learner.policy.version) == (5, 1)


def test_rows_of_degenerate_groups_are_dropped_and_counted(learner: Learner) -> None:
    learner.add([make_row(degenerate=True), make_row()])
    assert (learner.books.degenerate, learner.kept) == (1, 1)


def test_rows_sampled_too_long_ago_are_dropped_and_counted(learner: Learner) -> None:
    learner.policy.version = 2
    learner.add([make_row(version=version) for version in (0, 1, 2)])
    learner.update(seed=0)
    assert (learner.books.stale, learner.kept) == (1, 2)


def test_pieces_do_not_change_the_update(toy: ModuleType, make_trainer: MakeTrainer) -> None:
    after = []
    for microbatch in (3, 8):
        trainer = make_trainer(
            config(microbatch=microbatch),
            policies={"a": toy.ToyPolicy("a", 1), "b": toy.ToyPolicy("b", 2)},
        )
        learner = trainer._learners["a"]
        learner.add([make_row(token=token) for token in range(8)])
        learner.update(seed=0)
        after.append(weights(learner.policy))
    torch.testing.assert_close(after[0], after[1], atol=1e-6, rtol=1e-5)


def test_a_divergence_penalty_holds_the_policy_back(
    toy: ModuleType, make_trainer: MakeTrainer
) -> None:
    moved, divergence = {}, {}
    for beta in (0.0, 50.0):
        policy = toy.ToyPolicy("a", 1)
        start = weights(policy)
        settings = config(kl_beta=beta, epochs=8, warmup_updates=1)
        trainer = make_trainer(settings, policies={"a": policy, "b": toy.ToyPolicy("b", 2)})
        learner = trainer._learners["a"]
        learner.add([make_row() for _ in range(8)])
        divergence[beta] = learner.update(seed=0)["kl"]
        moved[beta] = (weights(policy) - start).norm().item()
    assert moved[50.0] < moved[0.0]
    assert divergence[0.0] == 0  # no reference is kept where none is needed
    assert divergence[50.0]


def test_a_gradient_that_is_not_finite_stops_the_run(learner: Learner) -> None:
    with torch.no_grad():
        learner.policy.model.head.bias.fill_(torch.nan)
    learner.add([make_row() for _ in range(16)])
    with pytest.raises(Exception, match="policy 'a': the gradient is not finite"):
        learner.update(seed=0)


def test_episodes_are_a_function_of_the_step_alone() -> None:
    draw = RandomTasks(count=6, tasks=["x", "y", "z"], seed=1, repeats=2)
    assert draw(4) == draw(4)
    assert draw(4) != draw(5)
    episodes = draw(4)
    assert len({episode.episode_id for episode in episodes + draw(5)}) == 12
    tasks = [(episode.group_id, dict(episode.options or {})["task"]) for episode in episodes]
    assert len(set(tasks)) == 3  # two episodes of each task, in one group
    assert {task for _, task in tasks} == {"x", "y", "z"}
    assert RandomTasks(count=2)(0)[0].options is None
    assert len(RandomTasks(count=5, tasks=["x"])(0)) == 5
    with pytest.raises(ConfigError, match="count and repeats must be at least 1"):
        RandomTasks(count=0)


def test_a_role_of_a_policy_that_does_not_exist_is_refused(
    make_trainer: Callable[..., PathGRPOTrainer],
) -> None:
    with pytest.raises(ConfigError, match="is given to policy 'nobody', which does not exist"):
        make_trainer(roles={"coder_0": "a", "coder_1": "b", "coder_2": "nobody"})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate must be at least 0, got -1.0"),
    ],
)
def test_a_setting_out_of_range_is_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PathGRPOConfig(**setting)

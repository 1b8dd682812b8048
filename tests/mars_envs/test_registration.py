"""The ids, in both registries."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env

import mars_envs
from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.registration import TABLE

GYM_ID = "mars_envs/TreeSearch-v0"
STUBS: dict[str, Any] = {
    "tasks": "mars_envs.testing:stub_tasks",
    "judge": "mars_envs.testing:StubJudge",
}


def test_every_row_of_the_table_is_registered_and_its_entry_point_exists() -> None:
    registries = {
        "gymnasium": gym.registry,
        "aec": pettingzoo.aec_registry,
        "parallel": pettingzoo.parallel_registry,
    }
    for row in TABLE:
        name = row.id if row.registry == "gymnasium" else row.id.replace("_v", "-v")
        assert name in registries[row.registry]
        assert registries[row.registry][name].entry_point == row.entry_point
        assert mars_envs.importing.import_object(row.entry_point)


def test_registering_again_is_harmless() -> None:
    mars_envs.register_envs()


def test_gym_make_imports_the_package_itself() -> None:
    code = (
        "import gymnasium as gym\n"
        f"env = gym.make('mars_envs:{GYM_ID}', **{STUBS!r})\n"
        "print(env.reset(seed=0)[0]['prompt'].splitlines()[0])"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("Print ")


def test_pettingzoo_makes_the_aec_environment() -> None:
    env = pettingzoo.make("aec", "mars_envs/tree_search_v0", max_cycles=2, **STUBS)
    env.reset(seed=0)
    env.step("a")
    env.step("b")
    assert isinstance(env.unwrapped, TreeSearchEnv)
    assert all(env.truncations.values())


def test_pettingzoo_makes_the_parallel_environment() -> None:
    env = pettingzoo.make("parallel", "mars_envs/tree_search_v0", max_cycles=2, **STUBS)
    env.reset(seed=0)
    env.step({"coder_0": "a", "coder_1": "b"})
    truncations = env.step({"coder_0": "a", "coder_1": "b"})[3]
    assert isinstance(env.unwrapped, ParallelTreeSearchEnv)
    assert all(truncations.values())


def test_gymnasium_s_checker_passes() -> None:
    env = gym.make(GYM_ID, **STUBS)
    # Real judges depend on the load of the machine, so the id says nondeterministic; the stub is
    # checked strictly.
    assert env.unwrapped.spec is not None
    env.unwrapped.spec.nondeterministic = False
    check_env(env.unwrapped)


def test_the_spec_survives_pickle_and_json() -> None:
    spec = gym.make(GYM_ID, **STUBS, budget=3).spec
    assert spec is not None
    assert pickle.loads(pickle.dumps(spec)).make().unwrapped.max_turns == 3
    assert json.loads(spec.to_json())["kwargs"]["budget"] == 3


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_runs_in_vector_environments(mode: str) -> None:
    kwargs = {"shared_memory": False} if mode == "async" else {}
    envs = gym.make_vec(
        f"mars_envs:{GYM_ID}", num_envs=2, vectorization_mode=mode, vector_kwargs=kwargs, **STUBS
    )
    observations, _ = envs.reset(seed=0)
    assert len(observations["prompt"]) == 2
    _, rewards, _, _, infos = envs.step(("print(1)", "漢字"))
    assert rewards.shape == (2,)
    assert infos["node_id"].tolist() == [0, 0]
    envs.close()


def test_shared_memory_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="'shared_memory': False"):
        gym.make_vec(GYM_ID, num_envs=1, vectorization_mode="async", **STUBS)


def test_common_wrappers_work() -> None:
    env = gym.wrappers.RecordEpisodeStatistics(
        gym.wrappers.TimeLimit(gym.make(GYM_ID, **STUBS), max_episode_steps=3)
    )
    env.reset(seed=0)
    for _ in range(3):
        _, _, terminated, truncated, info = env.step("print(1)")
    assert (terminated, truncated, info["episode"]["l"]) == (False, True, 3)


def test_a_plain_text_view_can_be_had_by_a_wrapper() -> None:
    env = gym.wrappers.TransformObservation(
        gym.make(GYM_ID, **STUBS), lambda o: o["prompt"], mars_envs.UnicodeText()
    )
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space


def test_rendering_works_through_gymnasium() -> None:
    env = gym.make(GYM_ID, render_mode="ansi", **STUBS)
    env.reset(seed=0)
    env.step("print(1)")
    assert "0  coder_" in str(env.render())

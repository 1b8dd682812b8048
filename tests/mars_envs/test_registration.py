"""The ids, in both registries."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env

import mars_envs
from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.registration import TABLE
from mars_envs.testing import check_text_gym, check_tree_search

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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partners": {"coder_1": "mars_envs.testing:odd_partner"}},
        {"parallel": True, "partners": {"coder_0": "mars_envs.testing:odd_partner"}},
        {"parallel": True, "agents": 1, "select": "agent"},
    ],
)
def test_every_view_passes_both_checkers(options: dict[str, Any]) -> None:
    check_tree_search(lambda: gym.make(GYM_ID, **STUBS, **options).unwrapped)
    check_env(gym.make(GYM_ID, **STUBS, **options).unwrapped, skip_render_check=True)


def test_the_spec_survives_pickle_and_json() -> None:
    spec = gym.make(GYM_ID, **STUBS, budget=3).spec
    assert spec is not None
    assert pickle.loads(pickle.dumps(spec)).make().unwrapped.max_turns == 3
    assert json.loads(spec.to_json())["kwargs"]["budget"] == 3


@pytest.mark.parametrize(
    ("mode", "kwargs"),
    [
        ("sync", {}),
        ("async", {"shared_memory": False}),
        ("async", {"shared_memory": False, "context": "spawn"}),
    ],
    ids=["sync", "async", "spawn"],
)
def test_it_runs_in_vector_environments(mode: str, kwargs: dict[str, Any]) -> None:
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
    env = mars_envs.PromptOnly(gym.make(GYM_ID, **STUBS))
    check_text_gym(lambda: mars_envs.PromptOnly(gym.make(GYM_ID, **STUBS)))
    observation, _ = env.reset(seed=0)
    assert observation.startswith("Print ")
    assert env.observation_space == mars_envs.UnicodeText()
    assert env.max_turns == 8


def test_without_a_prompt_there_is_no_plain_text_view() -> None:
    with pytest.raises(TypeError, match='needs a Dict observation with a "prompt", got Box'):
        mars_envs.PromptOnly(gym.make("CartPole-v1"))


def test_observations_can_be_transformed() -> None:
    env = gym.wrappers.TransformObservation(
        gym.make(GYM_ID, **STUBS), lambda o: o["features"], gym.spaces.Box(0, 1, (5,))
    )
    assert env.reset(seed=0)[0] in env.observation_space


@pytest.mark.parametrize("wrapper", [gym.wrappers.FlattenObservation])
def test_wrappers_for_numbers_fail_loudly(wrapper: Any) -> None:
    with pytest.raises(TypeError, match="cannot be flattened: a text has no fixed shape"):
        wrapper(gym.make(GYM_ID, **STUBS))


def test_frames_for_a_video_have_one_size_and_a_rate() -> None:
    env = gym.wrappers.RenderCollection(gym.make(GYM_ID, render_mode="rgb_array", **STUBS))
    assert env.metadata["render_fps"] > 0
    env.reset(seed=0)
    for turn in range(8):
        env.step(f"print({turn})")
    frames = env.render()
    assert {(frame.shape, frame.dtype.name) for frame in frames} == {((480, 640, 3), "uint8")}
    assert len({frame.tobytes() for frame in frames}) == 9


def test_a_video_can_be_recorded(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", reason="RecordVideo writes its films with moviepy")
    env = gym.wrappers.RecordVideo(
        gym.make(GYM_ID, render_mode="rgb_array", **STUBS), str(tmp_path)
    )
    env.reset(seed=0)
    for turn in range(8):
        env.step(f"print({turn})")
    env.close()
    assert list(tmp_path.glob("*.mp4"))


def test_rendering_works_through_gymnasium() -> None:
    env = gym.make(GYM_ID, render_mode="ansi", **STUBS)
    env.reset(seed=0)
    env.step("print(1)")
    assert "0  coder_" in str(env.render())

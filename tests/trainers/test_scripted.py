from __future__ import annotations

import asyncio

import pytest

from trainers.policies import Policy, PolicyExhausted, ScriptedPolicy
from trainers.rollout import Request


def request(prompt: str = "p", *, agent: str = "coder_0", episode: str = "e") -> Request:
    return Request(
        prompt=prompt,
        agent=agent,
        env_id="env",
        task_id="t",
        observation={},
        info={},
        episode_id=episode,
    )


def say(policy: ScriptedPolicy, asked: Request) -> str:
    return asyncio.run(policy.generate(asked)).text


def test_it_is_a_policy() -> None:
    assert isinstance(ScriptedPolicy(["a"]), Policy)


def test_a_function_sees_the_request() -> None:
    assert say(ScriptedPolicy(lambda asked: asked.prompt.upper()), request("hi")) == "HI"


def test_an_async_function_is_awaited() -> None:
    async def script(asked: Request) -> str:
        await asyncio.sleep(0)
        return asked.agent

    assert say(ScriptedPolicy(script), request()) == "coder_0"


def test_texts_come_in_order_and_end() -> None:
    policy = ScriptedPolicy(["a", "b"], name="list")
    assert [say(policy, request()) for _ in range(2)] == ["a", "b"]
    with pytest.raises(PolicyExhausted, match="list: coder_0 has said all 2 texts"):
        say(policy, request())


def test_each_agent_of_each_episode_has_its_own_place() -> None:
    policy = ScriptedPolicy(["a", "b"])
    assert say(policy, request()) == "a"
    assert say(policy, request(agent="coder_1")) == "a"
    assert say(policy, request(episode="other")) == "a"
    assert say(policy, request()) == "b"


def test_a_list_may_start_anew() -> None:
    policy = ScriptedPolicy(["a", "b"], cycle=True)
    assert [say(policy, request()) for _ in range(5)] == ["a", "b", "a", "b", "a"]


def test_generations_are_stamped_and_have_no_tokens() -> None:
    generation = asyncio.run(ScriptedPolicy(["a"], name="me").generate(request()))
    assert (generation.policy, generation.policy_version) == ("me", 0)
    assert generation.finish_reason == "scripted"
    assert generation.completion_ids == ()


def test_a_script_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got a single text; wrap it in \[\]"):
        ScriptedPolicy("text")
    with pytest.raises(ValueError, match="give at least one"):
        ScriptedPolicy([])

"""The policy behind an OpenAI-compatible address, against a real HTTP server on this machine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from trainers import Generation, Request, Sampling
from trainers.errors import ConfigError
from trainers.policies import GenerationFailed, Policy
from trainers.policies.chat import ChatPolicy

pytest.importorskip("httpx")

Server = Any
Reply = tuple[int, Any, dict[str, str]]


@pytest.fixture
def server(chat_server: ModuleType) -> Iterator[Server]:
    with chat_server.Server() as server:
        yield server


def said(text: str | None, reason: str = "stop") -> Reply:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return 200, {"choices": [choice]}, {}


def ask(prompt: str = "Who?", seed: int = 5) -> Request:
    return Request(
        prompt=prompt,
        agent="reader_0",
        env_id="env",
        task_id="task",
        observation={},
        info={},
        sampling=Sampling(temperature=0.5, max_tokens=77),
        seed=seed,
    )


def answers(policy: ChatPolicy, *requests: Request) -> list[Generation]:
    async def main() -> list[Generation]:
        return await asyncio.gather(*map(policy.generate, requests))

    return asyncio.run(main())


def policy(server: Server, **options: Any) -> ChatPolicy:
    return ChatPolicy(server.url, **{"model": "m", "delay_s": 0.001, **options})


def test_a_prompt_becomes_one_user_message_and_the_reply_a_generation(server: Server) -> None:
    chat = policy(server, key="secret")
    assert isinstance(chat, Policy)
    (generation,) = answers(chat, ask())
    assert (generation.text, generation.finish_reason, generation.policy) == ("hello", "stop", "m")
    assert generation.completion_ids == ()
    assert server.asked == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Who?"}],
            "max_tokens": 77,
            "temperature": 0.5,
            "seed": 5,
        }
    ]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert "secret" not in repr(chat)
    answers(policy(server), ask())
    assert "Authorization" not in server.headers[1]


def test_fields_may_be_added_changed_and_left_out(server: Server) -> None:
    answers(policy(server, extra={"top_p": 0.9, "temperature": 1.0, "seed": None}), ask())
    assert (server.asked[0]["top_p"], server.asked[0]["temperature"]) == (0.9, 1.0)
    assert "seed" not in server.asked[0]


def test_a_reply_that_was_cut_off_is_data(server: Server) -> None:
    server.answer = lambda body, number: said("It is", "length")
    (generation,) = answers(policy(server), ask())
    assert (generation.text, generation.finish_reason) == ("It is", "length")


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_reply_without_text_is_a_failed_generation_that_says_what_to_do(
    text: str | None, server: Server
) -> None:
    """A model that has only thought has said nothing, not that there is nothing."""
    server.answer = lambda body, number: said(text, "length")
    with pytest.raises(GenerationFailed, match=r"'length'.*its 77 tokens.*thinking off"):
        answers(policy(server), ask())
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"error": "slow down"}, {}),
        (429, {"error": "slow down"}, {"Retry-After": "0"}),
        (503, {"error": "busy"}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        (500, b"<html>oops", {}),
        (200, b"{ not JSON", {}),
        (200, b"\xff\xfe", {}),
        (200, {"choices": []}, {}),
        (200, {"error": "none"}, {}),
        (200, [], {}),
        (200, {"choices": [{"message": {"content": 5}}]}, {}),
    ],
)
def test_what_may_pass_is_tried_again(server: Server, trouble: Reply) -> None:
    server.answer = lambda body, number: trouble if number < 3 else said("at last")
    (generation,) = answers(policy(server), ask())
    assert generation.text == "at last"
    assert len(server.asked) == 3
    server.asked.clear()
    server.answer = lambda body, number: trouble
    with pytest.raises(GenerationFailed, match=r"gave no reply in 3 tries; the last: .+"):
        answers(policy(server, retries=2), ask())
    assert len(server.asked) == 3


def test_a_server_that_is_slow_or_gone_is_a_failed_generation(server: Server) -> None:
    gate = threading.Event()
    server.answer = lambda body, number: said("late") if gate.wait(30) else said("never")
    with pytest.raises(GenerationFailed, match="ReadTimeout"):
        answers(policy(server, timeout_s=0.05, retries=0), ask())
    gate.set()
    nowhere = ChatPolicy("http://127.0.0.1:9", model="m", retries=1, delay_s=0.001)
    with pytest.raises(GenerationFailed, match=r"2 tries; the last: ConnectError"):
        answers(nowhere, ask())


def test_a_prompt_that_the_server_does_not_take_fails_alone_and_at_once(server: Server) -> None:
    too_long = (400, {"error": "the context has 4096 tokens"}, {})
    server.answer = lambda body, number: (
        too_long if "long" in body["messages"][0]["content"] else said("fine")
    )
    chat = policy(server)

    async def main() -> list[Generation | BaseException]:
        requests = map(chat.generate, [ask("short"), ask("long"), ask("short")])
        return await asyncio.gather(*requests, return_exceptions=True)

    first, second, third = asyncio.run(main())
    assert isinstance(second, GenerationFailed)
    assert "HTTP 400" in str(second)
    assert "4096" in str(second)
    assert isinstance(first, Generation)
    assert isinstance(third, Generation)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "why"), [(401, "key"), (403, "key"), (404, "no such address, or no such model")]
)
def test_a_server_that_refuses_everything_ends_the_run(
    server: Server, status: int, why: str
) -> None:
    server.answer = lambda body, number: (status, {"error": "no"}, {})
    with pytest.raises(ConfigError, match=rf"refuses \(.*{why}"):
        answers(policy(server), ask())
    assert len(server.asked) == 1


def test_the_only_model_need_not_be_named(server: Server) -> None:
    answers(policy(server, model=None), ask())
    assert server.asked[0]["model"] == "the-model"
    server.models = ["a", "b"]
    with pytest.raises(ConfigError, match=r"serves 2 models \(a, b\)"):
        answers(policy(server, model=None), ask())


def test_many_requests_share_connections_and_event_loops_may_change(server: Server) -> None:
    chat = policy(server)
    for _ in range(3):
        texts = [one.text for one in answers(chat, *(ask(f"{i}", seed=i) for i in range(20)))]
        assert texts == ["hello"] * 20
    assert len(server.asked) == 60
    before = server.connections

    async def one_after_the_other() -> None:
        for _ in range(5):
            await chat.generate(ask())

    asyncio.run(one_after_the_other())
    assert server.connections == before + 1


def test_a_server_that_fails_on_every_third_call_is_outlived(server: Server) -> None:
    server.answer = lambda body, number: (
        (500, {"error": "third"}, {}) if number % 3 == 0 else said(body["messages"][0]["content"])
    )
    found = answers(policy(server, retries=20), *(ask(str(i)) for i in range(30)))
    assert [one.text for one in found] == [str(i) for i in range(30)]


def test_any_text_can_be_sent(server: Server) -> None:
    server.answer = lambda body, number: said(body["messages"][0]["content"])
    (generation,) = answers(policy(server), ask("Ürün 北京 \x00 \ud800 😀"))
    assert generation.text == "Ürün 北京 \x00 ? 😀"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("http://host:8000/", "http://host:8000/v1"),
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("https://host/api/v2/", "https://host/api/v2"),
        ("http://host/v1/chat/completions", "http://host/v1"),
    ],
)
def test_addresses_are_completed(url: str, base: str) -> None:
    assert ChatPolicy(url).url == base


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected an address such as"):
        ChatPolicy(url)

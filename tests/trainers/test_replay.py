from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.judging import extract_program
from trainers.errors import ConfigError
from trainers.policies import GenerationFailed, Policy, PolicyExhausted, Recording, ReplayPolicy
from trainers.policies.replay import reply_text
from trainers.rollout import Request

TEN = {"t": [Recording(text=f"print({i})", form="full_program") for i in range(10)]}


def request(
    *, task: str = "t", agent: str = "coder_0", episode: str = "e", seed: int = 0
) -> Request:
    return Request(
        prompt="p",
        agent=agent,
        env_id="env",
        task_id=task,
        observation={},
        info={},
        episode_id=episode,
        seed=seed,
    )


def draw(policy: ReplayPolicy, count: int = 1, **fields: str) -> list[str]:
    asked = request(**fields)  # type: ignore[arg-type]
    return [asyncio.run(policy.generate(asked)).text for _ in range(count)]


def test_it_is_a_policy() -> None:
    assert isinstance(ReplayPolicy(TEN), Policy)


def test_every_recording_is_drawn_exactly_once_in_an_episode() -> None:
    texts = draw(ReplayPolicy(TEN), 10)
    assert sorted(texts) == sorted(reply_text(recording) for recording in TEN["t"])
    assert texts != [reply_text(recording) for recording in TEN["t"]]


def test_what_an_episode_will_hear_can_be_asked_beforehand() -> None:
    policy = ReplayPolicy(TEN, seed=3)
    expected = policy.answers("t", "e")
    assert draw(policy, 10) == expected
    assert policy.answers("t", "another") != expected
    assert policy.answers("unknown", "e") == []


def test_then_it_is_exhausted() -> None:
    policy = ReplayPolicy(TEN, name="pool")
    draw(policy, 10)
    for _ in range(2):
        with pytest.raises(
            PolicyExhausted, match="pool: all 10 recordings for task 't' were drawn"
        ):
            draw(policy)
    assert issubclass(PolicyExhausted, GenerationFailed)


def test_a_task_without_recordings_is_exhausted_at_once() -> None:
    with pytest.raises(PolicyExhausted, match="all 0 recordings for task 'other'"):
        draw(ReplayPolicy(TEN), task="other")


def test_episodes_do_not_share_draws() -> None:
    policy = ReplayPolicy(TEN)
    assert draw(policy, 10, episode="a") != draw(policy, 10, episode="b")


def test_agents_of_one_episode_share_draws() -> None:
    policy = ReplayPolicy(TEN)
    first = draw(policy, 5, agent="coder_0")
    assert not set(first) & set(draw(policy, 5, agent="coder_1"))


def test_the_order_depends_on_seed_name_and_episode_only() -> None:
    alone = {
        episode: draw(ReplayPolicy(TEN, seed=3), 10, episode=episode) for episode in ("a", "b")
    }
    together = ReplayPolicy(TEN, seed=3)
    mixed: dict[str, list[str]] = {"a": [], "b": []}
    turns = ["a", "b"] * 10
    random.Random(0).shuffle(turns)
    for episode in turns:
        mixed[episode] += draw(together, episode=episode)
    assert mixed == alone
    assert draw(ReplayPolicy(TEN, seed=4), 10, episode="a") != alone["a"]
    assert draw(ReplayPolicy(TEN, seed=3, name="x"), 10, episode="a") != alone["a"]


def test_all_orders_are_equally_likely() -> None:
    three = {"t": TEN["t"][:3]}
    policy = ReplayPolicy(three)
    orders = [tuple(draw(policy, 3, episode=str(episode))) for episode in range(600)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == len(list(itertools.permutations(range(3))))
    assert min(counts) > 60  # expected 100, standard deviation 9


def test_the_recorded_order_can_be_kept() -> None:
    expected = [reply_text(recording) for recording in TEN["t"]]
    assert draw(ReplayPolicy(TEN, order="recorded"), 10) == expected
    with pytest.raises(ConfigError, match='order must be "shuffled" or "recorded"'):
        ReplayPolicy(TEN, order="sorted")  # type: ignore[arg-type]


def test_concurrent_requests_draw_different_recordings() -> None:
    policy = ReplayPolicy(TEN)

    async def ten() -> list[str]:
        answers = [policy.generate(request(agent=f"coder_{i}")) for i in range(10)]
        return [generation.text for generation in await asyncio.gather(*answers)]

    assert len(set(asyncio.run(ten()))) == 10


def test_a_completion_is_joined_to_its_own_prompt_first() -> None:
    own = Recording(text="    return 1\n", form="completion", prompt="def f():\n")
    policy = ReplayPolicy({"t": [own]}, prefixes={"t": "def g():\n"})
    assert extract_program(draw(policy)[0]).program == "def f():\n    return 1\n"


@pytest.mark.parametrize("form", ["completion", "completion_or_full"])
def test_a_completion_without_a_prompt_takes_the_prefix(form: str) -> None:
    bare = Recording(text="    return 1\n", form=form)  # type: ignore[arg-type]
    policy = ReplayPolicy({"t": [bare]}, prefixes={"t": "def g():\n"})
    assert extract_program(draw(policy)[0]).program == "def g():\n    return 1\n"


def test_a_completion_without_any_prompt_is_a_configuration_error() -> None:
    policy = ReplayPolicy({"t": [Recording(text="x", form="completion", source="m")]})
    with pytest.raises(ConfigError, match=r"by 'm' is a completion without a prompt.*prefixes="):
        draw(policy)


def test_a_reply_goes_verbatim() -> None:
    text = "Sure!\n```\nprint(1)\n```\nBye \ud800\0"
    assert draw(ReplayPolicy({"t": [Recording(text=text, form="reply")]})) == [text]


def test_generations_are_stamped() -> None:
    generation = asyncio.run(ReplayPolicy(TEN, name="pool").generate(request()))
    assert (generation.policy, generation.finish_reason) == ("pool", "scripted")


def round_trip(program: str) -> str | None:
    return extract_program(reply_text(Recording(text=program, form="full_program"))).program


@pytest.mark.parametrize(
    "program",
    [
        "print(1)",
        "print(1)\n",
        "\n\nprint(1)\n\n\n",
        "  indented(1)\n",
        "s = '''\n```\ncode\n```\n'''\n",
        "# ````````\n```",
        "~~~\nprint(1)\n~~~",
        "print('\0')",
        "print('\ud800\udfff')",
        "a = 1\r\nb = 2\r\n",
        "a = 1\rb = 2",
        "x = '\u2028\x0b\x0c\x1c\x85'",
        "print('<think>')\n",
        "print('</think>')\n</think>",
        "<think>\nhm",
        "not python at all",
        "42",
        "`",
    ],
)
def test_a_program_reaches_the_judge_byte_for_byte(program: str) -> None:
    assert round_trip(program) == program


@given(
    st.lists(
        st.one_of(
            st.text(st.characters()),
            st.text(st.characters(categories=["Cs", "Cc", "Zl", "Zp"])),
            st.sampled_from(["```", "~~~", "\n", "`", " ", "<think>", "</think>", "print(1)"]),
        )
    ).map("".join)
)
def test_any_text_reaches_the_judge_byte_for_byte(program: str) -> None:
    assert round_trip(program) == (program if program.strip() else None)

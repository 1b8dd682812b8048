"""Rollouts on disk: exact, one line each, and damage is reported where it is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers import Generation, Rollout, Turn
from trainers.errors import RolloutFormatError
from trainers.rollout import append_rollouts, from_line, read_rollouts, to_line, write_rollouts


def make_rollout(name: str = "r0", *, text: str = "print(1)", reward: float = 1.0) -> Rollout:
    turn = Turn(
        agent="coder_0",
        prompt="add 1\n",
        generation=Generation(
            text=text,
            prompt_ids=(1, 2),
            completion_ids=(3, 4),
            logprobs=(-0.1, -1e-300),
            finish_reason="stop",
            policy="a",
            policy_version=7,
        ),
        reward=reward,
        info={"node_id": 0, "score": 0.5, "solved": True, "status": "accepted"},
    )
    return Rollout(
        rollout_id=name,
        group_id="g",
        env_id="env",
        task_id="t",
        seed=2**40,
        prompt_hash="ab",
        turns=(turn, turn),
        outcome="terminated",
        episode_reward=reward,
        summary={"best_node_id": 0},
    )


@given(
    text=st.text(alphabet=st.characters(exclude_categories=()), max_size=30),
    reward=st.floats(allow_nan=False, allow_infinity=False),
)
def test_a_rollout_comes_back_exactly_whatever_its_text_and_numbers(
    text: str, reward: float
) -> None:
    # Two lone surrogates in a row mean one character in JSON; no tokenizer produces them.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    rollout = make_rollout(text=text, reward=reward)
    line = to_line(rollout)
    assert from_line(line) == rollout
    assert len(line.splitlines()) == 1


def test_files_can_be_written_extended_and_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first, second = make_rollout("a", text="x\u2028y\r\n"), make_rollout("b", text="é🌳")
    assert write_rollouts(path, [first]) == 1
    assert append_rollouts(path, [second]) == 1
    assert list(read_rollouts(path)) == [first, second]
    assert write_rollouts(path, [second]) == 1
    assert list(read_rollouts(path)) == [second]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_json_does_not_know_are_refused(bad: float) -> None:
    with pytest.raises(RolloutFormatError, match=r"rollout 'r0' cannot be stored.*finite"):
        to_line(make_rollout(reward=bad))


def test_a_torn_last_line_is_an_error_unless_it_may_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_rollouts(path, [make_rollout("a"), make_rollout("b")])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RolloutFormatError, match=r"r\.jsonl, line 2: the file ends in the middle"):
        list(read_rollouts(path))
    kept = list(read_rollouts(path, torn_tail="skip"))
    assert [rollout.rollout_id for rollout in kept] == ["a"]


def damage(**changes: Any) -> str:
    return json.dumps({**json.loads(to_line(make_rollout())), **changes})


def without(key: str) -> str:
    record = json.loads(to_line(make_rollout()))
    del record[key]
    return json.dumps(record)


def with_one_logprob() -> str:
    record = json.loads(to_line(make_rollout()))
    record["turns"][0]["generation"]["logprobs"] = [-1.0]
    return json.dumps(record)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("\x00\x00", "not JSON"),
        ("[]", "expected an object, got list"),
        (damage(schema_version=99), "schema_version is 99, this release reads 1"),
        ("{}", "schema_version is None"),
        (damage(colour="red"), "unexpected keyword argument 'colour'"),
        (damage(turns=[{}]), "missing 'generation'"),
        (without("seed"), "missing 1 required keyword-only argument: 'seed'"),
        (with_one_logprob(), "1 log-probs for 2 tokens"),
    ],
)
@pytest.mark.parametrize("torn_tail", ["raise", "skip"])
def test_damage_is_reported_with_file_line_and_reason(
    tmp_path: Path, line: str, reason: str, torn_tail: Any
) -> None:
    path = tmp_path / "r.jsonl"
    write_rollouts(path, [make_rollout()])
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RolloutFormatError) as caught:
        list(read_rollouts(path, torn_tail=torn_tail))
    assert str(path) in str(caught.value)
    assert "line 2" in str(caught.value)
    assert reason in str(caught.value)


def test_bytes_that_are_no_text_are_reported_too(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a": \xff\xfe}\n')
    with pytest.raises(RolloutFormatError, match="line 1: not JSON"):
        list(read_rollouts(path))

"""Two small coders: their tokenizer, their determinism, and that warm-up teaches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mars_envs.tasks import tiny_code
from trainers.errors import ConfigError, ModelNotFound
from trainers.tiny_coders import (
    ARCHITECTURES,
    BOILERPLATE,
    build_coder,
    build_tokenizer,
    load_coder,
    save_coder,
    warm_up,
)

PROGRAM = "n=int(input())\nprint((n+8)*2)"
PAIRS = [("add 8, times 2\n", PROGRAM), ("sub 3, mod 4\n", "n=int(input())\nprint((n-3)%4)")]


def test_the_boilerplate_is_the_task_familys() -> None:
    assert BOILERPLATE == tiny_code.BOILERPLATE


def test_a_program_and_its_end_are_eight_tokens_of_a_vocabulary_of_55() -> None:
    tokenizer = build_tokenizer()
    assert len(tokenizer(PROGRAM)["input_ids"]) + 1 == 8
    assert len(tokenizer) == 55


@pytest.mark.parametrize("text", [PROGRAM, "in 0 want -7 got 45\n", "n=int(input())\nprint(n", ""])
def test_text_survives_encoding_and_decoding(text: str) -> None:
    tokenizer = build_tokenizer()
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_every_task_and_status_can_be_written_without_the_unknown_token() -> None:
    tokenizer = build_tokenizer()
    texts = [spec.compact for spec in tiny_code.tiny_tasks().specs]
    texts += ["wrong_answer", "time_limit_exceeded", "no_code", "in 0 want -7 got 45"]
    assert tokenizer.unk_token_id not in {i for ids in tokenizer(texts)["input_ids"] for i in ids}


def test_a_foreign_character_becomes_the_unknown_token() -> None:
    tokenizer = build_tokenizer()
    assert tokenizer("aΩb")["input_ids"][1] == tokenizer.unk_token_id


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_coder_has_about_a_hundred_thousand_parameters(architecture: str) -> None:
    model, _ = build_coder(architecture, seed=0)
    assert 100_000 < sum(p.numel() for p in model.parameters()) < 110_000


def test_the_two_coders_are_of_different_kinds() -> None:
    assert len({type(build_coder(a, seed=0)[0]) for a in ARCHITECTURES}) == 2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_state_alone(
    architecture: str,
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, second, other = (build_coder(architecture, seed=s)[0] for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    state = first.state_dict()
    assert all(torch.equal(v, state[k]) for k, v in second.state_dict().items())
    assert any(not torch.equal(v, state[k]) for k, v in other.state_dict().items())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_warm_up_teaches_and_repeats_exactly(architecture: str) -> None:
    losses: list[list[float]] = []
    for _ in range(2):
        model, tokenizer = build_coder(architecture, seed=0)
        losses.append([])
        last = warm_up(
            model,
            tokenizer,
            PAIRS,
            steps=30,
            batch=4,
            on_step=lambda step, loss: losses[-1].append(loss),
        )
        assert last == losses[-1][-1]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 30
    assert losses[0][0] > 3
    assert losses[0][-1] < 0.5


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_saved_coder_computes_the_same_when_loaded(architecture: str, tmp_path: Path) -> None:
    model, tokenizer = build_coder(architecture, seed=3)
    save_coder(model, tokenizer, tmp_path)
    loaded, loaded_tokenizer = load_coder(tmp_path)
    ids = tokenizer(PROGRAM)["input_ids"]
    assert loaded_tokenizer(PROGRAM)["input_ids"] == ids
    assert loaded_tokenizer.decode(ids, skip_special_tokens=True) == PROGRAM
    with torch.no_grad():
        assert torch.equal(model(torch.tensor([ids])).logits, loaded(torch.tensor([ids])).logits)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="qwen3"):
        build_coder("gpt5", seed=0)
    model, tokenizer = build_coder("qwen3", seed=0)
    with pytest.raises(ConfigError, match="0 pairs"):
        warm_up(model, tokenizer, [])
    with pytest.raises(ModelNotFound, match="save_coder"):
        load_coder(tmp_path / "absent")


def test_a_damaged_coder_is_said_to_be_damaged(tmp_path: Path) -> None:
    save_coder(*build_coder("qwen3", seed=0), tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelNotFound, match="cannot be read, it is damaged or incomplete"):
        load_coder(tmp_path)

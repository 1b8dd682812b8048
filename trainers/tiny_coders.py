"""Two different coders of a hundred thousand parameters, which learn on a CPU in minutes.

They are ordinary `transformers` models, a Qwen3 (gated MLP, RMS norm, query-key norm) and a
GPT-NeoX (parallel residual, biases, LayerNorm), 2 layers of width 64, with one token per character
and one for the text that every program starts with: a program is then 8 tokens instead of 30, which
is what keeps training stable. `warm_up` teaches the form on given examples; all the rest is left to
reinforcement learning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from .errors import ConfigError, ModelNotFound

Architecture = Literal["qwen3", "gpt_neox"]
Pair = tuple[str, str]
_Row = tuple[list[int], int]

ARCHITECTURES: Final[tuple[Architecture, ...]] = ("qwen3", "gpt_neox")
BOILERPLATE: Final = "n=int(input())\nprint((n"
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789 \n,?()+-*%=_:./"
_PAD, _EOS, _UNK = "<pad>", "<eos>", "<unk>"
_CONTEXT: Final = 128


def build_coder(architecture: Architecture, *, seed: int) -> tuple[Any, Any]:
    """Make an untrained coder.

    Args:
        architecture: "qwen3" or "gpt_neox".
        seed: of the initial weights; the global random state is left alone.

    Returns:
        The model (float32, CPU) and its tokenizer.

    Raises:
        ConfigError: an unknown architecture.
    """
    if architecture not in ARCHITECTURES:
        raise ConfigError(f"unknown architecture {architecture!r}; known: {ARCHITECTURES}")
    tokenizer = build_tokenizer()
    common = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": _CONTEXT,
        "initializer_range": 0.05,
        "tie_word_embeddings": False,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any
        if architecture == "qwen3":
            model = Qwen3ForCausalLM(
                Qwen3Config(intermediate_size=168, num_key_value_heads=4, head_dim=16, **common)
            )
        else:
            # By default NeoX rotates a quarter of each head: with heads of 16 that is too little
            # to tell positions apart, and it copies digits badly.
            rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}
            model = GPTNeoXForCausalLM(
                GPTNeoXConfig(intermediate_size=256, rope_parameters=rope, **common)
            )
    return model.eval(), tokenizer


def build_tokenizer(*, boilerplate: str = BOILERPLATE, alphabet: str = ALPHABET) -> Any:
    """A tokenizer with one token per character of `alphabet` and one for `boilerplate`.

    Anything else becomes the unknown token, which decodes to nothing. There is no start token.
    """
    vocab = {token: i for i, token in enumerate([_PAD, _EOS, _UNK, boilerplate, *alphabet])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token=_UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(f"{re.escape(boilerplate)}|[\\s\\S]"), behavior="isolated"
    )
    tokenizer.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_EOS,
        unk_token=_UNK,
        clean_up_tokenization_spaces=False,
        model_max_length=_CONTEXT,
    )


def warm_up(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[Pair],
    *,
    steps: int = 200,
    batch: int = 64,
    lr: float = 3e-3,
    final_lr: float = 3e-4,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> float:
    """Train a coder on (prompt, completion) pairs, with loss on the completion and its end token.

    AdamW with a linear decay of the learning rate; each step draws `batch` pairs.

    Args:
        model: the coder, updated in place.
        tokenizer: its tokenizer.
        pairs: the examples.
        steps: optimizer steps.
        batch: pairs per step.
        lr: learning rate of the first step.
        final_lr: learning rate of the last.
        seed: of the order of the pairs.
        on_step: called after each step with its number, from 1, and its loss.

    Returns:
        The loss (nats per completion token) of the last step.

    Raises:
        ConfigError: no pairs, or no steps.
    """
    if not pairs or steps < 1:
        raise ConfigError(f"warm_up needs pairs and steps, got {len(pairs)} pairs, {steps} steps")
    rows = _encode_pairs(tokenizer, pairs)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    loss = 0.0
    model.train()
    for step in range(steps):
        progress = step / max(steps - 1, 1)
        for group in optimizer.param_groups:
            group["lr"] = lr + (final_lr - lr) * progress
        chosen = rng.integers(len(rows), size=batch)
        loss = _supervised_step(model, optimizer, [rows[i] for i in chosen], tokenizer.pad_token_id)
        if on_step is not None:
            on_step(step + 1, loss)
    model.eval()
    return loss


def save_coder(model: Any, tokenizer: Any, folder: str | Path) -> None:
    """Write a coder in the layout of `save_pretrained`."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_coder(folder: str | Path) -> tuple[Any, Any]:
    """Read a coder that `save_coder` wrote.

    Raises:
        ModelNotFound: the folder holds none, or a damaged one.
    """
    if not (Path(folder) / "config.json").is_file():
        raise ModelNotFound(
            f"there is no coder in {str(folder)!r}; expected a folder written by `save_coder`"
        )
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # every library below has damage errors of its own
        raise ModelNotFound(
            f"the coder in {str(folder)!r} cannot be read, it is damaged or incomplete: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    for parameter in model.parameters():
        # Loaded tensors are views into the file, aligned as it happens, and sums over them round
        # differently. In memory of its own a loaded coder computes what the saved one did, exactly.
        parameter.data = parameter.data.clone()
    return model.eval(), tokenizer


def _encode_pairs(tokenizer: Any, pairs: Sequence[Pair]) -> list[_Row]:
    """Token ids of prompt + completion + end, and how many of them are prompt."""
    prompts = tokenizer([prompt for prompt, _ in pairs])["input_ids"]
    completions = tokenizer([completion for _, completion in pairs])["input_ids"]
    return [
        ([*prompt, *completion, tokenizer.eos_token_id], len(prompt))
        for prompt, completion in zip(prompts, completions, strict=True)
    ]


def _supervised_step(
    model: Any, optimizer: torch.optim.Optimizer, rows: Sequence[_Row], pad_id: int
) -> float:
    """One step on the mean loss over all completion tokens of `rows`."""
    trained = sum(len(ids) - start for ids, start in rows)
    by_length = sorted(rows, key=lambda row: len(row[0]))
    # Short root prompts apart from long refinements: a quarter less padding to compute.
    halves = [by_length[: len(rows) // 2], by_length[len(rows) // 2 :]]
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for half in filter(None, halves):
        loss: Any = _loss_sum(model, half, pad_id) / trained
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


def _loss_sum(model: Any, rows: Sequence[_Row], pad_id: int) -> torch.Tensor:
    width = max(len(ids) for ids, _ in rows)
    tokens = torch.tensor([[*ids, *[pad_id] * (width - len(ids))] for ids, _ in rows])
    places = torch.arange(1, width)
    starts = torch.tensor([start for _, start in rows])[:, None]
    ends = torch.tensor([len(ids) for ids, _ in rows])[:, None]
    trained = (places >= starts) & (places < ends)
    # Causal attention never looks right, so padding on the right needs no mask.
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(
        logits[trained], tokens[:, 1:][trained], reduction="sum"
    )

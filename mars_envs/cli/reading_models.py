"""Who reads, by name on the command line: `lexical`, an address, a Hugging Face model."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..generators import TextGenerator
from ..parallel_memory.scripted import lexical
from ..parallel_memory.workflow import Speaker

if TYPE_CHECKING:
    from trainers.policies import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingModel:
    """Someone who plays every role: by the prompt (`generate`) or by the observation (`speak`)."""

    label: str
    generate: TextGenerator | None = None
    speak: Speaker | None = None
    failures: tuple[type[Exception], ...] = ()
    """What it raises where no reply will come; anything else is a fault."""


def open_model(
    spec: str,
    *,
    name: str | None = None,
    key_env: str = "OPENAI_API_KEY",
    temperature: float = 0.0,
    seed: int = 0,
    timeout_s: float = 600.0,
) -> ReadingModel:
    """Return who is meant by `spec`.

    Args:
        spec: "lexical"; the address of an OpenAI-compatible server, perhaps with "#MODEL" behind
            it; or a folder or Hub name of a Hugging Face model, perhaps with "hf:" before it.
        name: the model's name on a server, where `spec` does not say it.
        key_env: the environment variable that holds the server's key.
        temperature: of a model.
        seed: of a model; with the prompt it decides what is drawn.
        timeout_s: for one reply of a server.

    Raises:
        TrainersError: no such model, or nobody at that address.
        ImportError: an extra is missing; the message names it.
    """
    if spec == "lexical":
        return ReadingModel(label=spec, speak=lexical())
    if spec.startswith(("http://", "https://")):
        from trainers.policies.chat import ChatPolicy

        url, _, model = spec.partition("#")
        key = os.environ.get(key_env) or None
        # Few tries: whoever drives a workflow asks again for what failed.
        policy = ChatPolicy(url, model=model or name, key=key, timeout_s=timeout_s, retries=2)
        asyncio.run(policy.find_server())
        return _of_policy(spec, policy, temperature, seed)
    place = spec.removeprefix("hf:")
    return _of_policy(Path(place).name or place, _hugging_face(place), temperature, seed)


def _hugging_face(place: str) -> Policy:
    try:
        from trainers.policies.hf import HFPolicy
    except ImportError as error:
        raise ImportError(
            f"the model {place!r} needs torch and transformers ({error}); install the extra: "
            "pip install 'mars-envs[train]'"
        ) from error
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = HFPolicy.from_pretrained(place, device=device)
    policy.chat = bool(getattr(policy.tokenizer, "chat_template", None))
    return policy


def _of_policy(label: str, policy: Policy, temperature: float, seed: int) -> ReadingModel:
    from trainers.collect import request_seed
    from trainers.policies import GenerationFailed
    from trainers.rollout import Request, Sampling

    async def generate(prompt: str, *, max_tokens: int) -> str:
        generation = await policy.generate(
            Request(
                prompt=prompt,
                agent="reader_0",
                env_id="mars-envs read",
                task_id="",
                observation={},
                info={},
                sampling=Sampling(temperature=temperature, max_tokens=max_tokens),
                seed=request_seed(seed, prompt, 0, "reader_0"),
            )
        )
        return generation.text

    return ReadingModel(label=label, generate=generate, failures=(GenerationFailed,))

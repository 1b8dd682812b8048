"""A policy on a Hugging Face causal language model, batched by itself.

`generate` is asynchronous and takes one request; requests that wait together are answered together:
when the event loop has nothing else ready, everything that is waiting goes to the model as one
left-padded batch, in the order in which it arrived. Generation runs in one worker thread that all
policies of the process share, so two small models never compete for the same cores; requests that
arrive meanwhile form the next batch.

What a request gets does not depend on who shares its batch, float rounding apart: each row has its
own stream of uniforms, keyed by `request.seed`, turned into tokens by inversion.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ..errors import ConfigError, ModelNotFound
from ..rollout import Generation, Request
from .base import GenerationFailed
from .decoding import Row, decode_batch

_QUIET_PASSES = 2
"""Passes of the event loop without a new request after which it counts as idle."""
_WORKER: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hf-policy")
"""One for all policies: two small models on the same cores would only slow each other down."""


@dataclass(slots=True)
class _Waiting:
    request: Request
    prompt_ids: list[int]
    max_tokens: int
    future: asyncio.Future[Generation]


class HFPolicy:
    """Samples from a `transformers` causal language model.

    Args:
        name: the policy's name, stamped on its generations.
        model: any causal LM with a key-value cache. Trainers may update it in place between batches
            (and then raise `version`); it is put into eval mode while it generates.
        tokenizer: its tokenizer.
        device: where the model is moved to.
        max_batch: rows of one batch at most; memory grows with it.
        chat: whether prompts go through the tokenizer's chat template, as one user message.

    Raises:
        ConfigError: `chat` with a tokenizer that has no template, or `max_batch` below 1.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: Any,
        *,
        device: str | torch.device = "cpu",
        max_batch: int = 256,
        chat: bool = False,
    ) -> None:
        if max_batch < 1:
            raise ConfigError(f"max_batch must be at least 1, got {max_batch}")
        if chat and not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                f"policy {name!r}: chat=True needs a tokenizer with a chat template, and this one "
                "has none; use chat=False to send prompts as they are"
            )
        self.name = name
        self.version = 0
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.tokenizer = tokenizer
        self.max_batch = max_batch
        self.chat = chat
        self.stop_ids = _stop_ids(model, tokenizer)
        self.pad_id = _pad_id(tokenizer, self.stop_ids)
        self.max_length = _max_length(model)
        self._waiting: deque[_Waiting] = deque()
        self._server: asyncio.Task[None] | None = None

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path,
        *,
        name: str | None = None,
        device: str | torch.device = "cpu",
        max_batch: int = 256,
        chat: bool = False,
        local_files_only: bool = False,
    ) -> HFPolicy:
        """Load a model and its tokenizer from a folder, the local cache or the Hub.

        Args:
            path: a folder, or a name on the Hub such as "Qwen/Qwen3-0.6B".
            name: the policy's name; the last part of `path` by default.
            device: see the class.
            max_batch: see the class.
            chat: see the class.
            local_files_only: never ask the Hub; HF_HUB_OFFLINE=1 does the same for the process.

        Raises:
            ModelNotFound: nothing is there, or it is no causal language model.
        """
        is_folder = Path(path).is_dir()
        if not is_folder and (str(path).startswith((".", "/", "~")) or str(path).count("/") > 1):
            raise ModelNotFound(
                f"there is no model folder at {str(path)!r}; expected a folder written by "
                "`save_pretrained` (config.json, *.safetensors, tokenizer files)"
            )
        only_local = local_files_only or is_folder
        try:
            model = AutoModelForCausalLM.from_pretrained(path, local_files_only=only_local)
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=only_local)
        except (OSError, ValueError) as error:
            where = (
                "in this folder" if is_folder else "as a folder, in the local cache or on the Hub"
            )
            raise ModelNotFound(
                f"no causal language model with a tokenizer was found {where}: {str(path)!r}. "
                "Give a folder written by `save_pretrained`, or a Hub name that is cached or can "
                f"be downloaded (HF_HUB_OFFLINE must not be set for that). Cause: {error}"
            ) from error
        return cls(
            name if name is not None else Path(path).name,
            model,
            tokenizer,
            device=device,
            max_batch=max_batch,
            chat=chat,
        )

    def encode(self, prompt: str) -> list[int]:
        """The token ids that the model is asked with for `prompt`."""
        if self.chat:
            ids = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        else:
            ids = self.tokenizer(prompt)["input_ids"]
        return list(ids)

    async def generate(self, request: Request) -> Generation:
        """Answer one request, together with whatever else is waiting.

        A completion ends with the end token ("stop") or when `max_tokens`, or the model's context,
        is used up ("length"). `logprobs` are those of the sampling distribution; for greedy
        decoding (temperature 0) those of the model at temperature 1.

        Raises:
            GenerationFailed: the prompt is empty or leaves no room in the model's context.
        """
        prompt_ids = self.encode(request.prompt)
        room = self.max_length - len(prompt_ids)
        if not prompt_ids:
            raise GenerationFailed(f"policy {self.name!r}: the prompt has no tokens")
        if room < 1:
            raise GenerationFailed(
                f"policy {self.name!r}: the prompt has {len(prompt_ids)} tokens and the model's "
                f"context is {self.max_length}, which leaves no room to answer; shorten the prompt "
                "or use a model with a longer context"
            )
        if request.sampling.max_tokens < 1:
            raise GenerationFailed(
                f"max_tokens must be positive, got {request.sampling.max_tokens}"
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(
            request, prompt_ids, min(room, request.sampling.max_tokens), loop.create_future()
        )
        self._waiting.append(waiting)
        if self._server is None or self._server.done():
            self._server = loop.create_task(self._serve())
        return await waiting.future

    async def _serve(self) -> None:
        """Answer batch after batch until nobody waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            await self._until_idle()
            batch: list[_Waiting] = []
            try:
                answers = await loop.run_in_executor(_WORKER, self._answer_next, batch)
            except Exception as error:
                # A batch that failed as a whole fails for each of its members.
                for waiting in batch:
                    if not waiting.future.done():
                        waiting.future.set_exception(error)
            else:
                for waiting, answer in zip(batch, answers, strict=True):
                    if not waiting.future.done():
                        waiting.future.set_result(answer)

    async def _until_idle(self) -> None:
        """Let every task that is ready run, so that requests of one moment share a batch."""
        quiet = 0
        while quiet < _QUIET_PASSES:
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0

    def _answer_next(self, batch: list[_Waiting]) -> list[Generation]:
        """Take what is waiting now, up to a batch, into `batch`, and answer it."""
        while self._waiting and len(batch) < self.max_batch:
            waiting = self._waiting.popleft()
            if not waiting.future.done():  # else its asker has been cancelled
                batch.append(waiting)
        if not batch:
            return []
        version = self.version
        rows = [
            Row(
                prompt_ids=waiting.prompt_ids,
                max_tokens=waiting.max_tokens,
                temperature=waiting.request.sampling.temperature,
                seed=waiting.request.seed,
            )
            for waiting in batch
        ]
        completions = decode_batch(
            self.model, rows, stop_ids=self.stop_ids, pad_id=self.pad_id, device=self.device
        )
        return [
            Generation(
                text=self.tokenizer.decode(completion.ids, skip_special_tokens=True),
                prompt_ids=tuple(row.prompt_ids),
                completion_ids=completion.ids,
                logprobs=completion.logprobs,
                finish_reason="stop" if completion.stopped else "length",
                policy=self.name,
                policy_version=version,
            )
            for row, completion in zip(rows, completions, strict=True)
        ]


def _stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    ids: set[int] = set()
    for holder in (getattr(model, "generation_config", None), model.config, tokenizer):
        value = getattr(holder, "eos_token_id", None)
        if isinstance(value, int):
            ids.add(value)
        elif value is not None:
            ids.update(value)
    return frozenset(ids)


def _pad_id(tokenizer: Any, stop_ids: frozenset[int]) -> int:
    """Any id will do, padding being masked out; the tokenizer's own where it has one."""
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id)
    return min(stop_ids, default=0)


def _max_length(model: Any) -> int:
    config = model.config.get_text_config()
    return int(getattr(config, "max_position_embeddings", None) or 2**31)

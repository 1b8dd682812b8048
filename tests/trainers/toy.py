"""A toy world for trainer tests: a small tree environment and a language model of 2,000 weights.

Loaded by path (see `conftest.py`), so that tests in other processes can load it too.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.utils import seeding
from pettingzoo import AECEnv

from trainers import Generation, Request

ANSWERS = {"a": "w", "b": "x", "c": "y", "d": "z"}
VOCABULARY = "abcdwxyz01>$"  # "$" ends a completion
END = VOCABULARY.index("$")


class ToyTree(AECEnv):
    """Two coders grow a random tree; a node is right if it is the letter that the task means."""

    metadata = {"name": "toy_tree_v0", "supports_fail": True, "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, budget: int = 8, agents: tuple[str, ...] = ("coder_0", "coder_1")) -> None:
        self.possible_agents = list(agents)
        self.budget = budget
        self._np_random = np.random.default_rng(0)

    def observation_space(self, agent: str) -> Any:
        return gymnasium.spaces.Dict({"prompt": gymnasium.spaces.Text(8)})

    def action_space(self, agent: str) -> Any:
        return gymnasium.spaces.Text(8)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        self.task = (options or {}).get("task") or "abcd"[self._np_random.integers(4)]
        self.agents = list(self.possible_agents)
        self.nodes: list[tuple[str, int]] = []  # (text, parent)
        self.gone: set[str] = set()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._info(-2, -2, 0.0) for agent in self.agents}
        self._choose()

    def observe(self, agent: str) -> dict[str, str]:
        if self.parent < 0:
            return {"prompt": f"{self.task}>"}
        text, _ = self.nodes[self.parent]
        shown = text[:1] if text[:1] in ANSWERS.values() else ""
        return {"prompt": f"{self.task}{shown}{int(text[:1] == ANSWERS[self.task])}>"}

    def step(self, action: str | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            return self._was_dead_step(action)
        self._cumulative_rewards[agent] = 0.0
        reward = float((action or "")[:1] == ANSWERS[self.task])
        self.nodes.append((action or "", self.parent))
        self.rewards = {name: reward if name == agent else 0.0 for name in self.agents}
        self.infos = {name: self._info(-2, -2, 0.0) for name in self.agents}
        self.infos[agent] = self._info(len(self.nodes) - 1, self.parent, reward)
        self._accumulate_rewards()
        self._choose()
        return None

    def fail(self, agent: str, reason: str, permanent: bool = False) -> None:
        if permanent:
            self.gone.add(agent)
        self.infos = {name: self._info(-2, -2, 0.0) for name in self.agents}
        self._choose()

    def close(self) -> None:
        pass

    def _choose(self) -> None:
        able = [agent for agent in self.possible_agents if agent not in self.gone]
        if len(self.nodes) == self.budget or not able:
            self.terminations = dict.fromkeys(self.agents, True)
            self._deads_step_first()
            return
        self.agent_selection = able[self._np_random.integers(len(able))]
        self.parent = int(self._np_random.integers(-1, len(self.nodes)))

    def _info(self, node_id: int, parent: int, score: float) -> dict[str, Any]:
        return {
            "task_id": self.task,
            "node_id": node_id,
            "node_parent_id": parent,
            "score": score,
            "solved": score == 1.0,
        }


class ToyLM(torch.nn.Module):
    """A recurrent language model, which is causal and never looks at padding on its right."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embed = torch.nn.Embedding(len(VOCABULARY), 16)
            self.rnn = torch.nn.GRU(16, 24, batch_first=True)
            self.head = torch.nn.Linear(24, len(VOCABULARY))

    def forward(
        self, input_ids: torch.Tensor, attention_mask: Any = None, position_ids: Any = None
    ) -> SimpleNamespace:
        return SimpleNamespace(logits=self.head(self.rnn(self.embed(input_ids))[0]))


class ToyPolicy:
    """Samples from a `ToyLM`, one request at a time, from the request's own seed."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.version = 0
        self.model = ToyLM(seed)
        self.pad_id = END

    async def generate(self, request: Request) -> Generation:
        await asyncio.sleep(0)
        prompt_ids = [VOCABULARY.index(char) for char in request.prompt]
        generator = torch.Generator().manual_seed(request.seed)
        ids: list[int] = []
        logprobs: list[float] = []
        with torch.no_grad():
            while len(ids) < request.sampling.max_tokens and END not in ids:
                logits = self.model(torch.tensor([prompt_ids + ids])).logits[0, -1]
                log_softmax = torch.log_softmax(logits / request.sampling.temperature, -1)
                token = int(torch.multinomial(log_softmax.exp(), 1, generator=generator))
                ids.append(token)
                logprobs.append(float(log_softmax[token]))
        return Generation(
            text="".join(VOCABULARY[token] for token in ids if token != END),
            prompt_ids=tuple(prompt_ids),
            completion_ids=tuple(ids),
            logprobs=tuple(logprobs),
            finish_reason="stop" if END in ids else "length",
            policy=self.name,
            policy_version=self.version,
        )

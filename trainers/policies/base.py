"""What a policy is, for the collector: something that answers requests."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..errors import TrainersError
from ..rollout import Generation, Request


class GenerationFailed(TrainersError):
    """This request will not be answered; the collector tells the environment, which goes on."""


class PolicyExhausted(GenerationFailed):
    """The policy has nothing left to say in this episode (say, no recording is left to replay)."""


@runtime_checkable
class Policy(Protocol):
    """Answers requests, many at a time."""

    name: str
    version: int
    """Grows by one with every update of the weights; stamped on every generation."""

    async def generate(self, request: Request) -> Generation:
        """Answer one request.

        Raises:
            GenerationFailed: this request cannot be answered.
            PolicyExhausted: nor any other in this episode.
        """
        ...

"""The network as somebody who speaks: from prompts to replies in the grammar of each role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from mars_envs.parallel_memory.replies import Answer, Merge, Read

from .encoding import MEMORY, ROLES, Encoded, encode
from .model import Batch, Reader
from .spans import best_span, best_spans
from .words import Vocabulary

UNKNOWN: Final = "unknown"
"""The answer of who does not know."""
PRICE: Final = 2.0
"""Of each span of a reply, in nats: a piece is copied for its own sake if it is worth more."""


class Learned:
    """A trained network that replies to compact prompts, the likeliest reply to each.

    Args:
        model: the network.
        vocabulary: what it was trained with.
        batch: prompts that go through the network together. Replies hardly depend on it: only as
            far as sums of floats depend on padding.
    """

    def __init__(self, model: Reader, vocabulary: Vocabulary, *, batch: int = 64) -> None:
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.batch = batch

    def __call__(self, view: Mapping[str, Any]) -> str:
        """Reply to one observation."""
        return self.replies([view["prompt"]])[0]

    def replies(self, prompts: Sequence[str]) -> list[str]:
        """Reply to many prompts, whatever the role of each."""
        encoded = [encode(prompt, self.vocabulary) for prompt in prompts]
        result = [""] * len(prompts)
        # Prompts of like length go together, which spares padding.
        order = sorted(range(len(prompts)), key=lambda place: len(encoded[place]))
        for start in range(0, len(order), self.batch):
            places = order[start : start + self.batch]
            with torch.inference_mode():
                yes, copy = self.model(Batch.of([encoded[place] for place in places]))
            for place, sure, scores in zip(places, yes.tolist(), copy.numpy(), strict=True):
                prompt = encoded[place]
                result[place] = say(prompt, sure > 0, scores[: len(prompt)])
        return result


def say(prompt: Encoded, yes: bool, scores: NDArray[np.float32]) -> str:
    """Put into words what the network wants to say.

    Args:
        prompt: what it was asked.
        yes: a reader: whether there is anything new; an answerer: whether it knows.
        scores: [tokens], log odds of copying each.
    """
    role = ROLES[prompt.role]
    if role in ("read", "answer") and not yes:
        return Read.no() if role == "read" else Answer(UNKNOWN)
    allowed = np.where(prompt.copied, scores, -np.inf).tolist()
    spans = [] if role == "answer" else best_spans(allowed, price=PRICE)
    if not spans and role in ("read", "answer"):
        best = best_span(allowed)
        spans = [best] if best else []
    # What is remembered comes before what is new, as in the memories that were taught.
    spans.sort(key=lambda span: prompt.part[span[0]] != MEMORY)
    text = " ".join(prompt.text[prompt.spans[a, 0] : prompt.spans[b - 1, 1]] for a, b in spans)
    if role == "read":
        return Read.yes(text)
    return Answer(text or UNKNOWN) if role == "answer" else Merge(text)

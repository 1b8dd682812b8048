"""Fines for answers that come close to the token limit (DAPO, arXiv 2503.14476, soft overlong)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .relations import Floats, vector


def overlong_penalty(
    lengths: ArrayLike, *, max_tokens: int, buffer: int | None = None, factor: float = 1.0
) -> Floats:
    """Penalise completions that come close to the limit, linearly over the last `buffer` tokens.

    Args:
        lengths: [N], tokens of each completion.
        max_tokens: the limit, where the penalty is `-factor`.
        buffer: where it begins, in tokens before the limit; a sixteenth of the limit by default.
        factor: the largest penalty.

    Returns:
        [N], from `-factor` to 0.

    Raises:
        ValueError: a buffer of no tokens, or longer than the limit; a length that is not known.
    """
    buffer = max(1, max_tokens // 16) if buffer is None else buffer
    if not 0 < buffer <= max_tokens:
        raise ValueError(f"expected a buffer between 1 and {max_tokens} tokens, got {buffer}")
    known = vector(lengths, "lengths")
    if np.isnan(known).any():
        raise ValueError("expected the length of every completion, got NaN; 0 for none")
    over = known - (max_tokens - buffer)
    return -factor * np.clip(over, 0, buffer) / buffer

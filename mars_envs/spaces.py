"""The space of texts: what language models read and write.

Gymnasium's `Text` enumerates a charset, and its default one holds no space, no newline and no
accent. `UnicodeText` decides membership without a charset. It cannot be flattened to a fixed box or
put in shared memory; both say so instead of silently reinterpreting characters.
"""

from __future__ import annotations

import re
import string
from typing import Any, NoReturn

import numpy as np
from gymnasium.spaces import Text, flatten, flatten_space
from gymnasium.vector.utils import create_shared_memory

TEXT_LIMIT = 2**20
"""Longest text, in characters, of the spaces in this package: a safety bound, not a budget."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_SAMPLE_CHARACTERS = string.ascii_letters + string.digits + " \n.,:;()+-*/=éß漢字🙂"


class UnicodeText(Text):
    r"""Every string of bounded length that UTF-8 can encode, the empty one included.

    Args:
        max_length: longest member, in characters.
        min_length: shortest member, in characters.
        sample_length: longest sample, in characters; samples are short, whatever the bound.
        seed: of the samples.

    Example:
        >>> space = UnicodeText(10)
        >>> "héllo\n" in space, "\ud800" in space
        (True, False)
        >>> space
        UnicodeText(0, 10)
    """

    def __init__(
        self,
        max_length: int = TEXT_LIMIT,
        *,
        min_length: int = 0,
        sample_length: int = 32,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(max_length, min_length=min_length, charset=_SAMPLE_CHARACTERS, seed=seed)
        self._sample_length = max(min_length, min(sample_length, max_length))

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string of this space; quick even for megabytes."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        # A lone surrogate would crash tokenizers and JSON writers later on.
        return x.isascii() or _SURROGATES.search(x) is None

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a short text. Masks are those of `Text`: `(length, character mask)`."""
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        length = int(self.np_random.integers(self.min_length, self._sample_length + 1))
        picks = self.np_random.integers(len(self.character_list), size=length)
        return "".join(self.character_list[pick] for pick in picks)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text has no fixed shape."""
        return False

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    __hash__ = None  # type: ignore[assignment]  # as in every Gymnasium space


def replace_surrogates(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD, so that UTF-8 can encode it."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


@flatten.register(UnicodeText)
@flatten_space.register(UnicodeText)
def _not_flattenable(  # type: ignore[misc]  # the fallback is generic in the member type
    space: UnicodeText, *_: Any
) -> NoReturn:
    raise TypeError(
        f"{space!r} cannot be flattened: a text has no fixed shape. Keep the observation a Dict, "
        "or take its text with TransformObservation"
    )


@create_shared_memory.register(UnicodeText)
def _no_shared_memory(space: UnicodeText, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        f"{space!r} cannot live in shared memory; make the vector environment with "
        "vector_kwargs={'shared_memory': False}"
    )

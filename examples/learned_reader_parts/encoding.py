"""From a compact prompt to what the network reads: numbers for its words.

    q who is the rival of the heir of Vamorib ?       the question
    c rival of Tiskela is Oreluna . ...               the chunk
    m heir of Vamorib is Tiskela .                    the memory
    read                                              what to do

A name that was never met has no embedding of its own, and needs none: it is a name, and it is the
same name as elsewhere in the prompt. So every token carries, besides its id in a small vocabulary,
a number that equal words share (`kin`). The network is told which tokens are equal and nothing else
about a name, hence it reads the held-out names exactly as it reads those of its training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .words import WORD, Vocabulary, shape_of

PARTS: Final = ("q", "m", "c", "n", "task")
"""The key at the head of a line says which part of the prompt it is."""
MEMORY: Final = PARTS.index("m")
_QUESTION, _TASK = PARTS.index("q"), PARTS.index("task")
ROLES: Final = ("read", "merge", "answer", "update")
"""What the last line asks for."""
_STOPS: Final = frozenset(".?!")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A prompt of `n` tokens."""

    text: str
    role: int
    """An index of `ROLES`."""
    ids: NDArray[np.int64]
    """[n]."""
    kin: NDArray[np.int64]
    """[n]; equal words of this prompt, whatever their case, have equal numbers; marks are alone."""
    part: NDArray[np.int64]
    """[n]; the part of the prompt, an index of `PARTS`."""
    sentence: NDArray[np.int64]
    """[n]; counts the sentences of the prompt."""
    copied: NDArray[np.bool_]
    """[n]; whether the token can be copied: it stands in the memory, the chunk or a note."""
    spans: NDArray[np.int64]
    """[n, 2]; characters of each token in `text`."""

    def __len__(self) -> int:
        return len(self.ids)

    def words(self) -> list[str]:
        """Return the tokens, in lower case."""
        return [self.text[start:end].lower() for start, end in self.spans]


def encode(prompt: str, vocabulary: Vocabulary) -> Encoded:
    """Return a compact prompt as numbers.

    Raises:
        ValueError: the last line asks for nothing that is known, or another has no key.
    """
    lines = prompt.split("\n")
    if lines[-1] not in ROLES:
        raise ValueError(f"expected a prompt that ends in one of {ROLES}, got {lines[-1]!r}")
    ids: list[int] = []
    kin: list[int] = []
    rows: list[tuple[int, int, bool, int, int]] = []
    numbers: dict[str, int] = {}
    start, sentence = 0, 0
    for line in lines:
        key = line.partition(" ")[0]
        part = _TASK if key in ROLES else PARTS.index(key)
        sentence += 1
        for place, match in enumerate(WORD.finditer(line)):
            word = match.group()
            ids.append(vocabulary.id_of(word))
            mark = shape_of(word) == "<mark>"
            kin.append(numbers.setdefault(f"{len(ids)} {word}" if mark else word.lower(), len(kin)))
            copied = place > 0 and part not in (_QUESTION, _TASK)
            rows.append((part, sentence, copied, start + match.start(), start + match.end()))
            sentence += word in _STOPS
        start += len(line) + 1
    table = np.array(rows)
    return Encoded(
        text=prompt,
        role=ROLES.index(lines[-1]),
        ids=np.array(ids),
        kin=np.array(kin),
        part=table[:, 0],
        sentence=table[:, 1],
        copied=table[:, 2].astype(bool),
        spans=table[:, 3:],
    )

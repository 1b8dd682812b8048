"""Passages of the grammar without end, for whoever needs harmless text by the piece."""

from __future__ import annotations

from .filler import BLOCK, Filler, Layout
from .names import Names, Numbers
from .topics import RELATIONS


class FillerPassages:
    """Pairs of title and text by number, each title once; see `filler_passages`."""

    def __init__(self, seed: str) -> None:
        names = Names("train")
        sentences = len(RELATIONS.attributes)
        self._filler = Filler(
            seed=f"passages|{seed}",
            layout=Layout(RELATIONS, "prose", held_out=False, sentences=sentences),
            names=names,
            numbers=Numbers(),
            taken_names=names.barred,
            taken_numbers=(),
        )

    def __getitem__(self, number: int) -> tuple[str, str]:
        if number < 0:
            raise IndexError(f"passages are counted from 0, got {number}")
        block, nth = divmod(number, BLOCK)
        (text,) = self._filler.render(block, nth, nth + 1)
        title, _, body = text.partition("\n")
        return title, body.strip()


def filler_passages(seed: str) -> FillerPassages:
    """Return passages of about 120 words each, of names that nobody has.

    Args:
        seed: passages of another seed are others.

    Example:
        >>> title, text = filler_passages("0")[7]
        >>> title in text
        True
    """
    return FillerPassages(seed)

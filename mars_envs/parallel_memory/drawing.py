"""A reading episode as a picture: turns from top to bottom, the document from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..canvas import HEIGHT, INK, WIDTH, blank
from .episode import Episode
from .tally import Tally, TurnTally

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 40, 40
_ROW = 60
_BLANK = (235, 235, 235)
_LEGEND = {
    "read": (170, 185, 200),
    "failed": (214, 39, 40),
    "found": (255, 127, 14),
    "found, gold": (44, 160, 44),
}
"""What is drawn later wins where chunks are narrower than a pixel."""


def memory_to_image(episode: Episode) -> NDArray[np.uint8]:
    """Draw each turn as a row, each chunk as a cell of it; a black mark below: evidence is there.

    Args:
        episode: what to draw.

    Returns:
        [HEIGHT, WIDTH, 3], red, green and blue.

    Raises:
        ImportError: there is no Pillow.
    """
    image, draw = blank()
    workflow, tally = episode.workflow, episode.tally
    chunks = max(1, workflow.n_chunks)
    rows = max(1, workflow.max_turns)
    height = min(_ROW, (HEIGHT - _TOP - _BOTTOM) / rows)
    _draw_legend(draw)
    for number in range(1, rows + 1):
        top = _TOP + (number - 1) * height
        if height >= 10:
            draw.text((_LEFT - 8, top + height / 2), str(number), fill=INK, anchor="rm")
        draw.rectangle((_LEFT, top, WIDTH - _RIGHT, top + 0.75 * height), fill=_BLANK)
        if number in tally.turns:
            _draw_turn(draw, tally.turns[number], tally, chunks, top, 0.75 * height)
    for chunk in tally.gold or ():
        left, right = _cell(chunk, chunks)
        below = _TOP + rows * height
        draw.rectangle((left, below, right, below + 6), fill=INK)
    status = f"{workflow.phase.name.lower()}, turn {workflow.turn} of {workflow.max_turns}"
    draw.text((_LEFT, HEIGHT - _BOTTOM / 2), f"{status}, {tally.calls} calls", fill=INK)
    return np.asarray(image)


def _draw_turn(
    draw: ImageDraw, turn: TurnTally, tally: Tally, chunks: int, top: float, height: float
) -> None:
    gold = tally.gold or frozenset()
    layers = (turn.read, turn.failed, turn.found, turn.found & gold)
    for colour, layer in zip(_LEGEND.values(), layers, strict=True):
        for chunk in layer:
            left, right = _cell(chunk, chunks)
            draw.rectangle((left, top, right, top + height), fill=colour)


def _cell(chunk: int, chunks: int) -> tuple[float, float]:
    """Return the pixels of a chunk's column, at least one, with a gap where there is room."""
    step = (WIDTH - _LEFT - _RIGHT) / chunks
    left = _LEFT + chunk * step
    return left, left + max(1.0, step - (1 if step > 3 else 0))


def _draw_legend(draw: ImageDraw) -> None:
    x, y = float(_LEFT), _TOP / 2
    for name, colour in _LEGEND.items():
        draw.rectangle((x, y - 5, x + 10, y + 5), fill=colour)
        draw.text((x + 16, y), name, fill=INK, anchor="lm")
        x += 32 + draw.textlength(name)

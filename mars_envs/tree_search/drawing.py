"""A search tree as a picture: who refined what, and how good it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..canvas import HEIGHT, INK, PAPER, WIDTH, blank
from .tree import ROOT, Node, SearchTree

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_MARGIN, _LEGEND = 28, 30
_RADIUS = 13.0
_GREY, _RIGHT = (150, 150, 150), (20, 130, 40)
_COLOURS = (
    (31, 119, 180),
    (255, 127, 14),
    (148, 103, 189),
    (214, 39, 40),
    (140, 86, 75),
    (227, 119, 194),
    (188, 189, 34),
    (23, 190, 207),
)
"""One for each agent, from the start again where there are more."""

Point = tuple[float, float]


def tree_to_image(
    tree: SearchTree, agents: Sequence[str], *, best: Node | None = None
) -> NDArray[np.uint8]:
    """Draw the tree, the root on top, each node below its parent.

    A node is a disc in its agent's colour, the fuller the higher its public score and the larger
    the more nodes lie below it, with its id inside where there is room. A green ring: solved. A
    black ring: the answer.

    Args:
        tree: what to draw.
        agents: their names, for the legend; every author of a node is one of them.
        best: the answer; None: the node of the best public score, of equals the latest.

    Returns:
        [HEIGHT, WIDTH, 3], red, green and blue.

    Raises:
        ImportError: there is no Pillow.
    """
    image, draw = blank()
    colours = {agent: _COLOURS[i % len(_COLOURS)] for i, agent in enumerate(agents)}
    _draw_legend(draw, colours)
    places, room = _places(tree)
    smallest = max(2.0, min(_RADIUS, 0.36 * room))
    for node in tree:
        draw.line([places[node.parent_id], places[node.id]], fill=_GREY, width=1)
    _disc(draw, places[ROOT], smallest / 2, fill=INK)
    best = best or tree.best
    for node in tree:
        radius = smallest * (1 + 0.3 * math.sqrt(tree.descendants(node.id) / len(tree)))
        _draw_node(draw, node, places[node.id], radius, colours[node.agent], node is best)
    return np.asarray(image)


def _draw_node(
    draw: ImageDraw, node: Node, place: Point, radius: float, colour: Any, is_best: bool
) -> None:
    if is_best:
        _disc(draw, place, radius + 5, fill=INK)
        _disc(draw, place, radius + 4, fill=PAPER)
    if node.solved:
        _disc(draw, place, radius + 3, fill=_RIGHT)
    _disc(draw, place, radius, fill=colour)
    # The part of the disc that is missing is what the public score is short of.
    x, y = place
    if node.score < 1.0:
        _disc(draw, place, radius - 1, fill=PAPER)
    if 0.0 < node.score < 1.0:
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.pieslice(box, -90, -90 + 360 * node.score, fill=colour)
    if radius >= 9:
        ink = PAPER if node.score >= 1.0 else INK
        draw.text(place, str(node.id), fill=ink, anchor="mm")


def _draw_legend(draw: ImageDraw, colours: dict[str, tuple[int, int, int]]) -> None:
    x, y = float(_MARGIN), HEIGHT - _LEGEND / 2
    for agent, colour in colours.items():
        _disc(draw, (x, y), 6, fill=colour)
        draw.text((x + 12, y), agent, fill=INK, anchor="lm")
        x += 28 + draw.textlength(agent)


def _disc(draw: ImageDraw, place: Point, radius: float, *, fill: tuple[int, int, int]) -> None:
    x, y = place
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def _places(tree: SearchTree) -> tuple[dict[int, Point], float]:
    """Return where each node and the root stand, and the pixels between neighbours."""
    column: dict[int, float] = {}
    leaves = 0
    # Leaves from left to right, then every parent over the middle of its children. A stack, and
    # ids, which grow downwards: trees may be deeper than Python's recursion.
    stack = [ROOT]
    while stack:
        node_id = stack.pop()
        children = tree.children(node_id)
        if children:
            stack += [child.id for child in reversed(children)]
        else:
            column[node_id] = leaves
            leaves += 1
    for node_id in range(len(tree) - 1, ROOT - 1, -1):
        if node_id not in column:
            inner = [column[child.id] for child in tree.children(node_id)]
            column[node_id] = (inner[0] + inner[-1]) / 2
    depth = max((node.depth for node in tree), default=0)
    across = (WIDTH - 2 * _MARGIN) / max(leaves - 1, 1)
    down = (HEIGHT - _LEGEND - 2 * _MARGIN) / max(depth, 1)
    left = _MARGIN if leaves > 1 else WIDTH / 2
    places = {
        node_id: (left + across * column[node_id], _MARGIN + down * tree.depth(node_id))
        for node_id in range(ROOT, len(tree))
    }
    return places, min(across, down)

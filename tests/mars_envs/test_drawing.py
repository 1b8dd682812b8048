"""The search tree as a picture, read pixel by pixel."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mars_envs.tree_search import ROOT, SearchTree, TreeControlEnv
from mars_envs.tree_search.drawing import tree_to_image
from mars_envs.tree_search.tree import verdict_of_score

BLUE, ORANGE, GREEN = (31, 119, 180), (255, 127, 14), (20, 130, 40)
LEGEND = 450


def pixels(image: np.ndarray, colour: tuple[int, int, int]) -> int:
    """Count the pixels of a colour above the legend."""
    return int((image[:LEGEND] == colour).all(axis=-1).sum())


def one(score: float, agent: str = "a") -> np.ndarray:
    tree = SearchTree()
    tree.add(ROOT, agent, verdict_of_score(score))
    return tree_to_image(tree, ["a", "b"])


def test_every_picture_has_one_size() -> None:
    tree = SearchTree()
    sizes = {tree_to_image(tree, ["a"]).shape}
    for parent in range(-1, 299):  # deeper than wide, and than a stack of small frames likes
        tree.add(parent, "a", verdict_of_score(0.5))
    sizes.add(tree_to_image(tree, ["a"]).shape)
    assert sizes == {(480, 640, 3)}


def test_a_disc_has_its_agent_s_colour_and_is_as_full_as_the_score() -> None:
    assert pixels(one(1.0), ORANGE) == 0
    assert pixels(one(1.0, "b"), BLUE) == 0
    rim, half, full = (pixels(one(score), BLUE) for score in (0.0, 0.5, 1.0))
    # The id stands inside, so an area is not exact.
    assert (half - rim) / (full - rim) == pytest.approx(0.5, abs=0.1)


def test_what_is_solved_has_a_green_ring() -> None:
    assert pixels(one(0.5), GREEN) == 0
    assert pixels(one(1.0), GREEN) > 50


def test_a_node_stands_below_its_parent_and_siblings_side_by_side() -> None:
    tree = SearchTree()
    for parent, agent in ((ROOT, "a"), (0, "b"), (ROOT, "c")):
        tree.add(parent, agent, verdict_of_score(0.99))
    image = tree_to_image(tree, ["a", "b", "c"])[:LEGEND]
    middles = []
    for colour in (BLUE, ORANGE, (148, 103, 189)):
        rows, columns = np.nonzero((image == colour).all(axis=-1))
        middles.append((columns.mean(), rows.mean()))
    (ax, ay), (bx, by), (cx, cy) = middles
    assert by > ay + 100
    assert (ay, ax) == (pytest.approx(cy, abs=3), pytest.approx(bx, abs=3))
    assert cx > ax + 100


def test_the_environment_gives_the_picture_of_its_tree() -> None:
    env = TreeControlEnv(budget=2, render_mode="rgb_array")
    env.reset(seed=0)
    env.step(0)
    frame = env.render()
    assert isinstance(frame, np.ndarray)
    assert frame.dtype == np.uint8
    assert np.array_equal(frame, tree_to_image(env.tree, env.agents))


def test_without_pillow_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"mars-envs\[render\]"):
        one(0.5)

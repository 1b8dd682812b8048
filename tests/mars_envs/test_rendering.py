"""Trees as text."""

from __future__ import annotations

import dataclasses
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from mars_envs import ParallelTreeSearchEnv, TreeSearchEnv
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import ROOT, SearchTree, tree_to_html, tree_to_text
from mars_envs.tree_search.tree import verdict_of_score


def small_tree() -> SearchTree:
    tree = SearchTree()
    for parent, agent, score, program in (
        (ROOT, "coder_0", 0.0, "\n\nx = 1\nprint(x)"),
        (0, "coder_1", 1.0, "print(2)"),
        (ROOT, "coder_1", 0.5, ""),
        (1, "coder_0", 0.5, "print('\x1b[31m\t')"),
    ):
        verdict = dataclasses.replace(verdict_of_score(score), program=program)
        tree.add(parent, agent, verdict, reply="a reply")
    return tree


def test_each_node_is_one_line_below_its_parent() -> None:
    assert tree_to_text(small_tree()).splitlines() == [
        "task",
        "├─ 0  coder_0  0.00  wrong_answer  x = 1",
        "│  └─ 1  coder_1  1.00  accepted  solved  best  print(2)",
        "│     └─ 3  coder_0  0.50  wrong_answer  print(' [31m ')",
        "└─ 2  coder_1  0.50  wrong_answer  a reply",
    ]


def test_programs_can_be_shown_whole() -> None:
    assert tree_to_text(small_tree(), programs=True).splitlines() == [
        "task",
        "├─ 0  coder_0  0.00  wrong_answer",
        "│  │    x = 1",
        "│  │    print(x)",
        "│  └─ 1  coder_1  1.00  accepted  solved  best",
        "│     │    print(2)",
        "│     └─ 3  coder_0  0.50  wrong_answer",
        "│             print(' [31m    ')",
        "└─ 2  coder_1  0.50  wrong_answer",
        "        a reply",
    ]


def test_long_lines_are_cut() -> None:
    tree = SearchTree()
    tree.add(ROOT, "a", verdict_of_score(0.0), "x" * 100)
    assert tree_to_text(tree).endswith("x" * 59 + "…")


def test_an_empty_tree_is_the_task_alone() -> None:
    assert tree_to_text(SearchTree()) == "task"


def test_a_deep_tree_can_be_shown() -> None:
    tree = SearchTree()
    for index in range(1500):
        tree.add(index - 1, "a", verdict_of_score(0.0), "x")
    assert len(tree_to_text(tree).splitlines()) == 1501


def test_ansi_returns_and_human_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for mode in ("ansi", "human"):
        env = TreeSearchEnv(tasks=stub_tasks(), judge=StubJudge(), render_mode=mode)
        env.reset(seed=0)
        env.step("print(1)")
        shown.append(env.render())
    assert shown[0] is not None
    assert shown[0].startswith("stub/")
    assert "0  coder_" in shown[0]
    assert shown[1] is None
    assert capsys.readouterr().out == shown[0] + "\n"


def test_rendering_without_a_mode_warns() -> None:
    env = TreeSearchEnv(tasks=stub_tasks(), judge=StubJudge())
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="the environment has no render_mode"):
        assert env.render() is None


@pytest.mark.parametrize("kind", [TreeSearchEnv, ParallelTreeSearchEnv])
def test_a_picture_shows_the_tree_as_it_grows(kind: Any) -> None:
    env = kind(tasks=stub_tasks(), judge=StubJudge(), render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.step("print(1)" if kind is TreeSearchEnv else dict.fromkeys(env.agents, "print(1)"))
    second = env.render()
    assert (first.dtype, first.shape) == (np.uint8, (480, 640, 3))
    assert second.shape == first.shape
    assert (first != second).any()


def test_a_missing_pillow_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    env = TreeSearchEnv(tasks=stub_tasks(), judge=StubJudge(), render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ImportError, match=r"pip install 'mars-envs\[render\]'"):
        env.render()


class Page(HTMLParser):
    """Collects what a browser would show, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


def test_a_page_shows_every_answer() -> None:
    page = read_page(tree_to_html(small_tree(), title="two numbers", statement="Add them."))
    assert page.tags.count("details") == 4
    assert page.text.count("a reply") == 4
    assert "4 nodes, 1 solved, depth 3." in page.text
    assert "Add them." in page.text


def test_nothing_that_an_agent_writes_becomes_markup() -> None:
    tree = SearchTree()
    evil = "</pre><script>alert(1)</script><img src=x onerror=y> \ud800 \x00 &amp;"
    tree.add(ROOT, "<b>coder_0</b>", verdict_of_score(0.0), evil)
    html = tree_to_html(tree, title="<i>", statement="<u>")
    page = read_page(html)
    assert {"script", "img", "b", "i", "u"} & set(page.tags) == {"b"}  # the node's own number
    assert page.tags.count("b") == 1
    assert "<script>alert(1)</script>" in page.text
    assert "&amp;" in page.text
    html.encode()


def test_a_deep_tree_is_a_page_without_deep_nesting() -> None:
    tree = SearchTree()
    for index in range(1500):
        tree.add(index - 1, "a", verdict_of_score(0.0), "x")
    assert read_page(tree_to_html(tree)).tags.count("details") == 1500

"""Trees as text."""

from __future__ import annotations

import dataclasses

import pytest

from mars_envs import TreeSearchEnv
from mars_envs.testing import StubJudge, stub_tasks
from mars_envs.tree_search import ROOT, SearchTree, tree_to_text
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

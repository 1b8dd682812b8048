"""Test-output agreement as a reward model."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.errors import InvalidSetting
from mars_envs.judging import CodeJudge, Verdict
from mars_envs.tasks import CodeTask, ExpectedCase, Probe
from mars_envs.tree_search.consensus import agreement, clusters, resolve_score_fn
from mars_envs.tree_search.final import final_answer
from mars_envs.tree_search.search import TreeSearch
from mars_envs.tree_search.tree import ROOT, Node, SearchTree, verdict_of_score

TASK = CodeTask(task_id="t", statement="?", public=(ExpectedCase(name="p", input="", expected=""),))


def verdict(score: float, behaviour: str) -> Verdict:
    """A verdict of a program that behaves in a way named by a word; no word: not known."""
    passed = round(2 * score)
    base = replace(verdict_of_score(score), public_passed=passed, public_total=2)
    return replace(base, signature=(behaviour, str(passed)) if behaviour else ())


def grow(*nodes: tuple[float, str]) -> SearchTree:
    tree = SearchTree()
    for score, behaviour in nodes:
        tree.add(ROOT, "coder_0", verdict(score, behaviour))
    return tree


def naive(nodes: Sequence[Node], node: Node) -> float:
    """The definition, word by word."""
    others = [other for other in nodes if other.id != node.id and other.verdict.signature]
    if not others or not node.verdict.signature or node.verdict.public_passed == 0:
        return 0.0
    same = [other for other in others if other.verdict.signature == node.verdict.signature]
    return len(same) / len(others)


behaviours = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from(["", "a", "b", "c"])), max_size=12
)


@given(behaviours)
def test_agreement_is_the_share_of_the_others_that_behave_alike(
    nodes: list[tuple[float, str]],
) -> None:
    tree = grow(*nodes)
    assert [agreement(tree, node) for node in tree] == [naive(list(tree), node) for node in tree]


def test_a_node_that_is_not_yet_in_the_tree_is_compared_with_all_that_are() -> None:
    tree = grow((1.0, "a"), (1.0, "a"), (1.0, "b"), (1.0, ""))
    assert agreement(tree, tree.draft(ROOT, "coder_0", verdict(1.0, "a"))) == 2 / 3


@given(behaviours)
def test_looking_among_equal_scores_only_gives_the_same_order(
    nodes: list[tuple[float, str]],
) -> None:
    tree = grow(*nodes)
    for score in (0.5, 1.0):
        equals = [node for node in tree if node.score == score]
        wide = sorted(equals, key=lambda node: (agreement(tree, node), node.id))
        narrow = sorted(equals, key=lambda node: (naive(equals, node), node.id))
        assert wide == narrow


@given(behaviours)
def test_clusters_split_the_nodes_of_known_behaviour(nodes: list[tuple[float, str]]) -> None:
    tree = grow(*nodes)
    groups = clusters(tree)
    known = [node.id for node in tree if node.verdict.signature]
    assert sorted(node.id for group in groups for node in group) == known
    assert [len(group) for group in groups] == sorted(map(len, groups), reverse=True)
    for group in groups:
        assert len({node.verdict.signature for node in group}) == 1
    signatures = [group[0].verdict.signature for group in groups]
    assert len(set(signatures)) == len(signatures)


def test_clusters_of_one_score_leave_the_others_out() -> None:
    tree = grow((0.5, "a"), (1.0, "b"), (1.0, "b"), (1.0, "c"))
    assert [[node.id for node in group] for group in clusters(tree, score=1.0)] == [[1, 2], [3]]


def test_among_nodes_that_pass_the_public_tests_the_majority_is_handed_in() -> None:
    tree = grow((1.0, "right"), (1.0, "wrong"), (1.0, "right"), (0.0, "bad"), (1.0, "other"))
    latest = final_answer(tree)
    chosen = final_answer(tree, agreement)
    assert latest is not None
    assert chosen is not None
    assert (latest.id, chosen.id) == (4, 2)


def test_no_majority_outweighs_the_public_score() -> None:
    chosen = final_answer(grow((0.5, "a"), (0.5, "a"), (1.0, "b")), agreement)
    assert chosen is not None
    assert chosen.id == 2


@pytest.mark.parametrize("right", [0.35, 0.5])
def test_with_few_public_tests_the_majority_beats_the_latest_node(right: float) -> None:
    # Independent answers, all past the public tests: right with probability `right`, else wrong in
    # one of 8 ways. The latest node is right at that rate; the largest group nearly always.
    rng = np.random.default_rng(0)
    trees, hits = 400, {"latest": 0, "majority": 0}
    for _ in range(trees):
        seed = int(rng.integers(1 << 30))
        search = TreeSearch(["coder_0"], budget=12, seed=seed, score_fn=agreement)
        while not search.done:
            for expansion in search.ask():
                good = rng.random() < right
                behaviour = "right" if good else f"wrong {rng.integers(8)}"
                search.tell(expansion.id, verdict(1.0, behaviour))
        latest = final_answer(search.tree)
        assert latest is not None
        assert search.answer is not None
        hits["latest"] += latest.verdict.signature[0] == "right"
        hits["majority"] += search.answer.verdict.signature[0] == "right"
    error = math.sqrt(right * (1 - right) / trees)
    assert abs(hits["latest"] / trees - right) < 4 * error
    assert hits["majority"] / trees > right + 12 * error


def of_the_agent(task: CodeTask, tree: SearchTree, node: Node) -> float:
    """A reward model of one's own."""
    return float(node.agent == "coder_1" and task is TASK)


def test_a_reward_model_may_be_named_given_or_imported() -> None:
    tree = grow((1.0, "a"), (1.0, "a"))
    named = resolve_score_fn("agreement")
    assert named is not None
    assert named(TASK, tree, tree[0]) == named.of(TASK)(tree, tree[0]) == 1.0
    node = tree.add(ROOT, "coder_1", verdict(1.0, "a"))
    for source in (of_the_agent, f"{__name__}:of_the_agent"):
        model = resolve_score_fn(source)
        assert model is not None
        assert [model(TASK, tree, each) for each in (tree[0], node)] == [0.0, 1.0]
    assert resolve_score_fn(None) is None


@pytest.mark.parametrize("source", ["agreement", of_the_agent])
def test_a_reward_model_survives_copies_and_pickles(source: str) -> None:
    model = resolve_score_fn(source)
    assert copy.deepcopy(model) is model
    again = pickle.loads(pickle.dumps(model))
    assert again.source == source
    assert again(TASK, grow((1.0, "a")), grow((1.0, "a"))[0]) == 0.0


@pytest.mark.parametrize("source", ["agree", "no.such:thing", "math:no_such", "math:pi", 3])
def test_what_is_no_reward_model_is_refused_at_once(source: str) -> None:
    with pytest.raises(InvalidSetting, match="score_fn"):
        resolve_score_fn(source)


@pytest.mark.parametrize("said", [math.nan, math.inf, -0.1, 1.01, None, "0.5", [0.5], 2 + 0j])
def test_an_answer_that_is_no_share_is_refused_with_its_node(said: object) -> None:
    model = resolve_score_fn(lambda task, tree, node: said)  # type: ignore[arg-type,return-value]
    tree = grow((1.0, "a"))
    assert model is not None
    with pytest.raises(ValueError, match=r"must return a number in \[0, 1\].*for node 0"):
        model(TASK, tree, tree[0])


@pytest.mark.parametrize("said", [0, 1, True, np.float32(0.5), np.array(0.25)])
def test_numbers_of_any_kind_are_welcome(said: object) -> None:
    model = resolve_score_fn(lambda task, tree, node: said)  # type: ignore[arg-type,return-value]
    tree = grow((1.0, "a"))
    assert model is not None
    assert type(model(TASK, tree, tree[0])) is float


def test_really_judged_programs_vote_by_their_probes() -> None:
    # One public test lets all four through; on the probes the two right ones agree.
    task = CodeTask(
        task_id="absolute",
        statement="Print the absolute value.",
        public=(ExpectedCase(name="p", input="3\n", expected="3\n"),),
        hidden=(ExpectedCase(name="h", input="-4\n", expected="4\n"),),
        probes=(Probe(name="q1", input="-2\n"), Probe(name="q2", input="-7\n")),
    )
    programs = (
        "print(abs(int(input())))",
        "print(input())",
        "n = int(input())\nprint(n if n > 0 else -n)",
        "print(3)",
    )
    model = resolve_score_fn("agreement")
    assert model is not None
    judge = CodeJudge("bubblewrap")
    search = TreeSearch(["coder_0"], "best_of_n", budget=4, seed=0, score_fn=model.of(task))
    for program in programs:
        [expansion] = search.ask()
        search.tell(expansion.id, judge.judge(task, f"```python\n{program}\n```"))
    assert [node.score for node in search.tree] == [1.0] * 4
    assert [node.solved for node in search.tree] == [True, False, True, False]
    assert search.tree.best is search.tree[3]
    assert search.answer is search.tree[2]
    without = replace(task, probes=())
    for node, program in zip(search.tree, programs, strict=True):
        again = judge.judge(without, f"```python\n{program}\n```")
        assert again.signature == search.tree[0].verdict.signature[:1]
        assert replace(again, signature=(), cached=False) == replace(node.verdict, signature=())

"""Measures of diversity against definitions carried out by brute force."""

from __future__ import annotations

import ast
import itertools
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mars_envs.diversity import (
    contributions,
    coverage_shapley,
    describe_diversity,
    describe_programs,
    distinct_at_k,
    edit_distance,
    mean_between,
    mean_pairwise,
    mean_within,
    shape,
    solved_by_depth,
    syntax_bag,
    syntax_distance,
    token_distance,
    tokens,
)
from mars_envs.diversity.distances import MAX_TOKENS
from mars_envs.tree_search.tree import ROOT, SearchTree, verdict_of_score

words = st.text("abc", max_size=9)
labels = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=9)
any_text = st.text() | st.text(st.characters(), max_size=40).map(lambda text: f"x = '{text}'\n")


def naive_edits(one: Sequence[object], other: Sequence[object]) -> int:
    @cache
    def edits(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        same = edits(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(same, edits(i - 1, j) + 1, edits(i, j - 1) + 1)

    return edits(len(one), len(other))


@given(words, words)
def test_edits_are_those_of_the_table(one: str, other: str) -> None:
    assert edit_distance(one, other) == naive_edits(one, other)


@given(words, words, words)
def test_token_distance_is_a_share_symmetric_and_zero_for_equals(a: str, b: str, c: str) -> None:
    assert 0.0 <= token_distance(a, b) == token_distance(b, a) <= 1.0
    assert token_distance(a, a) == 0.0
    # Edits obey the triangle inequality; their share need not.
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def test_sequences_longer_than_a_machine_word_are_counted_right() -> None:
    one = [number % 7 for number in range(300)]
    other = [number % 5 for number in range(260)]
    assert edit_distance(one, other) == naive_edits(one, other)


def test_tokens_are_those_of_python_without_comments() -> None:
    program = (
        "def f(x1):  # twice\n    s = \"a # b\" + '''c\n'''\n    return x1 ** 2.5 >= s != ''\n"
    )
    assert tokens(program) == (
        *("def", "f", "(", "x1", ")", ":", "s", "=", '"a # b"', "+", "'''c\n'''"),
        *("return", "x1", "**", "2.5", ">=", "s", "!=", "''"),
    )


def test_a_long_program_is_read_up_to_a_bound() -> None:
    assert len(tokens("x " * (MAX_TOKENS + 5))) == MAX_TOKENS


@given(any_text)
def test_any_text_has_tokens_and_perhaps_a_syntax(text: str) -> None:
    found = tokens(text)
    assert all(token in text for token in found)
    assert sum(map(len, found)) <= len(text)
    bag = syntax_bag(text)
    assert (bag is None) == (shape(text) is None)


LOOP = '''
def total(values: list[int]) -> int:
    """Add them up."""
    result = 0
    for value in values:
        result += value
    return result
'''
RENAMED = """
def f(a):
    # other names
    b = 1
    for c in a:
        b += c
    return b
"""
BUILTIN = "def total(values):\n    return sum(values)\n"


def test_names_constants_notes_and_annotations_do_not_change_the_syntax() -> None:
    one, other, third = map(syntax_bag, (LOOP, RENAMED, BUILTIN))
    assert one is not None
    assert other is not None
    assert third is not None
    assert shape(LOOP) == shape(RENAMED) != shape(BUILTIN)
    assert syntax_distance(one, other) == 0.0
    assert 0.0 < syntax_distance(one, third) <= 1.0
    assert token_distance(tokens(LOOP), tokens(RENAMED)) > 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = a + b", "x = a - b"),
        ("x = 1", "x = '1'"),
        ("if a: f()", "while a: f()"),
        ("if a: pass\nelse: f()", "if a: f()\nelse: pass"),
        ("f(a, b)", "f(a)"),
        ("f(a, key=b)", "f(a, b)"),
        ("x = a < b", "x = a <= b"),
    ],
)
def test_what_a_program_does_changes_its_shape(one: str, other: str) -> None:
    assert shape(one) != shape(other)


def naive_bag(program: str) -> dict[str, int]:
    """Subtrees that are no leaves as nested text, counted; names and constants abstracted."""
    counts: dict[str, int] = {}

    def text(node: ast.AST) -> str:
        parts = []
        leaf = True
        for name, value in ast.iter_fields(node):
            if name in ("ctx", "annotation", "returns", "type_comment", "type_ignores"):
                continue
            items = value if isinstance(value, list) else [value]
            children = [
                item
                for item in items
                if isinstance(item, ast.AST)
                and not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
            ]
            leaf = leaf and not children
            parts.append(f"{name}[{','.join(map(text, children))}]")
        kind = type(node).__name__
        if isinstance(node, ast.Constant):
            kind += type(node.value).__name__
        found = f"{kind}({' '.join(parts)})"
        if not leaf:
            counts[found] = counts.get(found, 0) + 1
        return found

    text(ast.parse(program))
    return counts


@pytest.mark.parametrize(
    "pair", [(LOOP, RENAMED), (LOOP, BUILTIN), (RENAMED, BUILTIN), (LOOP, "print(1)")]
)
def test_syntax_distance_is_the_cosine_of_subtree_counts(pair: tuple[str, str]) -> None:
    one, other = map(naive_bag, pair)
    dot = sum(count * other.get(subtree, 0) for subtree, count in one.items())
    norms = [math.sqrt(sum(count**2 for count in bag.values())) for bag in (one, other)]
    bags = [syntax_bag(program) for program in pair]
    assert bags[0] is not None
    assert bags[1] is not None
    assert sorted(bags[0].values()) == sorted(one.values())
    expected = 1 - dot / math.prod(norms)
    assert syntax_distance(bags[0], bags[1]) == pytest.approx(expected, abs=1e-12)


def test_a_tree_deeper_than_the_stack_has_a_shape() -> None:
    assert shape("x = a" + ".b" * 2000) is not None


@given(st.lists(st.integers(-9, 9), max_size=8))
def test_means_over_all_pairs_are_exact(items: list[int]) -> None:
    pairs = [abs(a - b) for a, b in itertools.combinations(items, 2)]
    found = mean_pairwise(items, lambda a, b: abs(a - b))
    assert (found.pairs, found.used, found.se) == (len(pairs), len(pairs), 0.0)
    assert found.mean == (pytest.approx(statistics.fmean(pairs)) if pairs else None)


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(-9, 9), max_size=5)))
def test_pairs_within_and_between_groups_are_all_pairs(groups: dict[str, list[int]]) -> None:
    named = [(group, item) for group, items in groups.items() for item in items]
    for same, mean in ((True, mean_within), (False, mean_between)):
        pairs = [
            abs(a[1] - b[1]) for a, b in itertools.combinations(named, 2) if (a[0] == b[0]) is same
        ]
        found = mean(groups, lambda a, b: abs(a - b))
        assert found.pairs == len(pairs)
        assert found.mean == (pytest.approx(statistics.fmean(pairs)) if pairs else None)


def test_a_sample_of_the_pairs_is_seeded_and_as_good_as_it_says() -> None:
    items = list(range(200))

    def distance(a: int, b: int) -> float:
        return float((a * b) % 17)

    exact = statistics.fmean(distance(a, b) for a, b in itertools.combinations(items, 2))
    samples = [mean_pairwise(items, distance, max_pairs=300, seed=seed) for seed in range(200)]
    assert samples[0] == mean_pairwise(items, distance, max_pairs=300, seed=0)
    assert {(sample.pairs, sample.used) for sample in samples} == {(19_900, 300)}
    means = [sample.mean for sample in samples if sample.mean is not None]
    spread = statistics.stdev(means)
    assert abs(statistics.fmean(means) - exact) < 4 * spread / math.sqrt(200)
    # The spread of 200 samples is known to one part in sqrt(400); 4 of these.
    told = statistics.fmean(sample.se for sample in samples)
    assert spread == pytest.approx(told, rel=4 / math.sqrt(400))


@given(labels, st.data())
def test_distinct_at_k_is_the_mean_over_all_subsets(
    found: list[str | None], data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, len(found)))
    subsets = [set(subset) - {None} for subset in itertools.combinations(found, k)]
    expected = statistics.fmean(len(subset) for subset in subsets)
    assert distinct_at_k(found, k) == pytest.approx(expected, abs=1e-12)


def test_distinct_at_k_needs_as_many_items() -> None:
    assert distinct_at_k(["a"] * 4000 + ["b"] * 4000, 2000) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        distinct_at_k(["a", "b"], 3)


TEAM = ("x", "y", "z")
solver_sets = st.lists(st.sets(st.sampled_from(TEAM)), max_size=6)


@given(solver_sets)
def test_the_shapley_value_is_the_mean_gain_over_all_orders(solvers: list[set[str]]) -> None:
    def worth(agents: Sequence[str]) -> float:
        return sum(bool(task & set(agents)) for task in solvers) / max(1, len(solvers))

    orders = list(itertools.permutations(TEAM))
    expected = {
        agent: statistics.fmean(
            worth(order[: order.index(agent) + 1]) - worth(order[: order.index(agent)])
            for order in orders
        )
        for agent in TEAM
    }
    found = coverage_shapley(solvers, TEAM)
    assert found == pytest.approx(expected)
    assert sum(found.values()) == pytest.approx(worth(TEAM))


def test_a_solver_from_outside_the_team_is_named() -> None:
    with pytest.raises(ValueError, match="solved by w, who is not of x, y, z"):
        coverage_shapley([{"w", "x"}], TEAM)


def grow(*nodes: tuple[int, str, bool, str]) -> SearchTree:
    """Nodes as (parent, agent, solved, program); a program behaves as its length says."""
    tree = SearchTree()
    for parent, agent, solved, program in nodes:
        verdict = verdict_of_score(float(solved))
        signature = (str(len(program)),) if program else ()
        tree.add(parent, agent, replace(verdict, program=program, signature=signature))
    return tree


TREE = grow(
    (ROOT, "x", False, "print(1)"),
    (ROOT, "y", False, ""),
    (0, "y", True, "print(1, 2)"),
    (2, "x", True, "print(2)"),
    (2, "y", False, "print("),
)


def test_contributions_say_who_solved_first_and_alone() -> None:
    found = contributions(TREE, TEAM)
    assert [(c.nodes, c.solved_nodes, c.sole, c.first, c.credit) for c in found.values()] == [
        (2, 1, False, False, 0.5),
        (3, 1, False, True, 0.5),
        (0, 0, False, False, 0.0),
    ]
    alone = contributions(grow((ROOT, "x", False, "a"), (ROOT, "y", True, "b")))
    assert (alone["y"].sole, alone["y"].first, alone["y"].credit) == (True, True, 1.0)


def test_solutions_are_counted_by_depth() -> None:
    assert solved_by_depth(TREE) == {1: (0, 2), 2: (1, 1), 3: (1, 2)}
    assert solved_by_depth(SearchTree()) == {}


def test_a_description_holds_every_measure_as_plain_data() -> None:
    found = describe_diversity({"t": TREE, "empty": SearchTree()}, ks=(2, 99))
    assert json.loads(json.dumps(found)) == found
    team = found["trees"]["t"]["team"]
    assert {name: team[name] for name in ("answers", "programs", "unparsed", "identical")} == {
        "answers": 5,
        "programs": 4,
        "unparsed": 1,
        "identical": 0,
    }
    assert team["token_distance"]["pairs"] == 6
    assert team["syntax_distance"]["pairs"] == 3
    # Lengths 8, none, 11, 8, 6: three behaviours; all pairs but (1st, 4th) and those with the 2nd
    # hold two of them.
    assert team["behaviours"]["distinct"] == 3
    assert team["behaviours"]["at_k"] == {"2": pytest.approx((5 * 2 + 1 + 4 * 1) / 10)}
    assert (team["shapes"]["known"], team["shapes"]["distinct"]) == (3, 2)
    assert found["trees"]["t"]["between_agents"]["token_distance"]["pairs"] == 4
    assert found["trees"]["t"]["within_agents"]["token_distance"]["pairs"] == 2
    assert found["trees"]["t"]["agents"]["y"]["answers"] == 3
    assert found["trees"]["empty"]["team"]["token_distance"]["mean"] is None


def test_among_solved_nodes_only_right_programs_are_compared() -> None:
    found = describe_diversity({"t": TREE}, among="solved")["trees"]["t"]
    assert found["team"]["answers"] == 2
    assert found["contributions"]["x"]["nodes"] == 2
    assert found["solved_by_depth"] == {"1": [0, 2], "2": [1, 1], "3": [1, 2]}


def test_programs_and_signatures_have_to_pair_up() -> None:
    with pytest.raises(ValueError, match="2 programs and 1 signatures"):
        describe_programs(["a", "b"], [("x",)])


@pytest.mark.data
def test_on_recorded_programs_the_measures_are_those_by_definition(data_dir: Path) -> None:
    lines = (data_dir / "generations/mbpp_ldb.jsonl").read_text(encoding="utf-8").splitlines()
    programs = [json.loads(line)["text"] for line in lines[:12]]
    found = describe_programs(programs)
    parsed = [program for program in programs if shape(program) is not None]
    assert (found["programs"], found["unparsed"]) == (12, 12 - len(parsed))
    pairs = list(itertools.combinations(map(tokens, programs), 2))
    edits = [naive_edits(a, b) / max(len(a), len(b)) for a, b in pairs]
    assert found["token_distance"]["mean"] == pytest.approx(statistics.fmean(edits))

"""Ask, tell, fail: order-free, idempotent, resumable."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mars_envs.errors import ProtocolError
from mars_envs.tree_search import PRESETS, ROOT, Expansion, SearchView, Statistics, TreeSearch
from mars_envs.tree_search.tree import verdict_of_score

AGENTS = ["a", "b"]


def told(search: TreeSearch, outcomes: list[float]) -> TreeSearch:
    for score in outcomes:
        (expansion,) = search.ask()
        search.tell(expansion.id, score)
    return search


def test_the_first_expansion_is_a_fresh_answer() -> None:
    assert TreeSearch(["a"], seed=0).ask() == [Expansion(0, ROOT, "a")]


def test_a_search_ends_at_its_budget() -> None:
    search = told(TreeSearch(AGENTS, budget=3, seed=0), [0.0, 1.0, 0.5])
    assert search.done
    assert search.ask() == []
    assert search.nodes_left == 0


def test_solving_the_task_does_not_end_a_search() -> None:
    assert not told(TreeSearch(AGENTS, budget=3, seed=0), [1.0]).done


def test_telling_twice_gives_one_node() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    first = search.tell(expansion.id, 1.0, "one")
    assert search.tell(expansion.id, 0.0, "two") is first
    assert len(search.tree) == 1


def test_answers_in_reverse_order_give_the_same_set_of_nodes() -> None:
    def nodes(backwards: bool) -> set[tuple[int, str, str]]:
        search = TreeSearch(AGENTS, budget=8, seed=5)
        told(search, [0.0, 1.0, 0.0])
        asked = search.ask(4)
        for expansion in reversed(asked) if backwards else asked:
            search.tell(expansion.id, 0.5, reply=f"answer to {expansion.id}")
        return {(node.parent_id, node.agent, node.reply) for node in search.tree}

    assert nodes(backwards=True) == nodes(backwards=False)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(6)), st.sampled_from(sorted(PRESETS)))
def test_answers_may_come_in_any_order(order: list[int], selector: str) -> None:
    def grow(places: list[int]) -> TreeSearch:
        search = told(TreeSearch(AGENTS, selector, budget=12, seed=5), [0.0, 1.0, 0.5])
        asked = search.ask(6)
        for place in places:
            search.tell(asked[place].id, [0.0, 1.0, 0.5][place % 3], reply=str(place))
        return search

    straight, shuffled = grow(list(range(6))), grow(order)
    assert {(n.parent_id, n.agent, n.reply) for n in shuffled.tree} == {
        (n.parent_id, n.agent, n.reply) for n in straight.tree
    }
    for agent in AGENTS:  # values with few binary digits: sums are exact in any order
        assert shuffled._statistics.agent(agent) == straight._statistics.agent(agent)
        if selector == "default":
            assert shuffled._statistics.gen(ROOT) == straight._statistics.gen(ROOT)


def test_ids_follow_the_order_of_arrival() -> None:
    search = TreeSearch(AGENTS, seed=0)
    first, second = search.ask(2)
    node = search.tell(second.id, 0.0)
    assert node is not None
    assert node.id == 0
    node = search.tell(first.id, 0.0)
    assert node is not None
    assert node.id == 1


def test_no_more_is_asked_than_the_budget_allows() -> None:
    search = TreeSearch(AGENTS, budget=3, seed=0)
    assert len(search.ask(10)) == 3
    assert search.ask() == []
    assert not search.done


def test_pending_expansions_are_spread() -> None:
    # Each pending expansion narrows the arms that it used without moving their means, so a wide
    # batch is not k copies of one decision. With nothing pending the first choice is as ever.
    alone, batch = (told(TreeSearch(AGENTS, budget=60, seed=1), [0.0, 1.0] * 5) for _ in range(2))
    assert batch.ask(8)[0] == alone.ask()[0]
    assert len({(item.parent_id, item.agent) for item in batch.pending}) > 1


def test_without_pseudo_observations_a_batch_is_drawn_from_what_is_known() -> None:
    def asked(pseudo_observations: bool) -> list[Expansion]:
        search = TreeSearch(AGENTS, budget=900, seed=1, pseudo_observations=pseudo_observations)
        search.tell(search.ask()[0].id, 1.0)
        return search.ask(800)

    # One node of value 1, GEN drawn from Beta(1.5, .5) and CONT from Beta(.5, .5) each time: GEN
    # wins 0.702 of the draws.
    plain = sum(expansion.parent_id == ROOT for expansion in asked(False)) / 800
    assert plain == pytest.approx(0.702, abs=4 * 0.46 / 800**0.5)
    # Pseudo-observations narrow GEN and CONT around their means of 0.75 and 0.5.
    assert sum(expansion.parent_id == ROOT for expansion in asked(True)) / 800 > 0.9


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "best_of_n", "mcts"])
def test_what_is_pending_leaves_no_trace_in_what_is_learned(selector: str) -> None:
    def grow(distract: bool) -> TreeSearch:
        search = TreeSearch(AGENTS, selector, budget=40, seed=2)
        for step in range(12):
            (expansion,) = search.ask()
            if distract:
                state = search.rng.bit_generator.state
                for extra in search.ask(3):
                    search.fail(extra.id, "never mind")
                search.rng.bit_generator.state = state
            search.tell(expansion.id, step % 3 / 3)
        return search

    plain, distracted = grow(False), grow(True)
    assert distracted.tree == plain.tree
    assert distracted.ask()[0][1:] == plain.ask()[0][1:]


def test_a_failed_expansion_leaves_statistics_and_budget_alone() -> None:
    search = told(TreeSearch(AGENTS, budget=4, seed=0), [0.0, 1.0])
    before = pickle.dumps(search._statistics)
    tree = search.save()["tree"]
    for expansion in search.ask(2):
        search.fail(expansion.id, "the server went away")
    assert search.nodes_left == 2
    assert search.save()["tree"] == tree
    assert search.pending == ()
    assert pickle.dumps(search._statistics) == before
    assert search.abandoned == dict.fromkeys((2, 3), "the server went away")


def test_failing_twice_is_harmless_and_a_late_answer_is_dropped() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    search.fail(expansion.id, "slow")
    search.fail(expansion.id, "slow again")
    assert search.tell(expansion.id, 1.0) is None
    assert len(search.tree) == 0
    assert search.abandoned == {expansion.id: "slow"}


def test_an_answered_expansion_cannot_fail() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    search.tell(expansion.id, 1.0)
    with pytest.raises(ProtocolError, match="expansion 0 was answered by node 0"):
        search.fail(expansion.id, "too late")


@pytest.mark.parametrize("call", [lambda s: s.tell(7, 1.0), lambda s: s.fail(7, "why")])
def test_an_expansion_that_was_never_asked_for_is_a_clear_error(call: Any) -> None:
    with pytest.raises(ProtocolError, match="expansion 7 was never asked for"):
        call(TreeSearch(AGENTS, seed=0))


def test_a_refused_score_leaves_the_expansion_pending() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    with pytest.raises(ValueError, match="a score must be"):
        search.tell(expansion.id, 1.5)
    assert search.pending == (expansion,)
    assert search.tell(expansion.id, 0.5) is not None


def test_a_retired_agent_is_chosen_no_more() -> None:
    search = told(TreeSearch(AGENTS, budget=30, seed=0), [0.0, 1.0, 0.0])
    search.retire("a")
    told(search, [0.5] * 27)
    assert {node.agent for node in search.tree if node.id >= 3} == {"b"}


@pytest.mark.parametrize("selector", ["default", "paper", "marti_code", "best_of_n"])
def test_a_search_without_agents_is_over(selector: str) -> None:
    search = told(TreeSearch(AGENTS, selector, budget=9, seed=0), [0.0])
    (expansion,) = search.ask()
    search.retire("a")
    search.retire("b")
    assert search.ask() == []
    assert not search.done, "one answer may still come"
    search.tell(expansion.id, 1.0)
    assert search.done
    assert search.nodes_left == 7


def test_only_known_agents_retire() -> None:
    with pytest.raises(ValueError, match="no agent 'c'; the agents are a, b"):
        TreeSearch(AGENTS).retire("c")


@pytest.mark.parametrize("selector", sorted(PRESETS))
def test_a_resumed_search_asks_exactly_what_the_saved_one_would(selector: str) -> None:
    search = TreeSearch([*AGENTS, "c"], selector, budget=40, seed=3, expand_solved=False)
    told(search, [0.0, 1.0, 0.5, 0.25])
    search.fail(search.ask(3)[1].id, "no answer")
    search.retire("c")
    state = json.loads(json.dumps(search.save()))
    twin = TreeSearch.load(state, selector)
    assert twin.save() == search.save()
    assert told(twin, [0.0, 1.0, 0.5] * 5).tree == told(search, [0.0, 1.0, 0.5] * 5).tree


def test_a_saved_search_needs_its_own_selector() -> None:
    state = TreeSearch(AGENTS, "paper").save()
    with pytest.raises(ValueError, match=r"was saved with the selector AgentThenNode\(.*settings"):
        TreeSearch.load(state)


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a search of version 2, got 0"):
        TreeSearch.load({"version": 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": []}, "one or more different names"),
        ({"agents": ["a", "a"]}, "one or more different names"),
        ({"agents": ["a"], "budget": 0}, "must be at least 1"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeSearch(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": "abc"}, r"agents is a list of names, got the string 'abc': \['abc'\]\?"),
        ({"agents": 5}, "agents is a list of names, got 5"),
        ({"agents": [1, 2]}, r"agents are named by texts \(str\), got 1"),
        ({"agents": AGENTS, "budget": math.nan}, "must be at least 1 and a whole number, got nan"),
        ({"agents": AGENTS, "budget": "8"}, "must be at least 1 and a whole number, got '8'"),
        ({"agents": AGENTS, "budget": 2.5}, "must be at least 1 and a whole number, got 2.5"),
        ({"agents": AGENTS, "max_tokens": math.nan}, "max_tokens, if not None, must be at least 1"),
        ({"agents": AGENTS, "max_seconds": "9"}, "max_seconds must be above 0"),
        ({"agents": AGENTS, "max_pending": 1.5}, "max_pending must be at least 1"),
        ({"agents": AGENTS, "score_weight": "1"}, "score_weight must lie in"),
        ({"agents": AGENTS, "agent_budgets": {"a": 1.5}}, r"agent_budgets\['a'\] must be at least"),
    ],
)
def test_settings_of_another_type_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeSearch(**options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("0.5",), ValueError, r"a score must be a number in \[0, 1\], or a Verdict, got '0.5'"),
        ((None,), ValueError, "a score must be"),
        (([0.5, 1.0],), ValueError, "a score must be"),
        ((0.5, None), TypeError, r"reply is a text \(str\), got NoneType"),
        ((0.5, b"x"), TypeError, r"reply is a text \(str\), got bytes"),
        ((0.5, "", math.nan), ValueError, "tokens must be at least 0 and a whole number, got nan"),
        ((0.5, "", "7"), ValueError, "tokens must be at least 0 and a whole number, got '7'"),
    ],
)
def test_an_answer_of_another_type_is_refused_and_changes_nothing(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    before = search.save()
    with pytest.raises(error, match=message):
        search.tell(expansion.id, *arguments)
    assert search.save() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"public_passed": None}, "how many public tests passed, of how many, got None of 1"),
        ({"public_passed": 5}, "got 5 of 1"),
        ({"feedback": None}, "a verdict's feedback is a Feedback, got None"),
        ({"status": None}, r"a verdict's status is a text \(str\), got None"),
        ({"solved": None}, "a verdict's solved is True or False, got None"),
    ],
)
def test_a_verdict_that_says_nothing_is_refused_and_changes_nothing(
    changes: dict[str, Any], message: str
) -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    before = search.save()
    with pytest.raises(ValueError, match=message):
        search.tell(expansion.id, dataclasses.replace(verdict_of_score(1.0), **changes))
    assert search.save() == before


def test_a_reason_is_a_text() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    with pytest.raises(TypeError, match=r"reason is a text \(str\), got OSError"):
        search.fail(expansion.id, OSError("no server"))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers_and_can_be_saved() -> None:
    search = TreeSearch(AGENTS, budget=np.int64(3), max_tokens=np.int32(90), seed=0)  # type: ignore[arg-type]
    first, second = search.ask(np.int64(2))  # type: ignore[arg-type]
    search.tell(first.id, np.array(0.5), tokens=np.int64(7))  # type: ignore[arg-type]
    search.redirect(np.int64(second.id), np.int64(0))  # type: ignore[arg-type]
    search.tell(second.id, np.float32(0.5))  # type: ignore[arg-type]
    assert [node.score for node in search.tree] == [0.5, 0.5]
    assert TreeSearch.load(json.loads(json.dumps(search.save()))).save() == search.save()


def test_agents_may_be_asked_for_by_any_iterable() -> None:
    search = TreeSearch(iter(AGENTS), seed=0)  # type: ignore[arg-type]
    assert [item.agent for item in search.ask(2, agents=(name for name in ["b"]))] == ["b", "b"]
    with pytest.raises(ValueError, match="agents is a list of names, got the string 'b'"):
        search.ask(agents="b")


@pytest.mark.parametrize("k", [1.5, math.nan, "1"])
def test_one_asks_for_a_whole_number(k: Any) -> None:
    with pytest.raises(ValueError, match="ask for at least one expansion: k must be at least 1"):
        TreeSearch(AGENTS).ask(k)


class Chooses:
    """A selector that makes these choices, one after the other; an exception is raised."""

    def __init__(self, *choices: Any) -> None:
        self.choices = list(choices)

    def statistics(self, agents: Sequence[str]) -> Statistics:
        return Statistics(agents)

    def select(self, view: SearchView, rng: np.random.Generator) -> Any:
        choice = self.choices.pop(0)
        if isinstance(choice, Exception):
            raise choice
        return choice


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (None, r"a selector returns Choice\(parent_id, agent\), got None"),
        ((ROOT, "nobody"), "chose the agent 'nobody'; of view.agents it may choose a, b"),
        ((99, "a"), r"chose the parent 99; there are the root \(-1\) and 1 nodes"),
        ((0.0, "a"), r"chose the parent 0.0"),
        ((0, "a"), "chose to refine node 0, which is solved, and expand_solved is off"),
        (RuntimeError("no model"), "no model"),
    ],
)
def test_a_choice_that_may_not_be_made_is_refused_and_nothing_is_asked(
    choice: Any, message: str
) -> None:
    selector = Chooses((ROOT, "a"), (ROOT, "b"), choice, (ROOT, "b"))
    search = told(TreeSearch(AGENTS, selector, expand_solved=False), [1.0])
    before = search.save()
    with pytest.raises((ValueError, RuntimeError), match=message):
        search.ask(2)
    assert search.save() == before
    assert search.ask() == [Expansion(1, ROOT, "b")]


def test_no_expansion_is_moved_to_a_solved_node_that_is_not_to_be_expanded() -> None:
    search = told(TreeSearch(AGENTS, expand_solved=False, seed=0), [1.0])
    (expansion,) = search.ask()
    with pytest.raises(ValueError, match="node 0 is solved, and expand_solved is off"):
        search.redirect(expansion.id, 0)
    assert search.pending == (expansion,)


def test_a_selector_without_a_repr_is_known_by_its_name() -> None:
    state = told(TreeSearch(AGENTS, Chooses((ROOT, "a"))), [0.5]).save()
    assert TreeSearch.load(state, Chooses()).save() == state
    with pytest.raises(ValueError, match=r"saved with the selector <.*\.Chooses object>; load"):
        TreeSearch.load(state, "default")


def test_asking_for_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="one expansion: k must be at least 1"):
        TreeSearch(AGENTS).ask(0)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(PRESETS)),
    st.integers(0, 2**31),
    st.lists(st.sampled_from(["tell", "fail", "ask", "retire", "reload"]), max_size=40),
    st.booleans(),
)
def test_any_sequence_of_calls_keeps_the_books_straight(
    selector: str, seed: int, calls: list[str], expand_solved: bool
) -> None:
    search = TreeSearch(["a", "b", "c"], selector, 10, seed, expand_solved=expand_solved)
    for index, call in enumerate(calls):
        if call == "ask":
            search.ask(1 + index % 3)
        elif call == "retire" and index % 5 == 0:
            search.retire("abc"[index % 3])
        elif call == "reload":
            search = TreeSearch.load(json.loads(json.dumps(search.save())), selector)
        elif search.pending:
            expansion = search.pending[index % len(search.pending)]
            if call == "tell":
                search.tell(expansion.id, [0.0, 0.5, 1.0][index % 3])
            elif call == "fail":
                search.fail(expansion.id, "why not")
        assert len(search.tree) + len(search.pending) <= search.budget
        parents = [node.parent_id for node in search.tree] + [e.parent_id for e in search.pending]
        if not expand_solved:
            assert not any(p != ROOT and search.tree[p].solved_public for p in parents)
    # What is kept along the way is what follows from the tree, to the last bit.
    afresh = search.selector.statistics(search.agents)
    for node in search.tree:
        afresh.observe(node, opened=expand_solved or not node.solved_public)
    search._statistics.restore()
    assert pickle.dumps(search._statistics) == pickle.dumps(afresh)

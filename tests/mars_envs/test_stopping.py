"""When a search ends, and why it says so."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from mars_envs.stopwatch import Stopwatch
from mars_envs.tree_search import ROOT, TreeSearch

AGENTS = ["a", "b"]


class Clock:
    """A clock that is moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def tell_next(search: TreeSearch, score: float = 0.0, tokens: int = 0) -> None:
    (expansion,) = search.ask()
    search.tell(expansion.id, score, tokens=tokens)


def test_a_running_search_gives_no_reason() -> None:
    assert TreeSearch(AGENTS, budget=2, seed=0).stop_reason == ""


def test_a_spent_budget_is_the_reason() -> None:
    search = TreeSearch(AGENTS, budget=1, seed=0)
    tell_next(search)
    assert (search.done, search.stop_reason) == (True, "nodes")


def test_a_solved_task_ends_the_search_when_asked() -> None:
    search = TreeSearch(AGENTS, seed=0, stop_on_solved=True)
    tell_next(search, 0.9)
    assert not search.done
    tell_next(search, 1.0)
    assert (search.ask(), search.stop_reason) == ([], "solved")


def test_an_answer_that_was_pending_when_the_search_ended_is_still_taken() -> None:
    search = TreeSearch(AGENTS, seed=0, stop_on_solved=True)
    first, second = search.ask(2)
    search.tell(first.id, 1.0)
    assert search.tell(second.id, 0.0) is search.tree[1]


def test_tokens_of_answers_and_of_failures_are_counted() -> None:
    search = TreeSearch(AGENTS, seed=0, max_tokens=100)
    tell_next(search, tokens=60)
    (expansion,) = search.ask()
    search.fail(expansion.id, "cut off", tokens=39)
    assert (search.tokens, search.done) == (99, False)
    tell_next(search, tokens=1)
    assert (search.ask(), search.stop_reason) == ([], "tokens")


def test_the_clock_ends_a_search() -> None:
    clock = Clock()
    search = TreeSearch(AGENTS, seed=0, max_seconds=5.0, clock=clock)
    clock.now += 50
    tell_next(search)  # the time runs from the first ask
    clock.now += 4.9
    assert not search.done
    clock.now += 0.1
    assert (search.ask(), search.stop_reason) == ([], "seconds")


def test_seconds_that_have_passed_survive_saving_but_the_moment_of_the_start_does_not() -> None:
    clock, later = Clock(), Clock()
    search = TreeSearch(AGENTS, seed=0, max_seconds=5.0, clock=clock)
    tell_next(search)
    clock.now += 3
    twin = TreeSearch.load(json.loads(json.dumps(search.save())), clock=later)
    later.now += 1000  # before it is asked again, time stands still
    tell_next(twin)
    later.now += 1.9
    assert not twin.done
    later.now += 0.2
    assert twin.stop_reason == "seconds"


def test_a_pickled_stopwatch_goes_on_from_the_seconds_that_had_passed() -> None:
    watch = Stopwatch(Clock(), elapsed=2.0)
    watch.start()
    twin = pickle.loads(pickle.dumps(watch))
    assert twin.elapsed == 2.0


def test_a_copied_stopwatch_runs_on() -> None:
    clock = Clock()
    watch = Stopwatch(clock, elapsed=2.0)
    watch.start()
    clock.now += 3.0
    twin = copy.deepcopy(watch)
    clock.now += 95.0
    assert twin.elapsed == watch.elapsed == 100.0


def test_the_clock_is_not_read_without_a_time_limit() -> None:
    def broken() -> float:
        raise AssertionError("nobody should look at the clock")

    search = TreeSearch(AGENTS, budget=2, seed=0, clock=broken)
    tell_next(search)
    search.save()


def test_an_agent_makes_no_more_nodes_than_its_own_budget() -> None:
    search = TreeSearch(AGENTS, budget=12, seed=0, agent_budgets={"a": 3})
    while not search.done:
        tell_next(search)
    assert search.tree.count("a") == 3
    assert search.tree.count("b") == 9


def test_a_pending_expansion_counts_towards_its_agents_budget_until_it_fails() -> None:
    search = TreeSearch(["a"], seed=0, agent_budgets={"a": 1})
    (expansion,) = search.ask(5)
    assert search.live_agents == ()
    assert not search.done, "one answer may still come"
    search.fail(expansion.id, "lost")
    assert search.live_agents == ("a",)


def test_a_search_whose_agents_have_all_spent_their_budgets_says_so() -> None:
    search = TreeSearch(AGENTS, budget=9, seed=0, agent_budgets={"a": 1, "b": 2})
    while not search.done:
        tell_next(search)
    assert (len(search.tree), search.stop_reason) == (3, "agent_budgets")
    assert search.ask() == []


def test_a_search_that_lost_an_agent_before_its_time_says_so() -> None:
    search = TreeSearch(AGENTS, budget=9, seed=0, agent_budgets={"a": 1})
    search.retire("b")
    tell_next(search)
    assert search.stop_reason == "agents"


def test_never_more_are_pending_than_allowed() -> None:
    search = TreeSearch(AGENTS, seed=0, max_pending=2)
    first, _ = search.ask(5)
    assert search.ask() == []
    search.tell(first.id, 0.0)
    assert len(search.ask(5)) == 1


def test_agents_can_be_asked_for_by_name() -> None:
    search = TreeSearch([*AGENTS, "c"], budget=60, seed=0)
    for _ in range(10):
        (expansion,) = search.ask(agents=["b", "c"])
        assert expansion.agent != "a"
        search.tell(expansion.id, 0.0)
    search.retire("b")
    assert search.ask(agents=["b"]) == []
    with pytest.raises(ValueError, match="no agent 'd'; the agents are a, b, c"):
        search.ask(agents=["d"])


def test_a_pending_expansion_can_be_moved_to_another_parent() -> None:
    search = TreeSearch(["a"], "best_of_n", seed=0)
    tell_next(search)
    (expansion,) = search.ask()
    assert search.redirect(expansion.id, 0).parent_id == 0
    node = search.tell(expansion.id, 1.0)
    assert node is not None
    assert node.parent_id == 0
    (expansion,) = search.ask()
    with pytest.raises(KeyError, match="no node 7"):
        search.redirect(expansion.id, 7)
    assert search.pending == (expansion,)
    assert search.redirect(expansion.id, ROOT) == expansion


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens, if not None, must be at least 1"),
        ({"max_seconds": 0.0}, "max_seconds must be above 0"),
        ({"max_seconds": float("nan")}, "max_seconds must be above 0"),
        ({"agent_budgets": {"a": -1}}, r"agent_budgets\['a'\] must be at least 0"),
        ({"agent_budgets": {"c": 1}}, "no agent 'c'"),
        ({"max_pending": 0}, "max_pending must be at least 1"),
        ({"score_weight": 1.5}, r"score_weight must lie in \[0, 1\]"),
        ({"score_weight": 0.5}, "needs a score_fn"),
    ],
)
def test_limits_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeSearch(AGENTS, **options)


def test_tokens_cannot_be_negative() -> None:
    search = TreeSearch(AGENTS, seed=0)
    (expansion,) = search.ask()
    with pytest.raises(ValueError, match="tokens"):
        search.tell(expansion.id, 0.0, tokens=-1)
    with pytest.raises(ValueError, match="tokens"):
        search.fail(expansion.id, "why", tokens=-1)
    assert search.pending == (expansion,)

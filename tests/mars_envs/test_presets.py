"""Selectors by name."""

from __future__ import annotations

import pytest

from mars_envs.tree_search import (
    PRESETS,
    UCB,
    AgentThenNode,
    Beta,
    DepthGuide,
    Gaussian,
    NodeThenAgent,
    RootOnly,
    TreeSearch,
    Turns,
    resolve_selector,
)
from mars_envs.tree_search.baselines import ChainOnly, RandomParent
from mars_envs.tree_search.statistics import Statistics


def test_presets_are_what_the_design_says() -> None:
    assert resolve_selector("default") == NodeThenAgent(prior=Beta(0.5, 0.5))
    assert resolve_selector("paper") == AgentThenNode(prior=Beta(0.5, 0.5))
    assert resolve_selector("marti_code") == NodeThenAgent(prior=Gaussian(0.0, 1.0, 1.0, 0.1))
    assert resolve_selector("t_plus") == NodeThenAgent(
        depth_guide=DepthGuide(start=0.98, slope=0.02, floor=0.5)
    )
    assert resolve_selector("ucb") == NodeThenAgent(agent_rule=UCB(2**0.5))
    assert resolve_selector("round_robin") == NodeThenAgent(agent_rule=Turns())
    assert resolve_selector("best_of_n") == RootOnly()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_grows_a_tree_with_parallel_expansions_failures_and_a_loss(name: str) -> None:
    search = TreeSearch(["a", "b", "c"], name, 30, 0)
    step = 0
    while not search.done:
        for expansion in search.ask(3):
            step += 1
            if step % 7 == 0:
                search.fail(expansion.id, "lost")
            else:
                search.tell(expansion.id, [0.0, 1.0, 0.5][step % 3])
        if step > 20 and "b" in search.live_agents:
            search.retire("b")
    assert search.stop_reason == "nodes"


def test_a_selector_can_be_named_by_its_module() -> None:
    name = "mars_envs.tree_search:RootOnly"
    assert resolve_selector(name, agent_mix=0.5) == RootOnly(agent_mix=0.5)


def test_an_unknown_selector_names_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="unknown selector 'uct'; expected one of default, paper, marti_code"
    ):
        resolve_selector("uct")


def test_an_object_that_cannot_select_is_refused() -> None:
    with pytest.raises(ValueError, match="is no selector: it lacks select, statistics"):
        resolve_selector(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mcts", "best_first", "tree_of_thoughts"])
def test_a_selector_without_a_rule_for_agents_takes_no_mix(name: str) -> None:
    with pytest.raises(ValueError, match="takes no agent_mix"):
        resolve_selector(name, agent_mix=0.5)


@pytest.mark.parametrize("mix", [-0.1, 1.1, float("nan")])
@pytest.mark.parametrize("kind", [NodeThenAgent, AgentThenNode, RootOnly, ChainOnly, RandomParent])
def test_a_mix_is_a_share(kind: type[RootOnly], mix: float) -> None:
    with pytest.raises(ValueError, match="agent_mix is a share"):
        kind(agent_mix=mix)


def test_selectors_say_all_their_settings_so_that_saved_searches_can_be_matched() -> None:
    for selector in PRESETS.values():
        assert isinstance(selector.statistics(["a"]), Statistics)
    assert len({repr(selector) for selector in PRESETS.values()}) == len(PRESETS)

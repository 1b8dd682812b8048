"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "mars_envs.metrics",
        "mars_envs.parallel_memory.budgets",
        "mars_envs.parallel_memory.loop",
        "mars_envs.parallel_memory.merge",
        "mars_envs.parallel_memory.play",
        "mars_envs.parallel_memory.prose_prompts",
        "mars_envs.parallel_memory.relevance",
        "mars_envs.parallel_memory.replies",
        "mars_envs.parallel_memory.settings",
        "mars_envs.reading.chunking",
        "mars_envs.reading.quotes",
        "mars_envs.terminal",
        "mars_envs.reading.document",
        "mars_envs.reading.ruler_tasks",
        "mars_envs.reading.synthetic.names",
        "mars_envs.reading.synthetic.passages",
        "mars_envs.reading.synthetic.tasks",
        "mars_envs.reading.tokenizers",
        "mars_envs.reading.words",
        "mars_envs.spaces",
        "mars_envs.tree_search.control",
        "mars_envs.tree_search.env",
        "mars_envs.tree_search.parallel",
        "mars_envs.tree_search.feedback_level",
        "mars_envs.tree_search.prose_prompts",
        "mars_envs.tree_search.rendering",
        "mars_envs.tree_search.search",
        "mars_envs.tree_search.simulated",
        "mars_envs.tree_search.tree",
    ],
)
def test_docstring_examples_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0

"""Records refuse what no sandbox could act on, before anything runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sandbox import Limits, Program


@pytest.mark.parametrize(
    "setting",
    [
        {"cpu_s": 0},
        {"cpu_s": math.inf},
        {"cpu_s": math.nan},
        {"cpu_s": "3"},
        {"wall_s": 1e300},
        {"processes": 0.5},
        {"memory_mb": 1.5},
        {"stderr_bytes": -1},
        {"tmp_mb": 1 << 50},
    ],
)
def test_a_limit_that_cannot_be_set_is_named(setting: dict[str, Any]) -> None:
    (name,) = setting
    with pytest.raises(ValueError, match=rf"Limits\.{name} must be a .* number"):
        Limits(**setting)


def test_a_wall_limit_may_be_left_open() -> None:
    assert Limits(cpu_s=2, wall_s=None).wall_limit_s == 20.0


@pytest.mark.parametrize("source", [None, b"print(1)", 5])
def test_a_program_is_text(source: Any) -> None:
    with pytest.raises(TypeError, match=r"Program\.source is text \(str\), got"):
        Program(source)

"""The toy world as a fixture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def toy(load_module: Callable[[Path], ModuleType]) -> ModuleType:
    return load_module(Path(__file__).with_name("toy.py"))

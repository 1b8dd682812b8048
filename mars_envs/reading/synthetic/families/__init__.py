"""The families, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..family import Family
from .aggregate import COUNT, SET
from .compare import COMPARE
from .kg import KG2, KG3
from .kv import KV, NONE
from .overwrite import OVERWRITE
from .vt import VT

FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {family.name: family for family in (KV, VT, KG2, KG3, COMPARE, COUNT, SET, OVERWRITE, NONE)}
)
"""All of them."""

"""The part of the corpus that a user without privileges runs, in a process of its own.

Started by `test_bubblewrap`; prints what came of each attack as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os

from sandbox.bubblewrap import BubblewrapBackend

from . import rows
from .attack import Attack, FunctionAttack
from .catalogue import ALL
from .stage import Ensemble

_NAMED = {
    name for part in (rows.THREAT_MODEL, rows.IN_PROCESS) for row in part.values() for name in row
}
_FAMILIES = (
    "forge a result",
    "signal every other",
    "look into the others",
    "pretend that",
    "change the others",
)
ATTACKS: dict[str, Attack | FunctionAttack] = {
    name: attack
    for name, attack in ALL.items()
    if not attack.slow and (name in _NAMED or name.startswith(_FAMILIES))
}
"""Every row of the threat model that does not take long, and every way to forge a result."""


def main() -> None:
    """Print an object: what is missing here, and what each attack came to, by name."""
    assert os.geteuid() != 0
    backend = BubblewrapBackend()
    missing = backend.capabilities.missing
    attacks = {name: attack for name, attack in ATTACKS.items() if attack.needs not in missing}
    with Ensemble(lambda: backend, attacks) as ensemble:
        played = {name: dataclasses.asdict(ensemble.played(name)) for name in attacks}
    print(json.dumps({"missing": missing, "played": played}))

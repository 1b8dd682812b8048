"""All attacks by name."""

from __future__ import annotations

from . import escape, forgery, functions, leftovers, resources, text
from .attack import Attack, FunctionAttack

STDIO: dict[str, Attack] = {
    **resources.ATTACKS,
    **escape.ATTACKS,
    **forgery.ATTACKS,
    **leftovers.ATTACKS,
    **text.ATTACKS,
}
FUNCTIONS: dict[str, FunctionAttack] = functions.ATTACKS
ALL: dict[str, Attack | FunctionAttack] = {**STDIO, **FUNCTIONS}

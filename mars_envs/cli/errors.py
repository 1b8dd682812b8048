"""Which exceptions of the other packages are messages to the user rather than faults."""

from __future__ import annotations

import sys


def known_errors() -> tuple[type[Exception], ...]:
    """Return the roots of the other packages' exception trees, of those that were loaded."""
    found = []
    for module, name in (("sandbox.base", "SandboxError"), ("trainers.errors", "TrainersError")):
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)

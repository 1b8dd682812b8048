"""What a Python interpreter says of itself: imported for the one that runs, run as a script else.

As a script it may meet any interpreter on a machine, old ones too, so it keeps to plain Python.
"""

from __future__ import annotations

import json
import os
import site
import sys
import sysconfig
from typing import Any


def facts(prefix: str) -> dict[str, Any]:
    """Return what is known here about the interpreter that runs this.

    Args:
        prefix: where its guests will find it; `packages` are the folders, below this, in which it
            would look for installed packages.
    """
    return {
        "implementation": sys.implementation.name,
        "version": list(sys.version_info[:2]),
        "build": sys.version,
        "cache_tag": sys.implementation.cache_tag,
        "command": sys.executable or "",
        "binary": os.path.realpath(sys.executable) if sys.executable else "",
        "stdlib": os.path.realpath(sysconfig.get_path("stdlib")),
        "platlibdir": getattr(sys, "platlibdir", "lib"),
        "packages": site.getsitepackages([prefix]),
        "search_path": [path for path in sys.path if path],
    }


if __name__ == "__main__":
    json.dump(facts(sys.argv[1]), sys.stdout)

"""The code that runs inside an isolated place: supervisor, zygote and child.

It is self-contained standard-library source and travels in the command line (`bootstrap`), so a
container image does not depend on the version of this package. It holds no secrets: a program may
read all of it. Nothing in here may import anything outside this folder but the standard library.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from pathlib import Path
from typing import Literal

MODULES = ("wire", "seccomp", "child", "cleaning", "zygote", "supervisor", "solo")
"""In an order in which each needs only earlier ones."""

ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""All that a guest sees of an environment. A fixed hash seed keeps set order from changing when a
worker is replaced."""

FLAGS = ("-P", "-s", "-B")
"""Not `-I`, which ignores PYTHONHASHSEED; not `-S`, which takes `exit` and `quit` away."""

# The last call is made at the top of the stack, so that a program has nearly all of the
# recursion limit for itself.
_LOADER = """\
import base64, json, sys, types, zlib
def load(data):
    package = types.ModuleType("sbx")
    package.__path__ = []
    sys.modules["sbx"] = package
    for name, source in json.loads(zlib.decompress(base64.b64decode(data))):
        module = types.ModuleType("sbx." + name)
        module.__package__ = "sbx"
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(source, "<guest>/%s.py" % name, "exec"), module.__dict__)
    return package
load("{data}").{entry}.main()()
"""


@functools.cache
def bootstrap(entry: Literal["supervisor", "solo"]) -> str:
    """Return the program text for `python -c` that starts the guest at `entry`."""
    folder = Path(__file__).parent
    modules = [(name, (folder / f"{name}.py").read_text("utf-8")) for name in MODULES]
    data = base64.b64encode(zlib.compress(json.dumps(modules).encode(), 9)).decode()
    return _LOADER.replace("{data}", data).replace("{entry}", entry)


@functools.cache
def fingerprint() -> str:
    """Return a short hash of the guest's source and the way its interpreter is started."""
    text = bootstrap("supervisor") + repr((FLAGS, sorted(ENVIRONMENT.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

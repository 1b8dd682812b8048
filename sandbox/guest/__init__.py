"""The code that runs inside an isolated place: supervisor, zygote, template and child.

It is self-contained standard-library source and travels in the command line (`bootstrap`), so a
container image does not depend on the version of this package. It holds no secrets: a program may
read all of it. Nothing in here may import anything outside this folder but the standard library.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import marshal
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any, Literal

MODULES = {
    "supervisor": (
        *("wire", "sockets", "seccomp", "limits", "child", "cleaning", "pages", "template"),
        *("zygote", "clocks", "host", "link", "place", "run", "supervisor"),
    ),
    "solo": ("seccomp", "limits", "child", "solo"),
}
"""What each entry needs, in an order in which each module needs only earlier ones."""

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
import binascii, marshal, sys, types, zlib
from importlib._bootstrap_external import MAGIC_NUMBER
def load(code, text):
    data = code if MAGIC_NUMBER == {magic} else text
    package = types.ModuleType("sbx")
    package.__path__ = []
    sys.modules["sbx"] = package
    for name, part in marshal.loads(zlib.decompress(binascii.a2b_base64(data))):
        module = types.ModuleType("sbx." + name)
        module.__package__ = "sbx"
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        if data is text:
            part = compile(part, "<guest>/%s.py" % name, "exec")
        exec(part, module.__dict__)
    return package
load("{code}", "{text}").{entry}.main()()
"""


@functools.cache
def bootstrap(entry: Literal["supervisor", "solo"]) -> str:
    """Return the program text for `python -c` that starts the guest at `entry`.

    It carries the modules compiled, for an interpreter of this one's version, and as text for
    others.
    """
    texts = _texts(entry)
    codes = [(name, compile(text, f"<guest>/{name}.py", "exec")) for name, text in texts]
    fields = {"magic": repr(MAGIC_NUMBER), "code": _packed(codes), "text": _packed(texts)}
    loader = _LOADER.replace("{entry}", entry)
    for name, value in fields.items():
        loader = loader.replace("{" + name + "}", value)
    return loader


def _texts(entry: str) -> list[tuple[str, str]]:
    folder = Path(__file__).parent
    return [(name, (folder / f"{name}.py").read_text("utf-8")) for name in MODULES[entry]]


def _packed(modules: list[Any]) -> str:
    return base64.b64encode(zlib.compress(marshal.dumps(modules), 9)).decode()


@functools.cache
def fingerprint() -> str:
    """Return a short hash of the guest's source and the way its interpreter is started."""
    # Not of what `bootstrap` returns: compiled code differs from one process to the next.
    texts = [_texts(entry) for entry in MODULES]
    parts = repr((texts, _LOADER, FLAGS, sorted(ENVIRONMENT.items())))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]

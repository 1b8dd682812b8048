"""The code that runs inside an isolated place: supervisor, zygote, template and child.

It is self-contained standard-library source and is sent to the interpreter that has been started
(`bootstrap`, `code`), so a container image does not depend on the version of this package. It holds
no secrets: a program may read all of it. Nothing in here may import anything outside this folder
but the standard library.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import marshal
from collections.abc import Sequence
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Literal

_SOLO = ("seccomp", "limits", "child", "solo")
_BEFORE_FORK = (
    *("sockets", "seccomp", "limits", "child", "cleaning", "template", "zygote", "start"),
)
"""What zygote and templates need, in an order in which each module needs only earlier ones. It is
little, for every fork copies the tables of all memory."""
_AFTER_FORK = ("wire", "clocks", "host", "link", "place", "run", "supervisor")
"""What the supervisor needs besides."""

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

# Modules come compiled, for an interpreter of the host's version, and as text for others. What is
# called at last is called at the top of the stack, so that a program has nearly all of the
# recursion limit for itself.
_LOADER = """\
import marshal, sys, types
from importlib._bootstrap_external import MAGIC_NUMBER
def load(data):
    magic, code, text = marshal.loads(data)
    same = magic == MAGIC_NUMBER
    package = sys.modules.setdefault("sbx", types.ModuleType("sbx"))
    package.__path__ = []
    for name, part in marshal.loads(code if same else text):
        module = types.ModuleType("sbx." + name)
        module.__package__ = "sbx"
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(part if same else compile(part, "<guest>/%s.py" % name, "exec"), module.__dict__)
    return package
"""
# Not in the command line, several copies of which an interpreter keeps for life.
_START = """\
import os
def receive(host):
    size = int.from_bytes(os.read(host, 4), "big")
    data = b""
    while len(data) < size:
        more = os.read(host, size - len(data))
        if not more: os._exit(0)
        data += more
    return data
{loader}
start = load(receive(0)).start
job = start.main()
if job: job()
load(receive(start.inherited[0])).supervisor.main(*start.inherited)
"""
_START_SOLO = """\
{loader}
import base64
load(base64.b64decode("{code}")).solo.main()()
"""


@functools.cache
def bootstrap(entry: Literal["supervisor", "solo"]) -> str:
    """Return the program text for `python -c` that starts the guest at `entry`.

    A supervisor reads its own code from its standard input first (`code`).
    """
    if entry == "supervisor":
        return _START.replace("{loader}", _LOADER)
    code = base64.b64encode(_packed(_SOLO)).decode()
    return _START_SOLO.replace("{loader}", _LOADER).replace("{code}", code)


@functools.cache
def code() -> bytes:
    """Return what a supervisor is to be sent before the first frame."""
    parts = (_packed(_BEFORE_FORK), _packed(_AFTER_FORK))
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _packed(names: Sequence[str]) -> bytes:
    texts = _texts(names)
    codes = [(name, compile(text, f"<guest>/{name}.py", "exec")) for name, text in texts]
    # Either list is read only by an interpreter that can.
    return marshal.dumps((MAGIC_NUMBER, marshal.dumps(codes), marshal.dumps(texts, 2)), 2)


def _texts(names: Sequence[str]) -> list[tuple[str, str]]:
    folder = Path(__file__).parent
    return [(name, (folder / f"{name}.py").read_text("utf-8")) for name in names]


@functools.cache
def fingerprint() -> str:
    """Return a short hash of the guest's source and the way its interpreter is started."""
    # Not of what `bootstrap` returns: compiled code differs from one process to the next.
    texts = _texts((*_SOLO, *_BEFORE_FORK, *_AFTER_FORK))
    parts = repr((texts, _LOADER, _START, _START_SOLO, FLAGS, sorted(ENVIRONMENT.items())))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]

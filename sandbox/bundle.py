"""Modules of ours, packed into the source of a program that runs them inside a guest.

Compiling the modules would cost more than most programs run; a guest whose interpreter has the
host's bytecode takes the code as it is, any other compiles the text. A bundle holds no secrets: the
program next to which it runs may read all of it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import marshal
import zlib
from pathlib import Path

# `module` is the last one when the call is made, at the top of the stack: the program that it may
# run has nearly all of the recursion limit for itself.
_LOADER = """\
import binascii, marshal, sys, types, zlib
from importlib._bootstrap_external import MAGIC_NUMBER
same = MAGIC_NUMBER == {magic!a}
parts = marshal.loads(zlib.decompress(binascii.a2b_base64({code!a} if same else {text!a})))
package = sys.modules["sbx_guest"] = types.ModuleType("sbx_guest")
package.__path__ = []
for name, part in parts:
    module = types.ModuleType("sbx_guest." + name)
    module.__package__ = "sbx_guest"
    sys.modules[module.__name__] = module
    exec(part if same else compile(part, "<guest>/%s.py" % name, "exec"), module.__dict__)
"""


def source(modules: tuple[str, ...], call: str) -> bytes:
    """Return a program that loads modules of this package and makes one call.

    Args:
        modules: names of modules, each of which imports only earlier ones and the standard library.
        call: an expression; `module` in it is the last of the modules.
    """
    return (_loader(modules, magic()) + call + "\n").encode("ascii")


@functools.cache
def fingerprint(modules: tuple[str, ...]) -> str:
    """Return a short hash of the text of `modules`, the same in every process."""
    return hashlib.sha256(repr((_LOADER, _texts(modules))).encode()).hexdigest()[:16]


def magic() -> bytes:
    """Return what tells this interpreter's bytecode from that of others."""
    return importlib.util.MAGIC_NUMBER


@functools.cache
def _loader(modules: tuple[str, ...], magic: bytes) -> str:
    texts = _texts(modules)
    code = [
        (name, compile(text, f"<guest>/{name}.py", "exec", dont_inherit=True))
        for name, text in texts
    ]
    return _LOADER.format(magic=magic, code=_packed(code), text=_packed(texts))


def _texts(modules: tuple[str, ...]) -> list[tuple[str, str]]:
    folder = Path(__file__).parent
    return [(name, (folder / f"{name}.py").read_text("utf-8")) for name in modules]


def _packed(value: object) -> str:
    return base64.b64encode(zlib.compress(marshal.dumps(value), 9)).decode()  # type: ignore[arg-type]

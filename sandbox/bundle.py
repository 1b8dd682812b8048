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
# run has nearly all of the recursion limit for itself. What is imported first is imported once for
# all tests of a program (see `guest.template`); `binascii` and `zlib` are files to be loaded, so
# the code does without.
_LOADER = """\
import {imports}
from importlib._bootstrap_external import MAGIC_NUMBER
same = MAGIC_NUMBER == {magic!a}
if same:
    parts = marshal.loads({code!a})
else:
    import binascii, zlib
    parts = marshal.loads(zlib.decompress(binascii.a2b_base64({text!a})))
package = sys.modules["sbx_guest"] = types.ModuleType("sbx_guest")
package.__path__ = []
for name, part in parts:
    module = types.ModuleType("sbx_guest." + name)
    module.__package__ = "sbx_guest"
    sys.modules[module.__name__] = module
    exec(part if same else compile(part, "<guest>/%s.py" % name, "exec"), module.__dict__)
"""
_IMPORTS = ("marshal", "sys", "types")


def source(modules: tuple[str, ...], call: str, *, imports: tuple[str, ...] = ()) -> bytes:
    """Return a program that loads modules of this package and makes one call.

    Args:
        modules: names of modules, each of which imports only earlier ones and the standard library.
        call: an expression; `module` in it is the last of the modules.
        imports: what the modules and the call will import from the standard library.
    """
    return (_loader(modules, imports, magic()) + call + "\n").encode("ascii")


@functools.cache
def fingerprint(modules: tuple[str, ...]) -> str:
    """Return a short hash of the text of `modules`, the same in every process."""
    return hashlib.sha256(repr((_LOADER, _texts(modules))).encode()).hexdigest()[:16]


def magic() -> bytes:
    """Return what tells this interpreter's bytecode from that of others."""
    return importlib.util.MAGIC_NUMBER


@functools.cache
def _loader(modules: tuple[str, ...], imports: tuple[str, ...], magic: bytes) -> str:
    texts = _texts(modules)
    code = [
        (name, compile(text, f"<guest>/{name}.py", "exec", dont_inherit=True, optimize=2))
        for name, text in texts
    ]
    return _LOADER.format(
        imports=", ".join((*_IMPORTS, *imports)),
        magic=magic,
        code=marshal.dumps(code),
        text=base64.b64encode(zlib.compress(marshal.dumps(texts), 9)).decode(),
    )


def _texts(modules: tuple[str, ...]) -> list[tuple[str, str]]:
    folder = Path(__file__).parent
    return [(name, (folder / f"{name}.py").read_text("utf-8")) for name in modules]

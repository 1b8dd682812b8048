"""Judging assert bodies: the test in one guest, the program in another, the host in between.

The program's guest knows its own source and the arguments of the calls, never the test. The test's
guest holds a stub in place of the function; each call crosses the host as data (see `codec`). So a
program can lie only about what its function returned, which is what the test is there to find out.

Who is at fault when a test ends badly? An assertion: the program's answer was wrong. An exception
that came from a call: the program's runtime error. Any other exception once the program has
answered: its answer had the wrong shape, wrong too. But a test that fails before the first answer,
or that lacks a name or a module, is broken, and a broken test is no verdict: `UnsupportedCase`.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import importlib.util
import marshal
import zlib
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from .base import UnsupportedCase, WorkerDied
from .relay import AssertOutcome, Ended, Relay, driver_limits
from .types import AssertCase, Limits, Program, Status
from .worker import Execution, Session

_MODULES = ("codec", "driver_guest", "candidate_guest")
_CANARY = b"print(42)"

# Compiling the modules would cost more than most programs run; a guest of the same bytecode
# version as the host takes the code as it is.
_LOADER = """\
import base64, marshal, sys, types, zlib
from importlib._bootstrap_external import MAGIC_NUMBER
same = MAGIC_NUMBER == {magic!a}
parts = marshal.loads(zlib.decompress(base64.b64decode({code!a} if same else {text!a})))
sys.modules["sbx_driver"] = types.ModuleType("sbx_driver")
sys.modules["sbx_driver"].__path__ = []
for name, part in parts:
    module = types.ModuleType("sbx_driver." + name)
    module.__package__ = "sbx_driver"
    sys.modules[module.__name__] = module
    exec(part if same else compile(part, "<guest>/%s.py" % name, "exec"), module.__dict__)
"""


class SessionPool(Protocol):
    """What this module needs of a pool."""

    def run(self, source: bytes, stdin: bytes, limits: Limits) -> Execution:
        """Run a program once."""
        ...

    def session(self, source: bytes, limits: Limits) -> AbstractContextManager[Session]:
        """Lease a worker and start a program with a channel."""
        ...


@functools.cache
def fingerprint() -> str:
    """Return a short hash of everything that this module puts into guests."""
    return hashlib.sha256(_loader(_magic()).encode()).hexdigest()[:16]


def judge(
    program: Program,
    case: AssertCase,
    limits: Limits,
    *,
    programs: SessionPool,
    drivers: SessionPool,
) -> AssertOutcome:
    """Run one assert body against a program.

    Args:
        program: the untrusted program.
        case: the trusted test.
        limits: for the program; the test has limits of its own.
        programs: where the program runs.
        drivers: where the test runs; another pool, or a full one would wait for itself.

    Raises:
        UnsupportedCase: the test is broken or passes arguments that cannot be carried.
        SandboxError: a worker failed.
    """
    sources = (
        candidate_source(program, case.entry_point),
        _driver_source(case.body, case.helpers, case.entry_point),
    )
    relay = Relay(case, limits)
    try:
        return _attempt(relay, sources, programs, drivers)
    except WorkerDied:
        broke_before = relay.program_broke
        relay = Relay(case, limits)
    try:
        outcome = _attempt(relay, sources, programs, drivers)
    except WorkerDied as error:
        if not (broke_before and relay.program_broke):
            raise
        programs.run(_CANARY, b"", Limits())  # raises if no worker lives
        facts = Execution(status=Status.RUNTIME_ERROR, retried=True)
        message = f"it broke its sandbox twice: {error}"
        return AssertOutcome(status=Status.RUNTIME_ERROR, execution=facts, message=message)
    return replace(outcome, execution=replace(outcome.execution, retried=True))


def _attempt(
    relay: Relay, sources: tuple[bytes, bytes], programs: SessionPool, drivers: SessionPool
) -> AssertOutcome:
    program_source, driver_source = sources
    # Verdicts are caught inside the blocks: a block left by an exception costs its worker.
    broken: UnsupportedCase | None = None
    with programs.session(program_source, relay.limits) as program:
        ended = relay.load(program)
        if ended is None:
            with drivers.session(driver_source, driver_limits(relay.limits)) as driver:
                try:
                    relay.run(driver)
                except Ended as verdict:
                    ended = verdict
                except UnsupportedCase as error:
                    broken = error
        if broken is None:
            return relay.settle(ended or Ended(Status.ACCEPTED))
    raise broken


def candidate_source(program: Program, entry_point: str) -> bytes:
    """Return what runs in the program's guest."""
    call = f"module.serve({program.source!a}, {entry_point!a})\n"
    return (_loader(_magic()) + call).encode()


@functools.lru_cache(maxsize=1024)
def _driver_source(body: str, helpers: str, entry_point: str) -> bytes:
    call_check = _check_body(body, entry_point)
    arguments = (_completed(helpers), body, entry_point, call_check)
    call = f"sys.modules['sbx_driver.driver_guest'].drive{arguments!a}\n"
    return (_loader(_magic()) + call).encode()


def _check_body(body: str, entry_point: str) -> bool:
    """Validate a test body; return whether its `check` still has to be called."""
    try:
        statements = ast.parse(body).body
    except (SyntaxError, ValueError) as error:
        raise UnsupportedCase(f"the test body does not compile: {error}") from error
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in statements)
    nodes = [node for top in statements for node in ast.walk(top)]
    if not defines and entry_point not in {n.id for n in nodes if isinstance(n, ast.Name)}:
        raise UnsupportedCase(
            f"the test body neither defines `check(candidate)` nor mentions {entry_point!r}, "
            "so it could not fail"
        )
    calls = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check"
        for top in statements
        if not isinstance(top, ast.FunctionDef)
        for node in ast.walk(top)
    )
    return defines and not calls


def _completed(helpers: str) -> str:
    """Return helpers that compile: a prompt may end at the head of the function to be written."""
    for text in (helpers, f"{helpers.rstrip()}\n    pass\n"):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        return text
    raise UnsupportedCase("the trusted helpers of the test do not compile")


def _magic() -> bytes:
    return importlib.util.MAGIC_NUMBER


@functools.cache
def _loader(magic: bytes) -> str:
    folder = Path(__file__).parent
    texts = [(name, (folder / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    code = [
        (name, compile(text, f"<guest>/{name}.py", "exec", dont_inherit=True))
        for name, text in texts
    ]
    return _LOADER.format(magic=magic, code=_packed(code), text=_packed(texts))


def _packed(value: object) -> str:
    return base64.b64encode(zlib.compress(marshal.dumps(value), 9)).decode()  # type: ignore[arg-type]

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
import contextlib
import functools
import hashlib
import importlib.util
import marshal
import textwrap
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from .base import UnsupportedCase, WorkerDied
from .codec import CodecError, Frames, TooLarge, Tree, check, pack
from .types import AssertCase, Limits, Program, Status
from .worker import Execution, Session, WorkerFault

ARGUMENT_BYTES = 1 << 24
"""The longest message from a test to a program."""
_MODULES = ("codec", "driver_guest", "candidate_guest")
_DRIVER_CPU_S = 10.0
_CANARY = b"print(42)"
_MARGIN_S = 30.0
"""How much later than its wall-clock limit a worker may report the end of a session."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertOutcome:
    """What came of one assert body."""

    status: Status
    execution: Execution
    """Facts about the program's process."""
    message: str = ""
    trace: str = ""
    """The program's traceback, its own frames only."""


class _Ended(Exception):
    """The program has a verdict; a status of None stands for that of its execution."""

    def __init__(self, status: Status | None, message: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.trace = trace


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
    relay = _Relay(case, limits)
    try:
        return _attempt(relay, sources, programs, drivers)
    except WorkerDied:
        relay = _Relay(case, limits)
    try:
        outcome = _attempt(relay, sources, programs, drivers)
    except WorkerDied as error:
        if not relay.program_broke:
            raise
        programs.run(_CANARY, b"", Limits())  # raises if no worker lives
        facts = Execution(status=Status.RUNTIME_ERROR, retried=True)
        message = f"it broke its sandbox twice: {error}"
        return AssertOutcome(status=Status.RUNTIME_ERROR, execution=facts, message=message)
    return replace(outcome, execution=replace(outcome.execution, retried=True))


def _attempt(
    relay: _Relay, sources: tuple[bytes, bytes], programs: SessionPool, drivers: SessionPool
) -> AssertOutcome:
    program_source, driver_source = sources
    # Verdicts are caught inside the blocks: a block left by an exception costs its worker.
    broken: UnsupportedCase | None = None
    with programs.session(program_source, relay.limits) as program:
        ended = relay.load(program)
        if ended is None:
            with drivers.session(driver_source, _driver_limits(relay.limits)) as driver:
                try:
                    relay.run(driver)
                except _Ended as verdict:
                    ended = verdict
                except UnsupportedCase as error:
                    broken = error
        if broken is None:
            return relay.settle(ended or _Ended(Status.ACCEPTED))
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


def _driver_limits(limits: Limits) -> Limits:
    """Return limits for the test: it waits while the program runs, and compares large values."""
    return replace(
        limits,
        cpu_s=limits.cpu_s + _DRIVER_CPU_S,
        wall_s=limits.wall_limit_s + 6 * _DRIVER_CPU_S,
        memory_mb=max(512, limits.memory_mb),
    )


class _Relay:
    """Carries messages between one program and one test."""

    def __init__(self, case: AssertCase, limits: Limits) -> None:
        self.limits = limits
        self.program_broke = False
        self._case = case
        self._inbox = Frames(limits.output_bytes)
        self._answered = 0

    def load(self, program: Session) -> _Ended | None:
        """Wait until the program has been loaded; return a verdict if it could not be."""
        self._program = program
        self._deadline = time.monotonic() + self.limits.wall_limit_s + _MARGIN_S
        try:
            kind, *rest = self._from_program("while it was loaded")
        except _Ended as verdict:
            return verdict
        if kind == "ready":
            return None
        if kind == "missing":
            message = f"the program defines no function {self._case.entry_point!r}"
            return _Ended(Status.RUNTIME_ERROR, message)
        status = {"compile_error": Status.COMPILE_ERROR, "load_error": Status.RUNTIME_ERROR}
        if kind not in status or not _all_strings(rest, 2):
            return _forged()
        return _Ended(_memory(rest[0]) or status[kind], rest[0], rest[1])

    def run(self, driver: Session) -> None:
        """Relay calls until the test ends; return if it passed.

        Raises:
            _Ended: it did not.
            UnsupportedCase: the test is broken.
        """
        frames = Frames(ARGUMENT_BYTES)
        trace = ""
        while True:
            kind, *rest = self._from_driver(driver, frames)
            if kind == "done":
                return self._conclude(*rest, trace=trace)
            self._to_program("call", *map(_untupled, rest))
            answer, trace = self._answer()
            self._answered += 1
            driver.send(pack(_untupled(answer)))

    def settle(self, ended: _Ended) -> AssertOutcome:
        """Let the program end, and weigh the kernel's facts against the verdict of the relay."""
        self._to_program("stop")
        if ended.status is Status.ACCEPTED:
            self._drain()
        with self._blaming_program():
            facts = self._program.finish()
        limit_hit = facts.status in (
            Status.TIME_LIMIT_EXCEEDED,
            Status.MEMORY_LIMIT_EXCEEDED,
            Status.OUTPUT_LIMIT_EXCEEDED,
        )
        status = ended.status
        if limit_hit or status is None:
            status = facts.status or Status.RUNTIME_ERROR
        return AssertOutcome(
            status=status, execution=facts, message=ended.message, trace=ended.trace
        )

    def _answer(self) -> tuple[list[Tree], str]:
        """Wait for the answer to a call; return it for the driver, and a traceback if it raised."""
        kind, *rest = self._from_program("during a call")
        if kind == "too_large":
            raise _Ended(Status.OUTPUT_LIMIT_EXCEEDED, "the function returned too large a value")
        if kind == "returned" and len(rest) == 2:
            value, changed = rest
            check(value)
            if changed is not None:
                check(changed)
                if not (isinstance(changed, list) and len(changed) == 2):
                    raise _forged()
                if not (isinstance(changed[0], list) and changed[1][0] == "d"):
                    raise _forged()
            return ["returned", value, changed], ""
        if kind == "raised" and len(rest) == 4 and _all_strings(rest[2:], 2):
            names, arguments, message, trace = rest
            check(arguments)
            if not (isinstance(names, list) and _all_strings(names, len(names))):
                raise _forged()
            return ["raised", names, arguments, message], trace
        raise _forged()

    def _conclude(
        self, kind: str, text: str, line: int, answered: int, last: str, *, trace: str
    ) -> None:
        statement = _statement(self._case.body, line)
        place = f" in `{statement}`" if statement else ""
        if kind == "unsupported":
            raise UnsupportedCase(f"test {self._case.name!r}{place}: {text}")
        if kind == "broken" or not answered:
            what = text or "it never calls the function"
            raise UnsupportedCase(f"test {self._case.name!r} is broken{place}: {what}")
        if kind == "passed":
            return
        if kind == "candidate":
            raise _Ended(_memory(text) or Status.RUNTIME_ERROR, f"{text}{place}", trace)
        if kind == "assertion":
            note = f"; the last call returned {last}" if last else ""
            raise _Ended(Status.WRONG_ANSWER, f"{statement or text}{note}")
        note = f"; the last call returned {last}" if last else ""
        raise _Ended(Status.WRONG_ANSWER, f"{text}{place}{note}")

    def _from_program(self, when: str) -> list[Tree]:
        """Return the program's next message.

        Raises:
            _Ended: it sent none, or none that it may send.
        """
        try:
            while (message := self._inbox.pop()) is None:
                left = self._deadline - time.monotonic()
                with self._blaming_program():
                    data = self._program.receive(max(0.0, left))
                if data is None:
                    raise _Ended(None, f"the program ended {when}")
                self._inbox.feed(data)
        except TooLarge as error:
            raise _Ended(
                Status.OUTPUT_LIMIT_EXCEEDED, "the function returned too large a value"
            ) from error
        except CodecError as error:
            raise _forged() from error
        except TimeoutError as error:
            raise _Ended(Status.TIME_LIMIT_EXCEEDED, f"the program was silent {when}") from error
        return list(message)

    def _from_driver(self, driver: Session, frames: Frames) -> list[Tree]:
        limit = self.limits.wall_limit_s + 6 * _DRIVER_CPU_S + _MARGIN_S
        try:
            while (message := frames.pop()) is None:
                data = driver.receive(limit)
                if data is None:
                    raise self._blame_for_driver(driver)
                frames.feed(data)
        except TooLarge as error:
            raise UnsupportedCase(
                f"test {self._case.name!r} passes an argument that is too large: {error}"
            ) from error
        except TimeoutError as error:
            raise WorkerDied(f"the driver of test {self._case.name!r} fell silent") from error
        return list(message)

    def _blame_for_driver(self, driver: Session) -> Exception:
        """Return the verdict on a test that ended without a word.

        Values of the program may make an honest test loop for ever or fill its memory, so from its
        first answer on that counts against the program, as it would had both shared a process.
        """
        facts = driver.finish()
        why = facts.status or f"exit status {facts.exit_code}"
        if self._answered:
            return _Ended(
                facts.status or Status.WRONG_ANSWER,
                f"with the values that the program returned, the test did not finish ({why})",
            )
        tail = facts.stderr.decode("utf-8", "replace").strip()[-500:]
        return UnsupportedCase(f"test {self._case.name!r} is broken ({why}): {tail or 'no output'}")

    def _drain(self) -> None:
        try:
            with self._blaming_program():
                while self._program.receive(1.0) is not None:
                    pass
        except TimeoutError:
            pass  # `finish` kills it

    def _to_program(self, *message: Tree) -> None:
        with self._blaming_program():
            self._program.send(pack(list(message)))

    @contextlib.contextmanager
    def _blaming_program(self) -> Iterator[None]:
        """Note on whose side a worker broke."""
        try:
            yield
        except WorkerFault:
            self.program_broke = True
            raise


def _forged() -> _Ended:
    return _Ended(Status.RUNTIME_ERROR, "the program wrote to the channel of its caller")


def _memory(text: str) -> Status | None:
    return Status.MEMORY_LIMIT_EXCEEDED if text.startswith("MemoryError") else None


def _all_strings(values: list[Tree], count: int) -> bool:
    return len(values) == count and all(isinstance(value, str) for value in values)


def _untupled(tree: Tree) -> Tree:
    """Return the JSON-able form of a parsed tree: tags become objects again."""
    if isinstance(tree, list):
        return [_untupled(item) for item in tree]
    if isinstance(tree, tuple):
        return {tree[0]: _untupled(tree[1])}
    return tree


def _statement(body: str, line: int) -> str:
    """Return the innermost statement of `body` that covers `line`, on one line."""
    found: ast.stmt | None = None
    for node in ast.walk(ast.parse(body)):
        if (
            isinstance(node, ast.stmt)
            and node.lineno <= line <= (node.end_lineno or 0)
            and (found is None or node.lineno >= found.lineno)
        ):
            found = node
    text = ast.get_source_segment(body, found) if found is not None else None
    return textwrap.shorten(text, 300, placeholder=" ...") if text else ""


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

"""Any text generator, called from many threads: a function from a prompt to a text, async or not.

`Generator` makes it a blocking call; `Workers` keeps a bounded number of calls in flight. Nothing
here outlives an interrupt: threads are daemons, and whatever they still wait for is left behind.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from .errors import InvalidSetting

TextGenerator = Callable[..., str | Awaitable[str]]
"""From a prompt to a text, or to something to await that gives one. If it takes a keyword
`max_tokens`, it is told how long the text should be at most."""

PROGRAMMING_ERRORS: Final = (
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    SyntaxError,
    TypeError,
)
"""What a generator raises where it has a bug: asking again costs time and mends nothing."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def may_come_again(error: BaseException, failures: tuple[type[Exception], ...] | None) -> bool:
    """Whether a call that raised is a failed one, worth another try, and no end of everything.

    Args:
        error: what was raised.
        failures: exceptions that are failures; None: all but `PROGRAMMING_ERRORS`. `InvalidSetting`
            never is one.

    Example:
        >>> may_come_again(ConnectionError(), None), may_come_again(NameError(), None)
        (True, False)
    """
    if isinstance(error, InvalidSetting):
        return False
    if failures is None:
        return isinstance(error, Exception) and not isinstance(error, PROGRAMMING_ERRORS)
    return isinstance(error, failures)


class _Closing:
    """Base of what a `with` closes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class Generator(_Closing):
    """A text generator as a blocking function for any number of threads.

    An async generator runs in an event loop of its own, one for all calls, in a thread of its own:
    so it works where a loop is running already, and may share a client between its calls.

    Args:
        generate: see `TextGenerator`.

    Raises:
        InvalidSetting: it cannot be called.
    """

    def __init__(self, generate: TextGenerator) -> None:
        if not callable(generate):
            raise InvalidSetting(
                "generate is a function from a prompt to a text, async or not, got a "
                f"{type(generate).__name__}"
            )
        self._generate = generate
        self._takes_max_tokens = _takes(generate, "max_tokens")
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, prompt: str, max_tokens: int) -> str:
        """Return the text for `prompt`.

        Raises:
            InvalidSetting: the generator gave something that is no text.
            Exception: whatever the generator raises.
        """
        extra: dict[str, Any] = {"max_tokens": max_tokens} if self._takes_max_tokens else {}
        text: Any = self._generate(prompt, **extra)
        if inspect.isawaitable(text):
            text = asyncio.run_coroutine_threadsafe(_await(text), self._running_loop()).result()
        if not isinstance(text, str):
            raise InvalidSetting(
                f"generate must return a text (str), got a {type(text).__name__}: {text!r:.80}"
            )
        return text

    def close(self) -> None:
        """Cancel what is still awaited, and end the event loop."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run, args=(self._loop,), name="text-generator", daemon=True
                ).start()
            return self._loop


class Workers(_Closing, Generic[Key, Value]):
    """Daemon threads that make calls, at most so many at a time.

    Args:
        limit: calls in flight at most.

    Raises:
        InvalidSetting: `limit` is below 1.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise InvalidSetting(f"at least one call must be in flight at a time, got {limit}")
        self.limit = limit
        self.open = 0
        """Calls whose results have not been taken."""
        self.stopping = threading.Event()
        """Set by `close`; for calls that wait."""
        self._threads = 0
        self._todo: SimpleQueue[tuple[Key, Callable[[], Value]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Key, Value | BaseException]] = SimpleQueue()

    @property
    def free(self) -> int:
        """Calls that could be started and would not have to wait."""
        return self.limit - self.open

    def start(self, key: Key, call: Callable[[], Value]) -> None:
        """Start a call in another thread."""
        self.open += 1
        if self._threads < min(self.open, self.limit):
            self._threads += 1
            threading.Thread(target=self._work, name="text-call", daemon=True).start()
        self._todo.put((key, call))

    def take(self) -> tuple[Key, Value | BaseException]:
        """Wait for the next result, in the order of completion: a value, or what was raised."""
        key, result = self._done.get()
        self.open -= 1
        return key, result

    def close(self) -> None:
        """Drop the calls that were not begun; those in flight are left behind."""
        self.stopping.set()
        for _ in range(self._threads):
            self._todo.put(None)

    def _work(self) -> None:
        while (item := self._todo.get()) is not None:
            key, call = item
            if self.stopping.is_set():
                return
            try:
                result: Value | BaseException = call()
            except BaseException as error:
                result = error
            self._done.put((key, result))


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function takes a keyword of that name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin, say
        return False
    return any(
        one.kind is one.VAR_KEYWORD
        or (one.name == name and one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD))
        for one in parameters
    )


async def _await(awaitable: Awaitable[str]) -> str:
    return await awaitable


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; then cancel what is left, and close it."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(_all(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _all(tasks: set[asyncio.Task[Any]]) -> Coroutine[Any, Any, Any]:
    async def wait() -> None:
        await asyncio.gather(*tasks, return_exceptions=True)

    return wait()

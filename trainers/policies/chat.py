"""A policy behind an OpenAI-compatible address: vLLM, llama.cpp, SGLang, a hosted service.

It speaks text, not token ids, so it plays and reads but cannot be trained.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ConfigError
from ..rollout import FinishReason, Generation, Request
from .base import GenerationFailed

if TYPE_CHECKING:
    import httpx

LONGEST_DELAY_S = 60.0
"""The longest pause before a request is made again, also where the server asks for a longer one."""

_REFUSED = {
    401: "the key is missing or wrong",
    403: "the key may not do this",
    404: "there is no such address, or no such model",
}
_PASSING = frozenset({408, 409, 425, 429})


class ChatPolicy:
    """Asks a server for chat completions: one user message, one reply.

    Connections are kept open, for as long as the event loop that they are used in. What may pass
    (no connection, a timeout, 429, 5xx, a reply that is not what it should be) is tried again,
    after a pause that doubles each time, or after as long as the server asks for.

    Args:
        url: e.g. "http://localhost:8000/v1"; without a path, "/v1" is added.
        model: its name on the server; None: the only one that there is.
        name: the policy's name, stamped on its generations; the model's by default.
        key: sent as a bearer token; None: no key.
        timeout_s: for one reply.
        retries: further tries.
        delay_s: before the first further try.
        extra: more fields of the request, e.g. `{"top_p": 0.95}`; None as a value leaves a field
            out.

    Raises:
        ConfigError: the address is none.
        ImportError: httpx is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        name: str | None = None,
        key: str | None = None,
        timeout_s: float = 600.0,
        retries: int = 4,
        delay_s: float = 1.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._httpx = _import_httpx()
        self.url = _base(url)
        self.model = model
        self.name = name or model or "chat"
        self.version = 0
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout_s = timeout_s
        self._retries = retries
        self._delay_s = delay_s
        self._extra = dict(extra or {})
        self._clients: dict[
            asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, asyncio.Task[None]]
        ] = {}

    def __repr__(self) -> str:
        return f"ChatPolicy({self.url!r}, model={self.model!r})"

    async def generate(self, request: Request) -> Generation:
        """Answer one request.

        Raises:
            GenerationFailed: no reply came, or one without text, or the server does not take this
                prompt (it may be longer than the model's context).
            ConfigError: the server refuses any request: wrong key, address or model.
        """
        if self.model is None:
            self.model = await self._only_model()
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": _encodable(request.prompt)}],
            "max_tokens": request.sampling.max_tokens,
            "temperature": request.sampling.temperature,
            "seed": request.seed % 2**31,
            **self._extra,
        }
        body = {field: value for field, value in body.items() if value is not None}
        text, reason = await self._patiently("POST", "/chat/completions", _completion, json=body)
        if not text.strip():
            raise GenerationFailed(
                f"{self.url} gave a reply without text (finish_reason {reason!r}): a model that "
                f"thinks may have spent its {request.sampling.max_tokens} tokens on that; raise "
                "the token cap, or switch thinking off where the model is served"
            )
        finish: FinishReason = "length" if reason == "length" else "stop"
        return Generation(
            text=text, finish_reason=finish, policy=self.name, policy_version=self.version
        )

    async def find_server(self) -> None:
        """Make sure that someone takes connections at the address, before many requests wait.

        Raises:
            ConfigError: nobody does.
        """
        for left in range(self._retries, -1, -1):
            try:
                await self._client().get(self.url + "/models")
            except (self._httpx.ConnectError, self._httpx.ConnectTimeout) as error:
                if not left:
                    raise ConfigError(
                        f"nobody answers at {self.url} ({type(error).__name__}: {error}); start "
                        "the server, or mend the address"
                    ) from error
                wait = self._delay_s * 2 ** (self._retries - left)
                await asyncio.sleep(min(wait, LONGEST_DELAY_S))
            except self._httpx.TransportError:
                return  # someone is there, if slow
            else:
                return

    async def _only_model(self) -> str:
        names = await self._patiently("GET", "/models", _model_names)
        if len(names) != 1:
            raise ConfigError(
                f"{self.url} serves {len(names)} models ({', '.join(names[:8]) or 'none'}); name "
                "the one that is meant"
            )
        only: str = names[0]
        return only

    async def _patiently(self, method: str, path: str, read: Any, **content: Any) -> Any:
        """Make a request until it succeeds, and read what came."""
        for left in range(self._retries, -1, -1):
            wait = self._delay_s * 2 ** (self._retries - left)
            try:
                response = await self._client().request(method, self.url + path, **content)
            except (self._httpx.TransportError, self._httpx.DecodingError) as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if response.is_success:
                    try:
                        return read(response.json())
                    except (ValueError, LookupError, TypeError, AttributeError) as error:
                        reason = f"a reply that is no chat completion ({error!r:.100})"
                else:
                    reason = self._refusal(response)
                    wait = max(wait, _asked_to_wait(response))
            if left:
                await asyncio.sleep(min(wait, LONGEST_DELAY_S))
        raise GenerationFailed(
            f"{self.url}{path} gave no reply in {self._retries + 1} tries; the last: {reason}"
        )

    def _refusal(self, response: httpx.Response) -> str:
        """Return what the server says that may pass; raise for what will not."""
        status = response.status_code
        said = f"HTTP {status}: {response.text[:300].strip()}"
        if status in _REFUSED:
            raise ConfigError(f"{self.url} refuses ({_REFUSED[status]}): {said}")
        if status < 500 and status not in _PASSING:
            raise GenerationFailed(f"{self.url} does not take the request: {said}")
        return said

    def _client(self) -> httpx.AsyncClient:
        """Return the client of the running event loop, which closes it when it ends."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for ended in [other for other in self._clients if other.is_closed()]:
                del self._clients[ended]
            client = self._httpx.AsyncClient(
                headers=self._headers,
                timeout=self._httpx.Timeout(self._timeout_s, connect=min(10.0, self._timeout_s)),
                limits=self._httpx.Limits(max_connections=None),
                # Reading all certificates takes longer than a request on this machine.
                verify=self.url.startswith("https:"),
            )
            self._clients[loop] = client, loop.create_task(_hold(client))
        return self._clients[loop][0]


async def _hold(client: httpx.AsyncClient) -> None:
    """Close a client when the event loop cancels its tasks, as it does before it ends."""
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await client.aclose()


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which no JSON can carry."""
    return text.encode("utf-8", "replace").decode()


def _completion(reply: Any) -> tuple[str, str]:
    choice = reply["choices"][0]
    text = choice["message"]["content"]
    if text is None:  # of a model that only thought
        text = ""
    if not isinstance(text, str):
        raise TypeError(f"content is a {type(text).__name__}")
    return text, choice.get("finish_reason") or ""


def _model_names(reply: Any) -> list[str]:
    return [str(model["id"]) for model in reply["data"]]


def _asked_to_wait(response: httpx.Response) -> float:
    """Return the seconds of a Retry-After header; 0 where there is none, or a date."""
    try:
        seconds = float(response.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _base(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(
            f"expected an address such as 'http://localhost:8000/v1', got {url!r:.100}"
        )
    base = url.rstrip("/").removesuffix("/chat/completions")
    return base if parts.path.strip("/") else f"{base}/v1"


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise ImportError(
            "models behind an address need httpx; install the extra: "
            "pip install 'mars-envs[client]'"
        ) from error
    return httpx

"""The Kubernetes API on a loopback address, in a thread of the test: for clients with sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from equipoise.adapters.kubernetes.api.server import ApiServer, ServerOptions
from equipoise.adapters.kubernetes.api.store import ObjectStore

Result = TypeVar("Result")
_START_S = 30.0


class ServedApi:
    """A server in a thread. The clock of its store is ``now_ms``."""

    def __init__(self, options: ServerOptions | None = None) -> None:
        self.now_ms = 0
        self.store = ObjectStore(lambda: self.now_ms)
        self.server = ApiServer(self.store, options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self.server.start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        assert self.server.bugs == []

    @property
    def url(self) -> str:
        """Return where the server is."""
        return self.server.url

    def run(self, work: Any) -> Any:
        """Run a coroutine in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    def call(self, work: Callable[[], Result]) -> Result:
        """Call a function in the thread of the server, where the store may be changed."""

        async def called() -> Result:
            return work()

        result: Result = self.run(called())
        return result

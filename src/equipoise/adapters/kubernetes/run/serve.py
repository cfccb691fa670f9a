"""Serves the API of a simulated cluster to kubectl and any other client, at a pace or by steps.

A ConfigMap shows the time of the cluster. Without a pace, time passes when a client writes to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final

from equipoise.adapters.kubernetes.api.resources import CONFIG_MAPS, NODES
from equipoise.adapters.kubernetes.api.server import ApiServer, ServerOptions
from equipoise.adapters.kubernetes.api.store import Change, Object, ObjectStore
from equipoise.adapters.kubernetes.cluster.simulated_cluster import (
    ClusterOptions,
    SimulatedCluster,
)
from equipoise.adapters.kubernetes.run.driver import submit
from equipoise.adapters.kubernetes.run.scheduler import kubeconfig_content
from equipoise.adapters.kubernetes.run.session import EPOCH_MS
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.errors import InvalidInput
from equipoise.sim.pods.pod_time import PodTime

CLOCK_NAMESPACE: Final = "kube-system"
CLOCK_NAME: Final = "equipoise-clock"
UNTIL_KEY: Final = "until"
"""Seconds: a client writes here how far time may pass."""
NOW_KEY: Final = "now"
_TICK_S: Final = 0.02
_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How a cluster is served."""

    server: ServerOptions = field(default_factory=ServerOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    pace: float = 1.0
    """Seconds of the cluster per second; 0 if time passes by steps only."""
    kubeconfig: Path | None = None


class ServedCluster:
    """A cluster with its API, while it is served. ``report`` receives what could not be done."""

    def __init__(
        self,
        workload: PodWorkload,
        options: ServeOptions,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._workload = workload
        self._report = report
        self._options = options
        self.time = PodTime()
        self.store = ObjectStore(self.time, epoch_ms=EPOCH_MS)
        self.cluster = SimulatedCluster(self.store, options.cluster, time=self.time)
        self.server = ApiServer(self.store, options.server)
        self._arrived = 0
        self._until_ms = 0
        self._woken = asyncio.Event()
        for node in workload.nodes:
            self.store.create(NODES, node)
        self.cluster.advance(0)
        self._write_clock()
        self.store.subscribe(self._on_change)

    async def serve(self, ready: Callable[[str], None]) -> None:
        """Serve until the task is cancelled; ``ready`` receives the address."""
        await self.server.start()
        try:
            if self._options.kubeconfig is not None:
                _write_private(self._options.kubeconfig, json.dumps(self._kubeconfig()))
            ready(self.server.url)
            await self._follow()
        finally:
            await self.server.stop()

    def _kubeconfig(self) -> Object:
        options = self._options.server
        # An address that stands for all of the machine is none that a client can name.
        url = self.server.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        authority = b"" if options.certificate is None else options.certificate.read_bytes()
        return kubeconfig_content(url, options.token, authority)

    async def _follow(self) -> None:
        """Let time pass; what clients write has its effects at once."""
        began_s, pace = perf_counter(), self._options.pace
        while True:
            if pace:
                self._until_ms = int((perf_counter() - began_s) * pace * _MS_PER_S)
            self._advance(max(self._until_ms, self.time.now_ms))
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _TICK_S if pace else None)

    def _advance(self, to_ms: int) -> None:
        """Deliver what is due up to a time."""
        arrivals = self._workload.arrivals
        while self._arrived < len(arrivals) and arrivals[self._arrived][0] <= to_ms:
            at_ms, manifest = arrivals[self._arrived]
            self._arrived += 1
            self.cluster.advance(max(at_ms, self.time.now_ms))
            try:
                submit(self.store, manifest)
            except InvalidInput as error:
                # A client may have made an object of this name: the others still arrive.
                self._report(str(error))
        self.cluster.advance(to_ms)
        if self._options.pace == 0:
            self._write_clock()

    def _write_clock(self) -> None:
        now = f"{self.time.now_ms / _MS_PER_S:g}"
        body: Object = {
            "metadata": {"name": CLOCK_NAME, "namespace": CLOCK_NAMESPACE},
            "data": {NOW_KEY: now, UNTIL_KEY: now},
        }
        if self.store.find(CONFIG_MAPS, CLOCK_NAME, CLOCK_NAMESPACE) is None:
            self.store.create(CONFIG_MAPS, body, CLOCK_NAMESPACE)
            return

        def with_time(stored: Object) -> Object:
            return stored | {"data": {**stored.get("data", {}), NOW_KEY: now}}

        self.store.update(CONFIG_MAPS, CLOCK_NAME, CLOCK_NAMESPACE, with_time)

    def _on_change(self, change: Change) -> None:
        metadata = change.object["metadata"]
        if change.resource is CONFIG_MAPS and metadata["name"] == CLOCK_NAME:
            # Any other text is no time, and has no effect.
            with suppress(ValueError, TypeError):
                asked = float(change.object.get("data", {}).get(UNTIL_KEY, 0))
                if 0 <= asked < _SECONDS_MAX:
                    self._until_ms = max(self._until_ms, round(asked * _MS_PER_S))
        self._woken.set()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read: it may have the token."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text, encoding="utf-8")


_SECONDS_MAX: Final = 1e12

"""Requests that only version 5 has: calls with a name or a period, probes, and an early stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

from equipoise.adapters.batsim.protocol.actors import Actor, Script, Send, Sleep
from equipoise.adapters.batsim.protocol.messages import SchedulerError, rounded
from equipoise.sim.jobs.host_set import format_host_set, parse_host_set

if TYPE_CHECKING:
    from equipoise.adapters.batsim.protocol.server import Server


@dataclass(slots=True, eq=False)
class Repetition:
    """Something that happens at every multiple of a period, after an offset."""

    period_ms: int
    offset_ms: int
    left: int | None
    """How often it still happens; None if for ever."""
    report: Callable[[int, bool], None]
    """Receives how often it has happened, and if this is the last time."""
    stopped: bool = False

    def next_tick(self, now_s: float) -> int:
        """Return the number of the first tick after a time."""
        tick = floor((now_s * 1000 - self.offset_ms) / self.period_ms)
        while self.at_s(tick) <= now_s:
            tick += 1
        return max(tick, 0 if self.offset_ms else 1)

    def at_s(self, tick: int) -> float:
        """Return the time of a tick."""
        return (self.offset_ms + tick * self.period_ms) / 1000


class PeriodicRequests:
    """Executes the requests of version 5; the end of the run waits for calls and probes."""

    def __init__(self, server: Server, call_at: Callable[[Mapping[str, Any]], None]) -> None:
        self._server = server
        self._call_at = call_at
        self._calls: dict[str, Repetition] = {}
        self._probes: dict[str, Repetition] = {}
        self.handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "CALL_ME_LATER": self._call_later,
            "STOP_CALL_ME_LATER": lambda data: self._stop(self._calls, data["id"]),
            "CREATE_PROBE": self._create_probe,
            "STOP_PROBE": lambda data: self._stop(self._probes, data["id"]),
            "FORCE_SIMULATION_STOP": lambda data: server.stop(),
        }

    def _call_later(self, data: Mapping[str, Any]) -> None:
        if "period_ms" not in data:
            self._call_at(data)
            return
        name = data["id"]

        def report(count: int, last: bool) -> None:
            self._server.add_event("REQUESTED_CALL", {"id": name, "last": last})

        self._begin("CALL_ME_LATER", self._calls, data, report)

    def _create_probe(self, data: Mapping[str, Any]) -> None:
        simulation = self._server.simulation
        if not simulation.options.energy:
            raise SchedulerError("CREATE_PROBE", "the energy mode is off", "use --energy")
        numbers = parse_host_set(data["resources"])
        if not numbers or numbers[-1] >= len(simulation.engine.platform.hosts):
            raise SchedulerError("CREATE_PROBE", "names an unknown host", "name known hosts")
        hosts = simulation.engine.hosts

        def report(count: int, last: bool) -> None:
            now_s = simulation.now_s
            each = [rounded(hosts.energy_j([number], now_s)) for number in numbers]
            share = len(each) if data["aggregate"] == "mean" else 1
            value = each if data["aggregate"] == "none" else rounded(sum(each) / share)
            # The first tick begins the measurement and reports nothing, as in Batsim.
            probe = {"id": data["id"], "resources": format_host_set(numbers), "value": value}
            if count > 1:
                self._server.add_event("PROBE_DATA", {**probe, "count": count - 1})

        count = data["count"]
        later = {**data, "count": None if count is None else count + 1}
        self._begin("CREATE_PROBE", self._probes, later, report)

    def _begin(
        self,
        kind: str,
        known: dict[str, Repetition],
        data: Mapping[str, Any],
        report: Callable[[int, bool], None],
    ) -> None:
        name = data["id"]
        if name in known:
            raise SchedulerError(kind, f"the id {name!r} is in use", "use another id")
        repetition = Repetition(data["period_ms"], data["offset_ms"], data["count"], report)
        known[name] = repetition
        self._server.calls += 1
        script = self._repeat(repetition, lambda: self._end(known, name))
        self._server.actors.append(Actor(self._server.simulation.master, script))

    def _repeat(self, repetition: Repetition, end: Callable[[], None]) -> Script:
        server = self._server
        tick = repetition.next_tick(server.now_s)
        count = 0
        while True:
            yield Sleep(max(repetition.at_s(tick) - server.now_s, 0.0))
            if repetition.stopped:
                return
            tick, count = tick + 1, count + 1
            last = count == repetition.left
            due = partial(_fire, repetition, count, end if last else None)
            yield Send(server.simulation.mailbox, server.due_note(due))
            if last:
                return

    def _end(self, known: dict[str, Repetition], name: str) -> None:
        del known[name]
        self._server.calls -= 1

    def _stop(self, known: dict[str, Repetition], name: str) -> None:
        # Batsim warns of an unknown name and goes on.
        if name in known:
            known[name].stopped = True
            self._end(known, name)


def _fire(repetition: Repetition, count: int, end: Callable[[], None] | None) -> None:
    if repetition.stopped:
        return
    repetition.report(count, end is not None)
    if end is not None:
        end()

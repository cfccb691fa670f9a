"""An independent audit of a journal: where each VM runs, from the events alone.

Uses neither ``transition`` nor any index. A VM that is started while it runs, moved from where it
is not, or that runs on a host that is not on, is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model import event as happened
from equipoise.model.action import (
    Boot,
    EnterMaintenance,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Shutdown,
)
from equipoise.model.event import Event
from equipoise.model.plan import Step


class PlacementAuditor:
    """Tracks the host of every VM."""

    def __init__(self) -> None:
        self.runs_on: dict[str, str | None] = {}
        """The host of every present VM."""
        self.on: dict[str, bool] = {}
        self.under_way: dict[tuple[str, int], Step] = {}
        self.findings: list[str] = []
        self.seen: set[str] = set()
        """Every VM that ever existed."""
        self.left: set[str] = set()

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            self._apply_event(event)

    def _apply_event(self, event: Event) -> None:
        match event:
            case happened.ActionStarted():
                self.under_way[event.step.id, event.attempt] = event.step
            case happened.ActionFinished():
                self._finish(event)
            case happened.ActionFailed() | happened.ActionLost():
                self.under_way.pop((event.step, event.attempt), None)
            case happened.HostChanged() | happened.VmChanged():
                self.findings.append(f"{event.at_ms}: the loop was surprised: {event}")
            case _:
                self._apply_vm_event(event)
                self._apply_host_event(event)

    def _apply_vm_event(self, event: Event) -> None:
        match event:
            case happened.ClusterLoaded():
                for vm in event.inventory.vms:
                    self._appear(vm.id, vm.host if vm.state == "running" else None)
            case happened.VmArrived():
                self._appear(event.vm.id, event.vm.host)
            case happened.VmLeft():
                self._leave(event.vm)
            case happened.VmCrashed():
                self._stop(event.vm)

    def _apply_host_event(self, event: Event) -> None:
        match event:
            case happened.ClusterLoaded():
                self.on |= {host.id: host.state == "on" for host in event.inventory.hosts}
            case happened.HostJoined():
                self.on[event.host.id] = event.host.state == "on"
            case happened.HostFailed():
                self._lose_host(event.host)
                self.on[event.host] = False
            case happened.HostLeft():
                self._lose_host(event.host)
                del self.on[event.host]
            case happened.HostRecovered():
                self.on[event.host] = True

    def _finish(self, event: happened.ActionFinished) -> None:
        step = self.under_way.pop((event.step, event.attempt), None)
        if step is None:
            self.findings.append(f"{event.at_ms}: {event.step} finished without a start")
            return
        match step.action:
            case Boot(vm=vm, target=target):
                if self.runs_on.get(vm) is not None:
                    self.findings.append(f"{event.at_ms}: {vm} runs twice")
                self._run(vm, target, event.at_ms)
            case (
                Migrate(vm=vm, source=source, target=target)
                | Reinstantiate(vm=vm, source=source, target=target)
            ):
                if self.runs_on.get(vm) != source:
                    self.findings.append(f"{event.at_ms}: {vm} was moved from where it is not")
                self._run(vm, target, event.at_ms)
            case Shutdown(vm=vm):
                self._stop(vm)
            case PowerOn(host=host) | LeaveMaintenance(host=host):
                self.on[host] = True
            case PowerOff(host=host) | EnterMaintenance(host=host):
                if host in self.runs_on.values():
                    self.findings.append(f"{event.at_ms}: {host} was switched off with VMs on it")
                self.on[host] = False
            case other:
                self.findings.append(f"the auditor does not know {other}")

    def _appear(self, vm: str, host: str | None) -> None:
        if vm in self.seen:
            self.findings.append(f"{vm} came twice")
        self.seen.add(vm)
        self.runs_on[vm] = host

    def _run(self, vm: str, host: str, at_ms: int) -> None:
        if vm not in self.runs_on:
            self.findings.append(f"{at_ms}: {vm} does not exist")
        if not self.on.get(host):
            self.findings.append(f"{at_ms}: {vm} runs on {host}, which is not on")
        self.runs_on[vm] = host

    def _stop(self, vm: str) -> None:
        self.runs_on[vm] = None
        self._forget(lambda step: step.footprint.vm == vm)

    def _leave(self, vm: str) -> None:
        del self.runs_on[vm]
        self.left.add(vm)
        self._forget(lambda step: step.footprint.vm == vm)

    def _lose_host(self, host: str) -> None:
        for vm, place in self.runs_on.items():
            if place == host:
                self.runs_on[vm] = None
        self._forget(lambda step: host in step.footprint.hosts)

    def _forget(self, ended: object) -> None:
        assert callable(ended)
        self.under_way = {key: step for key, step in self.under_way.items() if not ended(step)}

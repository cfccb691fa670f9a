"""Plans by chance that machines can carry out, and that often do several things at once.

A VM does one thing after the other. A host that wakes is used once it is awake; one that is to
sleep is left by everybody first. Whoever comes to a host finds room for all who are ever on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from equipoise.fuzz.generate.cluster import weighed, within
from equipoise.fuzz.generate.options import Options
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.change.lifecycle import passage
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Limits, Step
from equipoise.model.quantity import HostId, ResourceName, StepId
from equipoise.model.vm import Vm, VmState
from equipoise.spec.functions import kind_of

_ALLOCATED: Final = 0.2
"""How many of those who stay where they are get another amount of something."""


def draw_plan(
    rng: Random, options: Options, hosts: Sequence[Host], vms: Sequence[Vm], limits: Limits
) -> tuple[Step, ...]:
    """Some steps for a cluster."""
    drawer = _Drawer(rng, options, hosts, vms, limits)
    drawer.wake_hosts()
    for vm in rng.sample(list(vms), len(vms)):
        drawer.move(vm)
    drawer.put_to_sleep()
    return tuple(drawer.steps)


class _Drawer:
    def __init__(
        self,
        rng: Random,
        options: Options,
        hosts: Sequence[Host],
        vms: Sequence[Vm],
        limits: Limits,
    ) -> None:
        self._rng = rng
        self._options = options
        self._hosts = hosts
        self._limits = limits
        self.steps: list[Step] = []
        self._awake_s = {host.id: 0 for host in hosts if host.state is HostState.ON}
        """From when on each host may be used."""
        self._busy_s: dict[HostId, int] = {}
        """Until when something happens at each host."""
        self._room = {host.id: dict(host.capacity) for host in hosts}
        for vm in vms:
            if vm.host is not None:
                self._take(vm.host, vm.consumption)
        leaving = [host.id for host in hosts if host.state is HostState.ON and self._is_switched()]
        self._leaving = frozenset(leaving)
        self._homes: dict[HostId, int] = {}
        self._total = len(vms) * 1000 if options.total is None else within(rng, options.total)

    def _is_switched(self) -> bool:
        return self._rng.random() < self._options.switched

    # Hosts

    def wake_hosts(self) -> None:
        """Let some of the hosts that sleep wake up."""
        for host in self._hosts:
            if host.state is HostState.STANDBY and self._is_switched():
                step = self._step(PowerOn(host=host.id), 0)
                self._awake_s[host.id] = step.end_ms // 1000

    def put_to_sleep(self) -> None:
        """Switch off the hosts that everybody has left."""
        for host in sorted(self._leaving):
            if not self._homes.get(host):
                self._step(PowerOff(host=host), self._busy_s.get(host, 0))

    # VMs

    def move(self, vm: Vm) -> None:
        """Let something happen to a VM, or nothing."""
        free_s = 0
        for _ in range(within(self._rng, self._options.actions)):
            action = self._action(vm)
            if action is None or self._is_out(action):
                break
            target = action.target if isinstance(action, Boot | Migrate | Resume) else None
            if target is not None:
                free_s = max(free_s, self._awake_s[target])
                if target != vm.host:
                    self._take(target, vm.consumption)
            step = self._step(action, free_s, vm.host, target)
            free_s = step.end_ms // 1000
            vm = _after(vm, action)
        if vm.host is not None:
            self._homes[vm.host] = self._homes.get(vm.host, 0) + 1

    def _is_out(self, action: Action) -> bool:
        return len(self.steps) >= self._total or kind_of(action) not in self._options.kinds

    def _action(self, vm: Vm) -> Action | None:
        """Something that can be done to a VM in the state it is in."""
        end = weighed(self._rng, self._options.end_states)
        if end is VmState.TERMINATED and vm.state is not VmState.TERMINATED:
            return Kill(vm=vm.id)
        match vm.state:
            case VmState.INIT:
                return Forge(vm=vm.id)
            case VmState.READY:
                target = self._target(vm)
                return None if target is None else Boot(vm=vm.id, target=target)
            case VmState.SLEEPING:
                assert vm.host is not None
                target = self._rng.choice((vm.host, self._target(vm)))
                if target is None or vm.host not in self._awake_s:
                    return None
                return Resume(vm=vm.id, source=vm.host, target=target)
            case VmState.RUNNING:
                return self._from_running(vm, end)
        return None

    def _from_running(self, vm: Vm, end: VmState) -> Action | None:
        assert vm.host is not None
        match end:
            case VmState.READY:
                return Shutdown(vm=vm.id, source=vm.host)
            case VmState.SLEEPING:
                return Suspend(vm=vm.id, source=vm.host)
        if vm.host not in self._leaving and self._rng.random() < _ALLOCATED:
            return self._allocation(vm)
        target = self._target(vm)
        return None if target is None else Migrate(vm=vm.id, source=vm.host, target=target)

    def _allocation(self, vm: Vm) -> Action | None:
        """Another amount of something: as much as it has at the most, which is there."""
        if not vm.consumption:
            return None
        name = self._rng.choice(sorted(vm.consumption))
        amount = self._rng.randint(0, vm.consumption[ResourceName(name)])
        return Allocate(vm=vm.id, resource=ResourceName(name), amount=amount)

    def _target(self, vm: Vm) -> HostId | None:
        """A host with room, other than its own."""
        fitting = [
            host
            for host in self._awake_s
            if host != vm.host
            and host not in self._leaving
            and all(
                amount <= self._room[host].get(name, 0) for name, amount in vm.consumption.items()
            )
        ]
        return self._rng.choice(fitting) if fitting else None

    def _take(self, host: HostId, amounts: Mapping[ResourceName, int]) -> None:
        room = self._room[host]
        for name, amount in amounts.items():
            if amount:
                room[name] = room.get(name, 0) - amount

    # Times

    def _step(self, action: Action, from_s: int, *hosts: HostId | None) -> Step:
        start = from_s + within(self._rng, self._options.waits)
        length = max(1, within(self._rng, self._options.seconds))
        while not self._is_quiet(start, start + length, hosts):
            start += 1
        step = Step(
            id=StepId(f"s{len(self.steps) + 1}"),
            action=action,
            start_ms=1000 * start,
            end_ms=1000 * (start + length),
        )
        self.steps.append(step)
        for host in hosts:
            if host is not None:
                self._busy_s[host] = max(self._busy_s.get(host, 0), start + length)
        return step

    def _is_quiet(self, start: int, end: int, hosts: Sequence[HostId | None]) -> bool:
        """Whether there may be one more action all that time, in the cluster and at some hosts."""
        going_on = [
            step for step in self.steps if step.start_ms < 1000 * end and step.end_ms > 1000 * start
        ]
        return len(going_on) < self._limits.actions_total and all(
            sum(host in step.footprint.hosts for step in going_on) < self._limits.actions_per_host
            for host in set(hosts) - {None}
        )


def _after(vm: Vm, action: Action) -> Vm:
    """A VM when an action on it has ended."""
    way = passage(action)
    if way is not None:
        return vm.but(state=way.state_after, host=way.host_after)
    if isinstance(action, Allocate):
        return vm.but(consumption={**vm.consumption, action.resource: action.amount})
    assert isinstance(action, Kill)
    return vm.but(state=VmState.TERMINATED, host=None)

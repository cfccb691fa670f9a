"""A plan of the model, and the cluster it starts from, as a plan of BtrPlace.

Only named resources are written, because BtrPlace has no others. A host that is not on is offline.
VMs in state init or terminated are not part of BtrPlace's model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NoReturn

import msgspec

from equipoise.adapters.btrplace.format.instance_reader import HOST_DURATIONS, VM_DURATIONS
from equipoise.adapters.btrplace.format.plan_actions import FORM_OF_ACTION
from equipoise.adapters.btrplace.format.records import (
    Numbering,
    assign_numbers,
    to_btrplace_resource,
)
from equipoise.errors import InvalidInput
from equipoise.model.action import (
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    Reinstantiate,
    Resume,
    Shutdown,
)
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import (
    REINSTANTIATION_STEPS,
    ActionKind,
    Network,
    ProblemDurations,
)
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import pause_gc
from equipoise.model.vm import Vm, VmState

JsonRecord = dict[str, Any]


def model_record(problem: PlanningProblem, numbers: Numbering) -> JsonRecord:
    """Return the model of BtrPlace from which a plan for the problem starts."""
    vms = [vm for vm in problem.cluster.vms if vm.state not in (VmState.INIT, VmState.TERMINATED)]
    hosts = problem.cluster.hosts
    return {
        "mapping": _mapping(vms, hosts, numbers),
        "attributes": _attributes(problem, vms, numbers),
        "views": [
            *_resource_views(vms, hosts, numbers),
            *_naming_views("vm", {vm.id: vm.labels for vm in vms}, numbers.vms),
            *_naming_views("node", {host.id: host.labels for host in hosts}, numbers.hosts),
            *([] if problem.network is None else [_network_view(problem.network, numbers)]),
        ],
    }


def _mapping(vms: Iterable[Vm], hosts: Iterable[Host], numbers: Numbering) -> JsonRecord:
    online: dict[str, JsonRecord] = {
        host.id: {"runningVMs": [], "sleepingVMs": []}
        for host in hosts
        if host.state is HostState.ON
    }
    ready = []
    for vm in vms:
        number = numbers.vms[vm.id]
        if vm.host is None:
            ready.append(number)
        elif vm.host in online:
            key = "runningVMs" if vm.state is VmState.RUNNING else "sleepingVMs"
            online[vm.host][key].append(number)
        else:
            raise InvalidInput.of(
                "problem",
                f"the VM {vm.id} is on {vm.host}, which is not on",
                key=f"vms.{vm.id}",
                cure="a node of BtrPlace that is not on has no VMs: move the VM or its state",
                code="unsupported-feature",
            )
    return {
        "readyVMs": ready,
        "onlineNodes": {str(numbers.hosts[host]): vms_on for host, vms_on in online.items()},
        "offlineNodes": [numbers.hosts[host.id] for host in hosts if host.id not in online],
    }


def _attributes(problem: PlanningProblem, vms: Iterable[Vm], numbers: Numbering) -> JsonRecord:
    """Return the durations of single VMs and hosts, and the templates of VMs."""
    of_vms: dict[str, JsonRecord] = {}
    for vm in vms:
        known: JsonRecord = {"template": vm.template} if vm.template else {}
        if vm.replaceable:
            known["clone"] = True
        # 1 MiB is what the reader sets if the instance states no memory.
        if vm.memory_mib > 1 or problem.network is not None:
            known["memUsed"] = vm.memory_mib
        of_vms[vm.id] = known | _duration_attributes(problem, VM_DURATIONS, vm.id)
    of_hosts: dict[str, JsonRecord] = {
        host.id: _duration_attributes(problem, HOST_DURATIONS, host.id)
        for host in problem.cluster.hosts
    }
    return {
        "vms": {str(numbers.vms[name]): known for name, known in of_vms.items() if known},
        "nodes": {str(numbers.hosts[name]): known for name, known in of_hosts.items() if known},
    }


def _duration_attributes(
    problem: PlanningProblem, kinds: Mapping[ActionKind, str], name: str
) -> JsonRecord:
    attributes: JsonRecord = {}
    for kind, key in kinds.items():
        duration = problem.durations.get(kind)
        if duration is not None and name in duration.of:
            attributes[key] = _seconds_rounded_up(duration.of[name])
    return attributes


def _seconds_rounded_up(ms: int) -> int:
    """Return milliseconds as seconds, rounded up."""
    return -(-ms // 1000)


def _resource_views(
    vms: Iterable[Vm], hosts: Iterable[Host], numbers: Numbering
) -> Iterable[JsonRecord]:
    shares: dict[str, JsonRecord] = {}

    def share(name: str) -> JsonRecord:
        return shares.setdefault(
            name,
            {
                "id": "shareableResource",
                "rcId": to_btrplace_resource(name),
                "defCapacity": 0,
                "defConsumption": 0,
                "nodes": {},
                "vms": {},
            },
        )

    for host in hosts:
        for name, amount in host.capacity.items():
            share(name)["nodes"][str(numbers.hosts[host.id])] = amount
    for vm in vms:
        for name, amount in vm.consumption.items():
            share(name)["vms"][str(numbers.vms[vm.id])] = amount
    return shares.values()


def _naming_views(
    kind: str, labels: Mapping[str, Mapping[str, str]], numbers: Mapping[str, int]
) -> Iterable[JsonRecord]:
    """Return the view with the names of VMs or hosts: the label, or the id if it has no number."""
    named: dict[str, int] = {}
    for name, own in labels.items():
        is_btrplace_id = name == f"{kind}{numbers[name]}"
        name_written = own.get("name") if is_btrplace_id else name
        if name_written is not None:
            named.setdefault(name_written, numbers[name])
    return [{"id": "ns", "type": kind, "map": named}] if named else []


def _network_view(network: Network, numbers: Numbering) -> JsonRecord:
    switches = assign_numbers([switch.id for switch in network.switches], "switch")
    links = assign_numbers([link.id for link in network.links], "link")

    def end(host: str | None, to: str | None) -> JsonRecord:
        if host is not None:
            return {"type": "node", "id": numbers.hosts[host]}
        return {"type": "switch", "id": switches[to or ""]}

    return {
        "id": "net",
        "switches": [
            {"id": switches[switch.id], "capacity": switch.capacity_mbps or -1}
            for switch in network.switches
        ],
        "links": [
            {
                "id": links[link.id],
                "capacity": link.capacity_mbps,
                "switch": switches[link.switch],
                "physicalElement": end(link.host, link.to),
            }
            for link in network.links
        ],
        "routing": {"type": "default"},
    }


def write_plan(plan: Plan, problem: PlanningProblem) -> bytes:
    """Return a plan as JSON, in the form in which BtrPlace writes its own plans.

    Times of BtrPlace are whole seconds, so a plan with other times is rejected. An action of one
    millisecond takes no time there, as ``read_plan`` reads it. Maintenance cannot be expressed. A
    reinstantiated VM gets a new number: it is forged and booted, then the old VM is shut down.
    BtrPlace's own reader accepts neither forging nor the killing of a VM without a host.
    """
    with pause_gc():
        return msgspec.json.encode(plan_record(plan, problem))


def plan_record(plan: Plan, problem: PlanningProblem) -> JsonRecord:
    """Return the plan as plain values, to be part of another document."""
    numbers = Numbering.of(problem)
    writer = _PlanWriter(plan, problem, numbers)
    steps = sorted(plan.steps, key=lambda step: (step.start_ms, step.end_ms))
    return {
        "origin": model_record(problem, numbers),
        "actions": [record for step in steps for record in writer.records(step)],
    }


class _PlanWriter:
    """Turns steps into records. Tracks the hosts of VMs, which some records need."""

    def __init__(self, plan: Plan, problem: PlanningProblem, numbers: Numbering) -> None:
        self._source = f"plan {plan.id}"
        self._numbers = numbers
        self._vms = dict(numbers.vms)
        """The present numbers of VMs: a reinstantiated VM has a new one."""
        self._instants: dict[tuple[str | None, int], int] = {}
        """The second of actions that take no time in BtrPlace, by VM or host and by end."""
        self._durations = ProblemDurations(problem, Snapshot.of(problem.cluster))
        self._host_history: dict[str, list[tuple[int, str | None]]] = {
            vm.id: [(0, vm.host)] for vm in problem.cluster.vms
        }
        for step in sorted(plan.steps, key=lambda step: step.end_ms):
            match step.action:
                case Boot() | Migrate() | Reinstantiate() | Resume():
                    self._host_history[step.action.vm].append((step.end_ms, step.action.target))
                case Shutdown() | Kill():
                    self._host_history[step.action.vm].append((step.end_ms, None))

    def records(self, step: Step) -> Iterator[JsonRecord]:
        """Yield the record of a step; three records for a reinstantiation."""
        start, end = self._seconds(step)
        action = step.action
        if not isinstance(action, Reinstantiate):
            yield self._record(step, start, end)
            return
        forged, booted = self._parts(action, start, end)
        old, new = self._vms[action.vm], max(self._vms.values()) + 1
        event = {"id": "substitutedVM", "vm": old, "newVm": new}
        stop = step.but(action=Shutdown(vm=action.vm, source=action.source))
        # Recorded before the VM gets its new number, because it stops the old VM.
        stopped = self._record(stop, booted, end)
        self._vms[action.vm] = new
        yield self._record(step.but(action=Forge(vm=action.vm)), start, forged)
        boot = step.but(action=Boot(vm=action.vm, target=action.target))
        yield self._record(boot, forged, booted) | {"hooks": {"pre": [event], "post": []}}
        yield stopped

    def _seconds(self, step: Step) -> tuple[int, int]:
        """Return the start and the end of a step in BtrPlace."""
        start, past_start = divmod(step.start_ms, 1000)
        end, past_end = divmod(step.end_ms, 1000)
        if not past_start and not past_end:
            return start, end
        # Actions that take no time in BtrPlace follow each other here, a millisecond each.
        touched = step.footprint
        subject = touched.vm or touched.switched
        moment = self._instants.get((subject, step.start_ms), None if past_start else start)
        if step.duration_ms > 1 or moment is None:
            what = (
                f"the step lasts from {step.start_ms} to {step.end_ms} ms, "
                "but all times of BtrPlace are whole seconds"
            )
            self._reject(step, what, "give the problem grid_ms: 1000")
        self._instants[subject, step.end_ms] = moment
        return moment, moment

    def _parts(self, action: Reinstantiate, start: int, end: int) -> tuple[int, int]:
        """Return the seconds at which a new VM is forged and booted, by the usual durations."""
        usual = [self._durations.vm_ms(kind, action.vm) for kind in REINSTANTIATION_STEPS]
        forged, booted = (
            start + spent * (end - start) // sum(usual) for spent in accumulate(usual[:2])
        )
        return forged, booted

    def _record(self, step: Step, start: int, end: int) -> JsonRecord:
        action = step.action
        form = FORM_OF_ACTION.get(type(action))
        if form is None:
            what = f"BtrPlace has no action {action.__struct_config__.tag}"
            self._reject(step, what, "leave maintenance and roles out")
        subjects = {
            key: self._value(key, getattr(action, field)) for key, field in form.keys.items()
        }
        if isinstance(action, Allocate | Kill):
            subjects |= self._host_at_start(step, action.vm)
        hooks: JsonRecord = {"pre": [], "post": []}
        return {"id": form.tag, **subjects, "start": start, "end": end, "hooks": hooks}

    def _value(self, key: str, value: Any) -> Any:
        match key:
            case "vm":
                return self._vms[value]
            case "amount":
                return value
            case "rc":
                return to_btrplace_resource(value)
        return self._numbers.hosts[value]

    def _host_at_start(self, step: Step, vm: str) -> JsonRecord:
        """Return the host of a VM at the start of a step, if it has one."""
        history = self._host_history[vm]
        at = bisect_right(history, step.start_ms, key=lambda entry: entry[0])
        host = history[max(at, 1) - 1][1]
        return {} if host is None else {"on": self._numbers.hosts[host]}

    def _reject(self, step: Step, what: str, cure: str) -> NoReturn:
        raise InvalidInput.of(
            self._source, what, key=f"steps.{step.id}", cure=cure, code="unsupported-feature"
        )

"""Small clusters and plans for tests: ``a_cluster(a_host("h1"), vms=[a_vm("v1", "h1")])``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from equipoise.model.action import Action
from equipoise.model.event import Event, event_kind
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


def a_host(name: str = "h1", **fields: Any) -> Host:
    """A host of 4 cores of 1,000 MHz and 16 GiB."""
    given: dict[str, Any] = {"cores": 4, "mhz_per_core": 1000, "memory_mib": 16384}
    return Host(id=HostId(name), **given | fields)


def a_vm(name: str = "v1", host: str | None = None, **fields: Any) -> Vm:
    """A VM of 1 vCPU and 1 GiB: running if it has a host, ready if not."""
    given: dict[str, Any] = {
        "vcpus": 1,
        "memory_mib": 1024,
        "state": VmState.READY if host is None else VmState.RUNNING,
        "host": None if host is None else HostId(host),
    }
    return Vm(id=VmId(name), **given | fields)


def an_inventory(*hosts: Host, vms: Iterable[Vm] = (), **fields: Any) -> Inventory:
    """An inventory, of one host if none is given."""
    return Inventory(hosts=hosts or (a_host(),), vms=tuple(vms), **fields)


def a_cluster(*hosts: Host, vms: Iterable[Vm] = (), **fields: Any) -> Snapshot:
    """The snapshot of such an inventory."""
    return Snapshot.of(an_inventory(*hosts, vms=vms, **fields))


def a_step(name: str, action: Action, start_ms: int = 0, end_ms: int = 0, *after: str) -> Step:
    """A step; without times it takes the first second."""
    return Step(
        id=StepId(name),
        action=action,
        start_ms=start_ms,
        end_ms=end_ms or start_ms + 1000,
        after=tuple(StepId(step) for step in after),
    )


def a_plan(*steps: Step, base_version: int = 0) -> Plan:
    """A plan named ``p``."""
    return Plan(id=PlanId("p"), base_version=base_version, steps=steps)


def event_facts(event: Event) -> str:
    """Return the kind, ids, figures and code of an event: what tests compare instead of prose."""
    words = [event_kind(event)]
    for name in _FACTS:
        value = getattr(event, name, None)
        if value not in (None, ""):
            words.append(str(getattr(value, "id", value)))
    return " ".join(words)


_FACTS = (
    "plan", "step", "host", "vm", "attempt", "outcome", "finished", "failed", "skipped", "code"
)  # fmt: skip


def figures(text: str) -> list[int]:
    """The whole numbers of a sentence, in their order."""
    return [int(digits) for digits in re.findall(r"\d+", text)]


def facts(text: str) -> list[str]:
    """The terms, sets, numbered names and numbers of a sentence: all but its words."""
    return re.findall(r"\w+(?:\(\w[\w(),-]*\)+)|\{[^}]*\}|[A-Za-z][\w-]*\d\b|\b\d+\b", text)


def suggested(text: str) -> str | None:
    """The name that a cure suggests instead of an unknown one."""
    match = re.search(r'did you mean "?([^"?]+)"?\?', text)
    return match.group(1) if match else None


def coded(code: str, *keys: str) -> Callable[[BaseException], bool]:
    """A check for ``pytest.raises``: the error has this code and, if given, these keys."""

    def check(error: BaseException) -> bool:
        found = tuple(problem.key for problem in getattr(error, "problems", ()))
        return getattr(error, "code", None) == code and (not keys or found == keys)

    return check

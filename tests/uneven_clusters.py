"""Small clusters with something to move: most VMs on the first hosts, rules, and requests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.policy.balance import BalancePolicy, HostOverride
from equipoise.model.quantity import ResourceName, RuleId
from equipoise.model.rule import KeepApart, Rule, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, Vm

NET = ResourceName("net_mbps")


@st.composite
def some_hosts(draw: st.DrawFn) -> list[Host]:
    hosts = [
        a_host(
            f"h{n}",
            cores=draw(st.sampled_from([4, 8])),
            memory_mib=1024 * draw(st.integers(4, 24)),
            capacity=draw(st.sampled_from([{}, {}, {}, {NET: 1000}])),
            requested=draw(st.sampled_from([None] * 8 + list(RequestedHostState))),
        )
        for n in range(draw(st.integers(2, 5)))
    ]
    return [*hosts, a_host("asleep", state=HostState.STANDBY)] if draw(st.booleans()) else hosts


@st.composite
def some_vms(draw: st.DrawFn, hosts: list[Host]) -> list[Vm]:
    on = [host.id for host in hosts if host.state is HostState.ON]
    vms = []
    for n in range(draw(st.integers(1, 10))):
        size = 1024 * draw(st.integers(1, 4))
        vms.append(
            a_vm(
                f"v{n}",
                # The first hosts hold most VMs, so that there is something to move.
                draw(st.sampled_from([on[0], on[0], *on])),
                memory_mib=size,
                demand=Demand(
                    cpu_mhz=draw(st.integers(0, 5000)), memory_mib=draw(st.integers(0, size))
                ),
                cpu=CpuSettings(shares=draw(st.sampled_from([500, 1000]))),
                agent=draw(st.sampled_from([False] * 9 + [True])),
                consumption=draw(st.sampled_from([{}, {}, {NET: 100}])),
            )
        )
    return vms


@st.composite
def some_rules(draw: st.DrawFn, vms: list[Vm], hosts: list[Host]) -> tuple[Rule, ...]:
    names, places = [vm.id for vm in vms], [host.id for host in hosts]
    rules: list[Rule] = []
    for n in range(draw(st.integers(0, 2))):
        more: dict[str, Any] = {"id": RuleId(f"r{n}"), "hard": draw(st.booleans())}
        of = tuple(draw(st.sets(st.sampled_from(names), min_size=1))) if draw(st.booleans()) else ()
        on = tuple(draw(st.sets(st.sampled_from(places), min_size=1, max_size=2)))
        kind = draw(st.sampled_from([StayOff, StayWithin, KeepApart]))
        if kind is KeepApart:
            if len(names) > 1:
                rules.append(KeepApart(vms=tuple(names[:2]), **more))
        else:
            rules.append(kind(vms=of or tuple(names), hosts=on, **more))
    return tuple(rules)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    hosts = draw(some_hosts())
    vms = draw(some_vms(hosts))
    overrides = {hosts[-1].id: draw(st.sampled_from(list(HostOverride)))}
    policy = BalancePolicy(
        threshold=5,
        cost_benefit=draw(st.booleans()),
        hosts=overrides if draw(st.integers(0, 4)) == 0 else {},
    )
    return a_cluster(*hosts, vms=vms, rules=draw(some_rules(vms, hosts)), balance=policy)

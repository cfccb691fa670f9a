"""Plans, planning problems and their networks: they name VMs, hosts, rules and steps that exist.

Never judges whether a goal can be reached: the planner finds that out and explains it.
"""

from __future__ import annotations

from equipoise.files.check.references import (
    InventoryIndex,
    ListElements,
    NamedElements,
    find_cycles,
    format_cycle,
    report_repeated,
)
from equipoise.files.document import Gap, Gaps, gaps_below
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_list, quoted
from equipoise.model.host import Host
from equipoise.model.plan import Plan, Step
from equipoise.model.problem.problem import (
    HOST_ACTIONS,
    MEMORY_RESOURCE,
    ActionKind,
    DesiredVmState,
    Network,
    NetworkLink,
    NetworkSwitch,
    PlanningProblem,
)
from equipoise.model.quantity import ResourceName
from equipoise.model.vm import VmState


def check_network(
    network: Network | None, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Check the network of a file, if it has one."""
    if network is not None:
        inner = gaps_below(gaps, "network")
        check_topology(network, index.hosts, diagnostics.below("network"), inner)


def check_topology(
    network: Network, hosts: NamedElements[Host], diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Report links without an end, hosts without exactly one link, and a network in parts."""
    count_before = len(diagnostics)
    switches: NamedElements[NetworkSwitch] = NamedElements(
        "switch", ("switches",), network.switches, gaps.get(("switches",))
    )
    links: NamedElements[NetworkLink] = NamedElements(
        "link", ("links",), network.links, gaps.get(("links",))
    )
    switches.check_ids(diagnostics)
    links.check_ids(diagnostics)
    linked: dict[str, int] = {}
    for position, link in links:
        path: KeyPath = ("links", position)
        _check_switch(link.switch, switches, (*path, "switch"), diagnostics)
        _check_link_end(link, switches, path, diagnostics)
        if link.host is not None and hosts.check(link.host, (*path, "host"), diagnostics):
            if link.host in linked:
                what = f"the host {quoted(link.host)} already has the link"
                first: KeyPath = ("links", linked[link.host])
                cure = "give each host one link"
                diagnostics.add((*path, "host"), what, cure, first, code="duplicate-name")
            linked.setdefault(link.host, position)
    # A link with a misspelled host is one problem: its host is not reported as unlinked as well.
    named = {link.host for _, link in links if link.host is not None}
    unlinked = [host.id for _, host in hosts if host.id not in linked]
    if links.is_whole and unlinked and named <= linked.keys():
        what = f"no link leads to {format_list(unlinked)}"
        cure = "give every host a link, or leave the network out"
        diagnostics.add(("links",), what, cure, code="disconnected")
    # A wrong link would make the network look disconnected as well.
    if links.is_whole and switches.is_whole and len(diagnostics) == count_before:
        _check_connected(network, diagnostics)


def _check_connected(network: Network, diagnostics: Diagnostics) -> None:
    neighbours: dict[ResourceName, list[ResourceName]] = {}
    for link in network.links:
        if link.to is not None:
            neighbours.setdefault(link.switch, []).append(link.to)
            neighbours.setdefault(link.to, []).append(link.switch)
    host_links = [link for link in network.links if link.host is not None]
    to_visit = [link.switch for link in host_links[:1]]
    reached = set(to_visit)
    while to_visit:
        new = set(neighbours.get(to_visit.pop(), ())) - reached
        reached |= new
        to_visit += new
    unreached = next((link for link in host_links if link.switch not in reached), None)
    if unreached is not None:
        what = f"no path leads from {host_links[0].host} to {unreached.host}"
        diagnostics.add(("links",), what, "link their switches to each other", code="disconnected")


def _check_link_end(
    link: NetworkLink,
    switches: NamedElements[NetworkSwitch],
    path: KeyPath,
    diagnostics: Diagnostics,
) -> None:
    if link.host is None and link.to is None:
        cure = "name the host at its end, or the other switch with to"
        diagnostics.add((*path, "host"), "is missing, and so is to", cure, code="missing-key")
    elif link.host is not None and link.to is not None:
        what = "a link leads to a host or to another switch, not to both"
        diagnostics.add((*path, "to"), what, "leave host or to out", code="contradiction")
    elif link.to is not None and link.to == link.switch:
        what = f"{quoted(link.to)} is linked to itself"
        diagnostics.add((*path, "to"), what, "name another switch", code="cycle")
    elif link.to is not None:
        _check_switch(link.to, switches, (*path, "to"), diagnostics)


def _check_switch(
    name: str, switches: NamedElements[NetworkSwitch], path: KeyPath, diagnostics: Diagnostics
) -> None:
    if name not in switches:
        known = switches.known
        names = f"the switches are: {format_list(known)}" if known else "no switch is listed"
        cure = diagnostics.suggestion(name, known) + names
        diagnostics.add(path, f"there is no switch {quoted(name)}", cure, code="unknown-name")


def check_plan(plan: Plan, diagnostics: Diagnostics, gap: Gap | None) -> None:
    """Report steps that end before they start, or that wait for themselves or for no step."""
    steps = NamedElements("step", ("steps",), plan.steps, gap)
    steps.check_ids(diagnostics)
    positions: dict[str, int] = {}
    for position, step in steps:
        positions.setdefault(step.id, position)
        if step.end_ms <= step.start_ms:
            what = f"{step.end_ms} is not after start_ms {step.start_ms}"
            cure = f"more than {step.start_ms}"
            diagnostics.add(("steps", position, "end_ms"), what, cure, code="out-of-range")
        _check_after(step, steps, ("steps", position, "after"), diagnostics)
    # A step that waits for itself is reported above, so it is not a cycle here.
    waits = {step.id: [name for name in step.after if name != step.id] for _, step in steps}
    for cycle in find_cycles(waits):
        what = f"the steps wait for each other: {format_cycle(cycle)}"
        path = ("steps", positions[cycle[0]], "after")
        diagnostics.add(path, what, "remove one of these waits", code="cycle")


def _check_after(
    step: Step, steps: NamedElements[Step], path: KeyPath, diagnostics: Diagnostics
) -> None:
    for position, name in enumerate(step.after):
        if name == step.id:
            what = f"{quoted(name)} waits for itself"
            diagnostics.add((*path, position), what, "leave it out", code="cycle")
        else:
            steps.check(name, (*path, position), diagnostics)


def check_step_subjects(
    plan: Plan, index: InventoryIndex, diagnostics: Diagnostics, gap: Gap | None
) -> None:
    """Report steps about VMs and hosts that the cluster does not have."""
    for position, step in ListElements(plan.steps, gap):
        path: KeyPath = ("steps", position, "action")
        for key in step.action.__struct_fields__:
            if key == "vm":
                index.vms.check(getattr(step.action, key), (*path, key), diagnostics)
            elif key in ("host", "source", "target"):
                index.hosts.check(getattr(step.action, key), (*path, key), diagnostics)


def check_problem(
    problem: PlanningProblem, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Check a planning problem apart from its cluster."""
    _check_vm_goals(problem, index, diagnostics)
    for host in problem.hosts:
        index.hosts.check(host, ("hosts", host), diagnostics)
    _check_durations(problem, index, diagnostics)
    check_network(problem.network, index, diagnostics, gaps)
    _check_objective(problem, diagnostics, gaps)
    _check_weights(problem, index, diagnostics)


def _check_vm_goals(
    problem: PlanningProblem, index: InventoryIndex, diagnostics: Diagnostics
) -> None:
    for name, goal in problem.vms.items():
        if not index.vms.check(name, ("vms", name), diagnostics):
            continue
        vm = index.vms.get(name)
        if goal is DesiredVmState.FORGED and vm is not None and vm.state is not VmState.INIT:
            what = f"the VM is {vm.state}, and only a VM in state init can be forged"
            diagnostics.add(("vms", name), what, "write ready", code="contradiction")


def _check_durations(
    problem: PlanningProblem, index: InventoryIndex, diagnostics: Diagnostics
) -> None:
    resources = {MEMORY_RESOURCE: None}
    resources |= {name: None for _, host in index.hosts for name in host.capacity}
    resources |= {name: None for _, vm in index.vms for name in vm.consumption}
    is_whole = index.hosts.is_whole and index.vms.is_whole
    for kind, duration in problem.durations.items():
        path: KeyPath = ("durations", kind.value)
        known = index.hosts if kind in HOST_ACTIONS else index.vms
        for name in duration.of:
            known.check(name, (*path, "of", name), diagnostics)
        if is_whole and duration.resource not in resources:
            diagnostics.add_unknown((*path, "resource"), "resource", duration.resource, resources)
        if duration.per_unit_ms and kind in HOST_ACTIONS:
            what = "an action on a host has no units: only VMs consume resources"
            cure = "leave it out, or give the duration of single hosts with of"
            diagnostics.add((*path, "per_unit_ms"), what, cure, code="contradiction")
        elif duration.per_unit_ms and kind is ActionKind.MIGRATE and problem.network is not None:
            what = "the links of the network already determine how fast memory is copied"
            diagnostics.add((*path, "per_unit_ms"), what, "leave it out", code="contradiction")


def _check_objective(problem: PlanningProblem, diagnostics: Diagnostics, gaps: Gaps) -> None:
    if not problem.objective and ("objective",) not in gaps:
        cure = "name a measure such as mttr, or leave it out"
        diagnostics.add(("objective",), "is empty", cure, code="empty-value")
    first: dict[str, KeyPath] = {}
    for position, goal in ListElements(problem.objective, gaps.get(("objective",))):
        path: KeyPath = ("objective", position)
        if not goal:
            cure = "name a measure with its weight, or leave it out"
            diagnostics.add(path, "names no measure", cure, code="empty-value")
        named = [goal.value] if isinstance(goal, str) else [measure.value for measure in goal]
        for measure in named:
            here = path if isinstance(goal, str) else (*path, measure)
            if measure in first:
                report_repeated(measure, here, first[measure], diagnostics)
            first.setdefault(measure, here)


def _check_weights(
    problem: PlanningProblem, index: InventoryIndex, diagnostics: Diagnostics
) -> None:
    for name in problem.weights:
        path: KeyPath = ("weights", name)
        if not index.rules.check(name, path, diagnostics):
            continue
        rule = index.rules.get(name)
        if rule is not None and rule.hard:
            what = f"the rule {quoted(name)} is hard, so a weight has no effect"
            cure = "leave it out, or write hard: false at the rule"
            diagnostics.add(path, what, cure, code="contradiction")

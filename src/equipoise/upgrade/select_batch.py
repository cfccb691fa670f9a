"""Step 3: how many compute hosts may be out of service (Z), and which groups make the batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.model.quantity import HostId, TenantId, format_count
from equipoise.model.upgrade.event import Elimination
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.graph.host_partitions import (
    HostPartitions,
    scaling_areas,
    tenants_with_new,
    unused_hosts,
    used_hosts,
)
from equipoise.upgrade.graph.iteration_view import IterationView, affected_hosts, next_partition
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.brakes import BatchBrakes
from equipoise.upgrade.role_coverage import RoleCoverage
from equipoise.upgrade.rules import eliminate
from equipoise.upgrade.rules.outage_guard import OutageGuard
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.vms.reserves import (
    FreeCapacity,
    HostReservation,
    expected_growth,
    reserve_hosts,
    scaling_reservation,
)

VM_MOVES_REASON = Reason("vm-moves", "a VM; it moves in step 4")
PEER_RULE: Final = 6
"""The rule that keeps one of several peers in the batch."""


@dataclass(frozen=True, slots=True)
class BatchSelection:
    """The result of step 3: Z, the batch, and the groups left out."""

    z: int
    batch: tuple[VertexId, ...]
    eliminated: tuple[Elimination, ...]


def select_batch(view: IterationView) -> BatchSelection:
    """Select the batch: the candidates that the rules leave, while their hosts can be spared.

    Rule 6 keeps one of several peers, whatever the size of its host. If the host of that peer is
    reserved, another peer is tried; otherwise the upgrade would never continue.
    """
    # The first try is reported if no other succeeds, because its reasons name every group.
    first_try, passed_over = selection, more = _try_selection(view, {})
    # Each try passes over more groups, so the loop ends.
    while not selection.batch and more:
        selection, more = _try_selection(view, passed_over)
        passed_over |= more
    return selection if selection.batch else first_try


def _try_selection(
    view: IterationView, passed_over: dict[VertexId, Reason]
) -> tuple[BatchSelection, dict[VertexId, Reason]]:
    """Select without some groups. If the batch is empty, also return more groups to pass over."""
    candidates, removed = eliminate(view, passed_over)
    lasting_s = longest_change_s(view, candidates)
    hosts = {vertex: _hosts_taken_out(view, vertex) for vertex in candidates}
    ordered = selection_order(view, list(candidates))
    wanted = [host for vertex in ordered for host in sorted(hosts[vertex])]
    spare_hosts = dict.fromkeys(spareable_hosts(view, wanted, lasting_s))
    z = len(spare_hosts)
    no_spare = None if spare_hosts else _no_spare_reason(view, lasting_s)
    batch, capped = _fill_batch(view, ordered, hosts, spare_hosts, no_spare)
    # After the limit: groups that return add capacity and take none.
    returning, waiting = _returning_groups(view, set(batch))
    batch += returning
    selection = BatchSelection(
        z,
        # The order of the cluster, not of the selection, so that journals of equal batches are
        # equal.
        tuple(sorted(batch, key=view.position.__getitem__)),
        tuple(_eliminated(view, [*removed, (5, waiting), *_by_rule(passed_over | capped)])),
    )
    # Another peer can help only if rule 6 removed one and capacity stopped the one it kept.
    peers = next((reasons for rule, reasons in removed if rule == PEER_RULE), {})
    if batch or not (capped and peers):
        return selection, {}
    peer_hosts = {vertex: _hosts_taken_out(view, vertex) for vertex in peers}
    blocked = {
        vertex: hosts_out
        for vertex, hosts_out in peer_hosts.items()
        if not _fits(view, len(hosts_out), hosts_out, spare_hosts)
    }
    return selection, capped | {
        vertex: no_spare or _cap_reason(len(hosts_out), spare_hosts, hosts_out)
        for vertex, hosts_out in blocked.items()
    }


def _by_rule(capped: dict[VertexId, Reason]) -> list[tuple[int, dict[VertexId, Reason]]]:
    """Return the groups that do not fit into the batch, by the rule that would have said so."""
    by_rule: dict[int, dict[VertexId, Reason]] = {}
    for vertex, reason in capped.items():
        rule = {"constituents-short": PEER_RULE, "vms-depend": 1}.get(reason.code, 0)
        by_rule.setdefault(rule, {})[vertex] = reason
    return list(by_rule.items())


def _fill_batch(
    view: IterationView,
    ordered: list[VertexId],
    hosts: dict[VertexId, set[HostId]],
    spare_hosts: dict[HostId, None],
    no_spare: Reason | None,
) -> tuple[list[VertexId], dict[VertexId, Reason]]:
    """Add group after group while their hosts can be spared. Also return why the others wait."""
    out: set[HostId] = set()
    batch: list[VertexId] = []
    capped: dict[VertexId, Reason] = {}
    coverage, brakes, guard = RoleCoverage(view), BatchBrakes(view), OutageGuard(view)
    for vertex in ordered:
        more = hosts[vertex] | guard.hosts(vertex)
        short = (
            brakes.missed(vertex)
            or guard.missed(vertex)
            or _spare_shortage(view, vertex, len(out))
            or coverage.missed(vertex)
        )
        if short:
            capped[vertex] = short
            continue
        # Undo work must always be possible (the reserve may be used), but one group at a time.
        undo_alone = view.is_undoing(vertex) and not out
        together = len(out) + len(more - out)
        # Dedicated spare hosts serve one unit at a time.
        spared_for_it = not out and len(more) <= _dedicated_spares(view, vertex)
        if undo_alone or spared_for_it or _fits(view, together, more, spare_hosts):
            batch.append(vertex)
            coverage.take_out(vertex)
            brakes.take(vertex)
            guard.take(vertex)
            out |= more
        else:
            capped[vertex] = no_spare or _cap_reason(together, spare_hosts, more)
    return batch, capped


def _cap_reason(together: int, free: dict[HostId, None], hosts: set[HostId]) -> Reason:
    z = len(free)
    if together > z:
        text = f"{z} hosts can be spared; with this group {together} would be out of service"
        return Reason("no-spare-host", text)
    kept = sorted(hosts - free.keys())
    text = f"{', '.join(kept)} cannot be spared; {z} other hosts can"
    return Reason("no-spare-host", text)


def _no_spare_reason(view: IterationView, lasting_s: int) -> Reason:
    """Return for what the empty hosts are reserved, or that there are none."""
    state = view.state
    hosts, tenants = _unchanged_area(view)
    empty = len(unused_hosts(state, hosts))
    text = f"no host can be spared: {empty} of {format_count(len(hosts), 'host')} empty"
    growth = expected_growth(state, tenants, lasting_s)
    if growth:
        largest = max(growth, key=growth.__getitem__)
        text += f", tenants may request {format_count(sum(growth.values()), 'more VM')} meanwhile"
        text += f" ({largest} for {growth[largest]})"
    failover = state.settings.failover_hosts
    text += f", {format_count(failover, 'host')} reserved for failures" if failover else ""
    return Reason("no-spare-host", text)


def _hosts_taken_out(view: IterationView, vertex: VertexId) -> set[HostId]:
    """Return the hosts that a group takes out of service; a returning group takes none."""
    if not view.control.groups[vertex].changes:
        return set()
    return affected_hosts(view, vertex)


def _returning_groups(
    view: IterationView, batch: set[VertexId]
) -> tuple[list[VertexId], dict[VertexId, Reason]]:
    """Return the groups that return with this batch, and the groups that still wait."""
    returning: list[VertexId] = []
    waiting: dict[VertexId, Reason] = {}
    for candidate in view.returning:
        if candidate.due and batch.issuperset(candidate.returns_after):
            returning += candidate.groups
        else:
            text = "it returns when the last partition of its unit leaves"
            waiting |= dict.fromkeys(candidate.groups, Reason("partition-order", text))
    return returning, waiting


def _spare_shortage(view: IterationView, vertex: VertexId, out: int) -> Reason | None:
    """Return why a unit cannot start: its deactivated hosts must be spare for any duration.

    Hosts are spare only if all tenants can still scale to the limit of their SLA (5.1.4.2).
    """
    unit = view.unit(vertex) if view.state.resources.units else None
    if unit is None or not unit.degraded_hosts or next_partition(view.state, unit) != 0:
        return None
    spare = len(spareable_hosts(view, sorted(view.control.groups[vertex].hosts), None)) - out
    if spare >= unit.degraded_hosts:
        return None
    text = f"its unit keeps {unit.degraded_hosts} hosts deactivated; {max(0, spare)} are spare"
    return Reason("no-spare-host", text)


def _fits(
    view: IterationView, together: int, hosts: set[HostId], spare_hosts: dict[HostId, None]
) -> bool:
    """Return whether these hosts can be spared. Counting whole hosts, any host equals another."""
    by_number = view.state.settings.readings.reserve_whole_hosts
    return together <= len(spare_hosts) and (by_number or hosts <= spare_hosts.keys())


def _dedicated_spares(view: IterationView, vertex: VertexId) -> int:
    """Return the spare hosts for a unit that stays out of service after its change."""
    unit = view.unit(vertex)
    if unit is None or len(unit.partitions) == 1:
        return 0
    deactivated = sum(
        not resource_state.active
        and resource_state.present
        and resource_state.resource.host in view.state.cluster.compute_hosts
        for resource_state in view.state.resources.states.values()
    )
    return max(0, view.state.settings.spare_hosts - deactivated)


def selection_order(view: IterationView, vertices: list[VertexId]) -> list[VertexId]:
    """Order the groups: undo work, then urgent sets, then the last host first.

    VMs are packed from one end of the cluster, so hosts at the other end stay free longest.
    """

    def rank(vertex: VertexId) -> tuple[bool, int, bool, int]:
        has_hosts = bool(view.control.groups[vertex].hosts)
        position = view.position[vertex]
        return (
            not view.is_undoing(vertex),
            -view.priority(vertex),
            has_hosts,
            -position if has_hosts else position,
        )

    return sorted(vertices, key=rank)


def longest_change_s(view: IterationView, vertices: dict[VertexId, None]) -> int:
    """Return T of equation 3: the duration of the longest change, recovery included."""
    return max(
        (
            sum(work.risk_s for level in view.level(vertex).values() for work in level.works)
            for vertex in vertices
        ),
        default=0,
    )


def _unchanged_area(view: IterationView) -> tuple[list[HostId], tuple[TenantId, ...]]:
    """Return the hosts from which a batch takes its hosts, and the tenants that may scale there."""
    return scaling_areas(view.state, view.host_partitions)[0]


def spareable_hosts(
    view: IterationView, wanted: Sequence[HostId], lasting_s: int | None
) -> list[HostId]:
    """Return the hosts that can be out of service for a time, wanted ones first; Z counts them.

    In a divided cluster these are hosts of the old partition. Without a duration, the hosts can be
    spared for any time, while all tenants scale to the limit of their SLA.
    """
    state, host_partitions = view.state, view.host_partitions
    hosts, tenants = _unchanged_area(view)
    # Scaling VMs that do not fit in the new partition start in the old one: reserve for them.
    alone = state.settings.readings.sides_alone or not host_partitions.divided
    overflow = {} if alone else _overflow(state, host_partitions, lasting_s)
    idle, busy = dict.fromkeys(unused_hosts(state, hosts)), used_hosts(state, hosts)
    if not busy and not tenants and not overflow:
        return list(idle)
    # Without VMs there is nothing to restart after a failure.
    failover = state.settings.failover_hosts if busy else 0
    returning = _returning_hosts(view)
    first = {host: None for host in wanted if host in idle}
    old = {host: None for host in reversed(idle) if host in host_partitions.old}
    # Wanted hosts come first, so that the reservation, which takes hosts from the end, avoids them.
    order = list(first | old | idle)
    # Without a duration (spare hosts of a unit) the equations do not apply.
    literal = lasting_s is not None and state.settings.readings.reserve_whole_hosts

    def reserve_from(empty: list[HostId]) -> HostReservation:
        return reserve_hosts(
            state,
            FreeCapacity(state, [*hosts, *returning]),
            overflow if literal else expected_growth(state, tenants, lasting_s) | overflow,
            busy=busy,
            empty=empty,
            failover=0 if literal else failover,
        )

    reservation = reserve_from([*order, *returning])
    if literal and lasting_s is not None:
        kept = (
            scaling_reservation(state, hosts, len(tenants), lasting_s)
            + failover
            + len(reservation.kept)
        )
        # Clamped at 0: equation 4 is negative if the reserves exceed the empty hosts.
        return order[: max(0, len(order) + len(returning) - kept)]
    if len({state.cluster.compute_hosts[host].vms_max for host in (*order, *returning)}) > 1:
        # Large hosts make a smaller reserve. But the goal is to spare the hosts that are wanted.
        large = reserve_from(
            sorted([*order, *returning], key=lambda host: state.cluster.compute_hosts[host].vms_max)
        )
        if _spared_count(large, first) > _spared_count(reservation, first):
            reservation = large
    return [] if reservation.short else [host for host in order if host not in reservation.kept]


def _spared_count(reservation: HostReservation, wanted: Iterable[HostId]) -> int:
    """Return how many of the wanted hosts are not reserved."""
    return 0 if reservation.short else sum(host not in reservation.kept for host in wanted)


def _overflow(
    state: UpgradeState, host_partitions: HostPartitions, lasting_s: int | None
) -> dict[TenantId, int]:
    """Return VMs that tenants of the new partition may request and only the old one can run."""
    busy, empty = used_hosts(state, host_partitions.new), unused_hosts(state, host_partitions.new)
    reservation = reserve_hosts(
        state,
        FreeCapacity(state, host_partitions.new),
        expected_growth(state, tenants_with_new(state, host_partitions), lasting_s),
        busy=busy,
        empty=empty,
        failover=state.settings.failover_hosts if busy and host_partitions.new else 0,
    )
    return reservation.missing


def _returning_hosts(view: IterationView) -> list[HostId]:
    """Return hosts that return into service when the last partition of their unit leaves it."""
    due = [vertex for returning in view.returning if returning.due for vertex in returning.groups]
    return [host for vertex in due for host in view.control.groups[vertex].hosts]


def _eliminated(
    view: IterationView, eliminated_by_rule: list[tuple[int, dict[VertexId, Reason]]]
) -> list[Elimination]:
    """Return the groups outside the batch by rule and reason, VMs that must move included."""
    vertices: dict[tuple[int, Reason], list[VertexId]] = {}
    for rule, eliminated in eliminated_by_rule:
        for vertex, reason in eliminated.items():
            vertices.setdefault((rule, reason), []).append(vertex)
    moving = _vms_to_move(view.state, view)
    if moving:
        vertices[1, VM_MOVES_REASON] = moving
    return [
        Elimination(rule=rule, reason=reason.text, code=reason.code, vertices=tuple(group))
        # Rule 0 is shown last: it includes the limit of equation 4, which comes after the rules.
        for (rule, reason), group in sorted(vertices.items(), key=lambda item: item[0][0] or 8)
    ]


def _vms_to_move(state: UpgradeState, view: IterationView) -> list[VertexId]:
    return [
        VertexId(placement.vm)
        for placement in state.cluster.placements.values()
        if placement.host is not None and placement.host in view.host_partitions.old
    ]

"""Rules 0 and 1: groups held by pauses, windows, checkpoints, failures or running VMs."""

from __future__ import annotations

from equipoise.model.host import HostState
from equipoise.model.upgrade.graph import Modification
from equipoise.model.upgrade.work import VertexId
from equipoise.upgrade.giving_up import stuck_reason, stuck_vms
from equipoise.upgrade.graph.iteration_view import IterationView, affected_hosts
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.brakes import has_too_many_failures, waits_for_approval
from equipoise.upgrade.rules.redundancy import held_by_failures
from equipoise.upgrade.rules.windows import window_hold
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress


def held_groups(view: IterationView, candidates: dict[VertexId, None]) -> dict[VertexId, Reason]:
    """Rule 0: remove groups whose change set is held, or that must stay while a host is down."""
    state = view.state
    held = {
        status.id: reason
        for status in state.requests.set_status.values()
        if (reason := hold_reason(state, status))
    }
    eliminated: dict[VertexId, Reason] = {}
    for vertex in candidates:
        group = view.control.groups[vertex]
        down = [host for host in group.hosts if not state.cluster.compute_hosts[host].up]
        if down:
            described = state.cluster.hosts[down[0]].state
            how = "down" if described is HostState.ON else f"in state {described}"
            eliminated[vertex] = Reason("host-down", f"its host {down[0]} is {how}")
            continue
        held_by = next((held[set_] for set_ in view.sets(vertex) if set_ in held), None)
        if held_by is not None:
            eliminated[vertex] = held_by
        elif state.requests.paused_by_command:
            eliminated[vertex] = Reason("paused-by-command", "the campaign is paused by command")
    # A host that is down is the stronger reason, so it overwrites the protection group.
    return held_by_failures(view, candidates) | eliminated


def hold_reason(state: UpgradeState, status: ChangeSetStatus) -> Reason | None:
    """Return the reason why no work of a set may start now, or None."""
    if status.progress is SetProgress.ENDED:
        return None
    if status.paused:
        return Reason("paused-by-command", f"set {status.id} is paused by command")
    if status.progress is SetProgress.UNDOING:
        return None  # an undo does not wait for checkpoints and windows
    if has_too_many_failures(status):
        text = f"set {status.id} is stopped: {status.failures} of its attempts failed"
        return Reason("too-many-failures", text)
    if waits_for_approval(state, status):
        text = f"set {status.id} waits for approval at a checkpoint"
        return Reason("waits-for-approval", text)
    return window_hold(state, status)


def is_all_held(state: UpgradeState) -> bool:
    """Return whether all remaining work is held. Then VMs stay on their hosts as well."""
    if state.requests.paused_by_command:
        return True
    open_sets = [
        status
        for status in state.requests.set_status.values()
        if status.progress is not SetProgress.ENDED
    ]
    with_work = [
        status
        for status in open_sets
        if next(iter(state.resources.pending_for(status.id)), None) is not None
    ]
    return bool(with_work) and all(hold_reason(state, status) for status in with_work)


IN_USE_REASON = Reason("vms-running", "VMs run on it; they must move first")


def groups_in_use(view: IterationView, candidates: dict[VertexId, None]) -> dict[VertexId, Reason]:
    """Rule 1: remove hosts with VMs, and resources without which such a host cannot work."""
    residents, stuck = view.state.cluster.residents, stuck_vms(view.state)
    eliminated: dict[VertexId, Reason] = {}
    for vertex in candidates:
        group = view.control.groups[vertex]
        if any(residents.get(host) for host in group.hosts):
            held = next((host for host in group.hosts if host in stuck), None)
            eliminated[vertex] = (
                IN_USE_REASON if held is None else stuck_reason(view.state, held, stuck[held])
            )
        # Rules 2 and 3 handle removed and added resources.
        elif not group.hosts and group.modification is Modification.UPGRADE and group.active:
            busy = sorted(host for host in affected_hosts(view, vertex) if residents.get(host))
            if busy:
                text = f"VMs run on {busy[0]}, which depends on it and has no alternative"
                eliminated[vertex] = Reason("vms-depend", text)
    return eliminated

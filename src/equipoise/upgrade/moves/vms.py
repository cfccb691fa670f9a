"""Step 4: which VMs move to hosts that are changed already, a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.moves.gate import admitted
from equipoise.upgrade.moves.leaving import candidates
from equipoise.upgrade.room import Seating, growth, reserve, up_to, whole_hosts
from equipoise.upgrade.sides import Sides, growing, unused, used, with_new
from equipoise.upgrade.state import State

TARGETS_TRIED: Final = 32
"""On how many hosts a VM may be refused before it is left where it is, for now."""
TOLD_MAX: Final = 3
"""How many reasons of the gate are told."""


@dataclass(frozen=True, slots=True)
class VmSelection:
    """What one sub-iteration comes to."""

    v: int
    """How many VMs may move in this iteration."""
    wanted: int
    """How many it could be for the sake of their groups alone."""
    moves: tuple[VmMove, ...]
    reason: str = ""


def lasting_s(state: State, sides: Sides) -> int:
    """How long the VMs of an iteration take to move, with the recovery from failures."""
    if state.settings.vm_risk_s is not None:
        return state.settings.vm_risk_s
    counts: dict[GroupId, int] = {}
    for host in sides.old:
        for vm in state.residents.get(host, ()):
            group = state.seats[vm].group
            if group is not None:
                counts[group] = counts.get(group, 0) + 1
    rounds = max((up_to(n, state.disturbed_max[one]) for one, n in counts.items()), default=1)
    return 2 * state.settings.vm_move_s * rounds


def failover(state: State, sides: Sides) -> int:
    """How many hosts are kept for failures; what is taken back may use them."""
    return 0 if sides.undoing else state.settings.failover_hosts


def limit(state: State, sides: Sides) -> int:
    """V: how many VMs may move to the new side in this iteration (equation 6)."""
    time_s = lasting_s(state, sides)
    new = list(sides.new)
    if state.settings.readings.reserve_whole_hosts:
        if not new:
            return 0
        kept = whole_hosts(state, new, len(with_new(state, sides)), time_s)
        free = len(unused(state, new)) - kept - failover(state, sides)
        return max(0, free) * min(state.places[one].places for one in new)
    tenants = with_new(state, sides) if sides.divided else growing(state)
    hosts = new if sides.divided else [*sides.old, *new]
    asked = sum(growth(state, tenants, time_s).values())
    places = sum(state.free(one) for one in hosts)
    largest = sorted((state.places[one].places for one in unused(state, hosts)), reverse=True)
    places -= asked + sum(largest[: failover(state, sides)])
    return max(0, min(places, sum(state.free(one) for one in new)))


def can_move(state: State, sides: Sides) -> bool:
    """Whether VMs could leave for hosts that are changed already."""
    if not sides.new or not used(state, sides.old):
        return False
    return bool(choose(state, sides, limit(state, sides)).moves)


def choose(state: State, sides: Sides, v: int) -> VmSelection:
    """Choose the VMs of the next sub-iteration, and where they go; none against the gate."""
    barred = Barred()
    while True:
        chosen = _choose(state, sides, v, barred)
        passed, why = admitted(state, chosen.moves)
        if len(passed) == len(chosen.moves):
            told = (*barred.reasons(), *([chosen.reason] if chosen.reason else ()))
            return replace(chosen, reason="; ".join(told))
        kept = set(passed)
        barred.add([move for move in chosen.moves if move not in kept], why)


class Barred:
    """Moves that the gate has refused, and why: a VM may still find another host."""

    def __init__(self) -> None:
        self._hosts: dict[VmId, dict[HostId, str]] = {}

    def add(self, moves: Iterable[VmMove], why: str) -> None:
        """Note moves that were refused."""
        for move in moves:
            self._hosts.setdefault(move.vm, {})[move.target] = why

    def may_go(self, vm: VmId, host: HostId) -> bool:
        """Whether nothing is known against a VM on a host."""
        return host not in self._hosts.get(vm, ())

    def leaves_a_way(self, state: State, sides: Sides, vm: VmId) -> bool:
        """Whether a VM that was refused has somewhere to go, and is worth another try."""
        refused = self._hosts.get(vm)
        if refused is None:
            return True
        seating, group = Seating(state, sides.new), state.seats[vm].group
        open_ = (one for one in sides.new if one not in refused and seating.takes(one, group))
        return len(refused) < TARGETS_TRIED and next(open_, None) is not None

    def reasons(self) -> list[str]:
        """Why VMs were refused last, each reason once, and no more than anybody would read."""
        all_ = list(dict.fromkeys(list(hosts.values())[-1] for hosts in self._hosts.values()))
        more = [f"and {len(all_) - TOLD_MAX} more"] if len(all_) > TOLD_MAX else []
        return all_[:TOLD_MAX] + more


def _choose(state: State, sides: Sides, v: int, barred: Barred) -> VmSelection:
    left = max(0, v - state.vm_moved)
    if not state.settings.readings.drop_last_only:
        chosen = _chosen(state, v, left, candidates(state, sides, left), barred, sides)
        if chosen.moves:
            return chosen
    return _chosen(state, v, left, candidates(state, sides), barred, sides)


def _chosen(
    state: State, v: int, left: int, found: list[VmId], barred: Barred, sides: Sides
) -> VmSelection:
    """As many of the VMs that were found as may move."""
    picked = [one for one in found if barred.leaves_a_way(state, sides, one)]
    wanted = picked[:left]
    if state.settings.readings.reserve_whole_hosts:
        # W of the thesis: what equation 6 leaves now, or all that are refused if it leaves nothing.
        wanted = wanted[: limit(state, sides) or None]
    if not picked:
        return VmSelection(v, 0, (), "no VM is left to move")
    if not wanted:
        return VmSelection(v, len(picked), (), "no more VMs may move in this iteration")
    moves = _largest_fit(state, sides, wanted, barred)
    if len(moves) < len(wanted) and not state.settings.readings.drop_last_only:
        moves = _best_of_few(state, sides, wanted, moves, barred)
    why = "" if len(moves) == len(wanted) else _why(state, sides)
    return VmSelection(v, len(wanted), moves, why)


def _best_of_few(
    state: State, sides: Sides, wanted: Sequence[VmId], moves: tuple[VmMove, ...], barred: Barred
) -> tuple[VmMove, ...]:
    """Where not all can move: those that free whole hosts, then those of tenants that are on the
    new side already and need no further reservation, then as many as possible.
    """
    settled = set(with_new(state, sides))
    easy = [one for one in wanted if _needs_no_more(state, one, settled)]
    without_more = _largest_fit(state, sides, easy, barred)
    options = (_freeing(state, moves), _freeing(state, without_more), moves, without_more)
    return next((one for one in options if one), ())


def _freeing(state: State, moves: tuple[VmMove, ...]) -> tuple[VmMove, ...]:
    """The moves that leave a host empty."""
    leaving: dict[HostId, int] = {}
    for move in moves:
        leaving[move.source] = leaving.get(move.source, 0) + 1
    return tuple(one for one in moves if leaving[one.source] == len(state.residents[one.source]))


def _why(state: State, sides: Sides) -> str:
    reserved = state.settings.failover_hosts
    return (
        f"{len(unused(state, sides.new))} changed hosts are empty, which must do for tenants that "
        f"grow and for {reserved} that fail"
    )


def _needs_no_more(state: State, vm: VmId, settled: set[TenantId]) -> bool:
    """Whether a VM can move without its tenant needing a reservation that it has not yet."""
    tenant = state.seats[vm].tenant
    if tenant is None or tenant in settled:
        return True
    return state.sizes[tenant] >= state.tenants[tenant].sla.vms_max


def _host(state: State, vm: VmId) -> HostId:
    host = state.seats[vm].host
    assert host is not None, "it was found among the residents of a host"
    return host


def _largest_fit(
    state: State, sides: Sides, wanted: Sequence[VmId], barred: Barred
) -> tuple[VmMove, ...]:
    """The longest beginning of a list of VMs that can move: more of them never need less."""
    low, high = 0, len(wanted)
    best: tuple[VmMove, ...] = ()
    while low < high:
        middle = up_to(low + high, 2)
        moves = _placed(state, sides, wanted[:middle], barred)
        if moves is None:
            high = middle - 1
        else:
            low, best = middle, moves
    return best


def _placed(
    state: State, sides: Sides, vms: Sequence[VmId], barred: Barred
) -> tuple[VmMove, ...] | None:
    """Where these VMs go, if what must be kept free stays free."""
    literal = state.settings.readings.reserve_whole_hosts
    if literal and not _whole_hosts_left(state, sides, vms):
        return None
    for order in _targets(state, list(sides.new), empty_only=literal and sides.divided):
        seating = Seating(state, sides.new)
        moves = _seated(state, sides, vms, seating, order, barred)
        if moves is not None and (literal or _reserved(state, sides, seating, vms)):
            return moves
    return None


def _seated(
    state: State,
    sides: Sides,
    vms: Sequence[VmId],
    seating: Seating,
    order: list[HostId],
    barred: Barred,
) -> tuple[VmMove, ...] | None:
    """Seat VMs, each on the first host that takes it; nothing if one finds no place."""
    moves: list[VmMove] = []
    for vm in vms:
        group = state.seats[vm].group
        fitting = (one for one in order if seating.takes(one, group) and barred.may_go(vm, one))
        target = next(fitting, None)
        if target is None:
            return None
        seating.take(target, group)
        source = _host(state, vm)
        moves.append(VmMove(vm=vm, source=source, target=target, converted=sides.divided))
        if seating.free[target] == 0:
            order.remove(target)
    return tuple(moves)


def _targets(state: State, new: list[HostId], *, empty_only: bool) -> list[list[HostId]]:
    """Hosts to go to, in the orders worth trying: those in use first, as full as possible, then
    empty ones from the end; or small empty ones first, which leaves large ones for failures.
    """
    empty = list(reversed(unused(state, new)))
    if empty_only:
        return [empty]
    busy = [one for one in sorted(used(state, new), key=state.free) if state.free(one) > 0]
    orders = [[*busy, *empty]]
    if len({state.places[one].places for one in new}) > 1:
        orders.append([*sorted(empty, key=lambda one: state.places[one].places), *busy])
    return orders


def _whole_hosts_left(state: State, sides: Sides, vms: Sequence[VmId]) -> bool:
    """Whether whole hosts are left for every tenant that would have VMs on the new side."""
    new = list(sides.new)
    if not new:
        return False
    coming = {state.seats[one].tenant for one in vms}
    time_s = lasting_s(state, sides)
    if sides.divided:
        grows = set(growing(state))
        tenants = set(with_new(state, sides)) | {one for one in coming if one in grows}
        hosts = new
    else:
        tenants, hosts = set(growing(state)), [*sides.old, *new]
    kept = whole_hosts(state, hosts, len(tenants), time_s) + failover(state, sides)
    least = min(state.places[one].places for one in new)
    return up_to(len(vms), least) <= len(unused(state, hosts)) - kept


def _reserved(state: State, sides: Sides, seating: Seating, vms: Sequence[VmId]) -> bool:
    """Whether, with these VMs on their new hosts, tenants can grow and hosts can fail."""
    new = list(sides.new)
    grows = set(growing(state))
    settled = set(with_new(state, sides)) | {
        tenant for one in vms if (tenant := state.seats[one].tenant) in grows
    }
    tenants: list[TenantId] = [one for one in state.tenants if one in settled]
    if not sides.divided:
        seating.add(sides.old)
        new += sides.old
        tenants = list(growing(state))
    wanted = growth(state, tenants, lasting_s(state, sides))
    busy = [one for one in new if seating.free[one] < state.places[one].places]
    empty = [one for one in new if seating.free[one] == state.places[one].places]
    made = reserve(state, seating, wanted, busy=busy, empty=empty, failover=failover(state, sides))
    return not made.short

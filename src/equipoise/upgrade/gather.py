"""Consolidation: VMs move together so that a host is free, where nothing else would be possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from equipoise.model.quantity import GroupId, HostId, TenantId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.gate import admitted
from equipoise.upgrade.packing import Packing, fewest, kin
from equipoise.upgrade.room import Seating, growth, left_of, reserve, up_to
from equipoise.upgrade.rules.parallel import replacements, storing_hosts
from equipoise.upgrade.scene import Scene, scene_of
from equipoise.upgrade.select import Selection, select
from equipoise.upgrade.sides import Sides, growing, old_only, used, with_new
from equipoise.upgrade.state import State
from equipoise.upgrade.vms import can_move, failover, lasting_s, limit


def clear_storage(scene: Scene) -> tuple[VmMove, ...]:
    """VMs leave hosts that a storage is built on, while its old and its new form need them."""
    state = scene.state
    storing = _storing(state)
    leaving = [
        vm
        for host in scene.sides.old
        if host in storing
        for vm in state.residents.get(host, ())
        if vm not in state.unmovable and vm not in state.settled
    ]
    if not leaving:
        return ()
    others = [one for one in scene.sides.old if one not in storing and state.free(one) > 0]
    return _first_round(state, _packed(state, leaving, others))


def _storing(state: State) -> dict[HostId, None]:
    """The hosts that a storage under replacement is built on."""
    return {
        host: None
        for pairs in replacements(state).values()
        for old, new in pairs
        for host in storing_hosts(state, old, new).values()
        if host is not None
    }


def _packed(state: State, vms: list[VmId], hosts: list[HostId]) -> list[VmMove]:
    """Pack VMs on as few of the last hosts as will do, in the order of the hosts."""
    for number in range(1, len(hosts) + 1):
        moves = _seated(state, vms, hosts[-number:])
        if len(moves) == len(vms):
            return moves
    return _seated(state, vms, hosts)


def _seated(state: State, vms: Iterable[VmId], hosts: list[HostId]) -> list[VmMove]:
    seating = Seating(state, hosts)
    moves: list[VmMove] = []
    for vm in vms:
        seat = state.seats[vm]
        target = next((one for one in hosts if seating.takes(one, seat.group)), None)
        if target is not None and seat.host is not None:
            seating.take(target, seat.group)
            moves.append(VmMove(vm=vm, source=seat.host, target=target))
    return moves


def _first_round(state: State, moves: list[VmMove]) -> tuple[VmMove, ...]:
    """As many of the moves as may disturb their groups at the same time."""
    disturbed: dict[GroupId, int] = {}
    now: list[VmMove] = []
    for move in moves:
        group = state.seats[move.vm].group
        if group is not None:
            if disturbed.get(group, 0) >= state.disturbed_max[group]:
                continue
            disturbed[group] = disturbed.get(group, 0) + 1
        now.append(move)
    return tuple(now)


def free_hosts(scene: Scene, chosen: Selection) -> tuple[VmMove, ...]:
    """Empty hosts if nothing else is possible, as many as can be; once begun, to the end.

    Gives the moves of the next round. Where a rule of the cluster forbids one, its VM stays.
    """
    state, sides = scene.state, scene.sides
    if not state.settled and (chosen.batch or can_move(state, sides)):
        return ()
    pinned = dict.fromkeys([*state.unmovable, *state.settled])
    while True:
        plan = _best_plan(scene, pinned, len(chosen.batch))
        moves = _within_reserves(state, sides, _first_round(state, _possible_now(state, plan)))
        passed, _ = admitted(state, moves)
        if len(passed) == len(moves):
            return passed
        pinned |= {move.vm: None for move in moves if move not in passed}


def _best_plan(scene: Scene, pinned: dict[VmId, None], batch: int) -> list[VmMove]:
    """The moves after which most can be changed; of those that lead to as much, the fewest."""
    state, sides = scene.state, scene.sides
    areas = [list(sides.old), list(sides.new)] if sides.divided else [[*sides.old, *sides.new]]
    best: list[VmMove] = []
    most = (batch, False)
    for area in areas:
        for order in _orders(state, sides, area, pinned):
            for moves in _plans(state, sides, order, pinned):
                imagined = _imagined(state, moves)
                after = scene_of(imagined, with_vms=False)
                possible = len(select(after).batch)
                goes_on = not batch and not possible and _empties_one(after)
                if (possible, goes_on) > most or (
                    best and (possible, goes_on) == most and len(moves) < len(best)
                ):
                    best, most = moves, (possible, goes_on)
                if possible > batch:
                    break
    return best


def _empties_one(scene: Scene) -> bool:
    """Whether so many VMs could move to the new side of a divided cluster that a host is empty."""
    state, sides = scene.state, scene.sides
    least = min((len(state.residents[one]) for one in used(state, sides.old)), default=0)
    return sides.divided and 0 < least <= limit(state, sides) and can_move(state, sides)


def _orders(
    state: State, sides: Sides, hosts: list[HostId], pinned: dict[VmId, None]
) -> list[list[HostId]]:
    """In which order hosts stay in use. Fewest VMs move if those do that have most; fewest hosts
    are needed if the largest do; and hosts that fail need the largest to be empty.
    """
    storing = _storing(state)

    def stays(host: HostId) -> tuple[bool, bool, bool]:
        held = any(vm in pinned for vm in state.residents.get(host, ()))
        return not held, host in storing, host in sides.old

    def residents(host: HostId) -> int:
        return len(state.residents.get(host, ()))

    def places(host: HostId) -> int:
        return state.places[host].places

    by_use = sorted(hosts, key=lambda one: (*stays(one), -residents(one)))
    if len({places(one) for one in hosts}) <= 1:
        return [by_use]
    by_size = sorted(hosts, key=lambda one: (*stays(one), -places(one), -residents(one)))
    largest = [one for one in by_size if stays(one)[0]][: failover(state, sides)]
    kept = dict.fromkeys(largest)
    with_large_ones_last = ([*(x for x in y if x not in kept), *kept] for y in (by_use, by_size))
    return [by_use, by_size, *(with_large_ones_last if kept else ())]


def _plans(
    state: State, sides: Sides, order: list[HostId], pinned: dict[VmId, None]
) -> Iterator[list[VmMove]]:
    """Moves after which only the first hosts of an order are in use: as many as leave enough
    others for all VMs that still have to move, then as few as VMs fit on.
    """
    sizes = Counter(kin(state, vm) for one in order for vm in state.residents.get(one, ()))
    least = fewest(sizes.values(), [state.places[one].places for one in order])
    if least is None:
        return
    enough = _enough(state, sides, order)
    for count in dict.fromkeys((max(least, enough), least)):
        moves = _packed_on(state, order, count, sizes, pinned)
        if moves:
            yield moves


def _enough(state: State, sides: Sides, order: list[HostId]) -> int:
    """How many hosts may stay in use such that the others, once changed, could take every VM that
    has to move, besides what is kept free: to empty more hosts would be for nothing.
    """
    places = [state.places[one].places for one in order]
    needed = sum(len(state.residents.get(one, ())) for one in sides.old)
    needed += sum(left_of(state, one) for one in state.tenants)
    needed += sum(sorted(places, reverse=True)[: failover(state, sides)])
    for count in range(len(order) - 1, 0, -1):
        needed -= places[count]
        if needed <= 0:
            return count
    return 0


def _packed_on(
    state: State,
    order: list[HostId],
    count: int,
    sizes: Mapping[str, int],
    pinned: dict[VmId, None],
) -> list[VmMove]:
    """Moves onto the first hosts of an order, or onto a few more if VMs that stay are in the way."""
    low, high = count, len(order)
    best: list[VmMove] = []
    while low < high:
        middle = low if low == count else (low + high) // 2
        packing = Packing(state, order[:middle], pinned)
        leaving = [vm for one in order[middle:] for vm in state.residents.get(one, ())]
        if all(packing.add(vm) for vm in sorted(leaving, key=lambda vm: -sizes[kin(state, vm)])):
            high, best = middle, _moves(state, packing.target)
        else:
            low = middle + 1
    return best


def _moves(state: State, target: Mapping[VmId, HostId]) -> list[VmMove]:
    """The moves of a packing, such that hosts become empty one after the other."""
    sources = {vm: host for vm in target if (host := state.seats[vm].host) is not None}
    left = Counter(sources.values())
    place = {one: rank for rank, one in enumerate(state.places)}
    made = [VmMove(vm=vm, source=source, target=target[vm]) for vm, source in sources.items()
            if target[vm] != source]  # fmt: skip
    emptied = {one for one, count in left.items() if count == len(state.residents[one])}
    return sorted(
        made, key=lambda one: (one.source in emptied, left[one.source], -place[one.source])
    )


def _possible_now(state: State, moves: Sequence[VmMove]) -> list[VmMove]:
    """The moves for which there is a place already; the others wait until somebody has left it."""
    seating = Seating(state, dict.fromkeys(move.target for move in moves))
    now: list[VmMove] = []
    for move in moves:
        group = state.seats[move.vm].group
        if seating.takes(move.target, group):
            seating.take(move.target, group)
            now.append(move)
    return now


def _within_reserves(
    state: State, sides: Sides, moves: tuple[VmMove, ...]
) -> tuple[VmMove, ...]:
    """As many moves, from the first, as leave room for tenants that grow and hosts that fail: a VM
    that moves takes two places.
    """
    missing, short = _shortage(state, sides, ())
    low, high = 0, len(moves)
    while low < high:
        middle = up_to(low + high, 2)
        then_missing, then_short = _shortage(state, sides, moves[:middle])
        if then_missing <= missing and then_short <= short:
            low = middle
        else:
            high = middle - 1
    return moves[:low]


def _shortage(state: State, sides: Sides, moves: tuple[VmMove, ...]) -> tuple[int, bool]:
    """How many VMs that tenants may ask for find no place, and whether anything is missing."""
    missing, short = 0, False
    areas: list[tuple[list[HostId], tuple[TenantId, ...]]] = (
        [(list(sides.old), old_only(state, sides)), (list(sides.new), with_new(state, sides))]
        if sides.divided
        else [([*sides.old, *sides.new], growing(state))]
    )
    for hosts, tenants in areas:
        seating = Seating(state, hosts)
        for move in moves:
            if move.target in seating.free:
                seating.take(move.target, state.seats[move.vm].group)
        empty = [one for one in hosts if seating.free[one] == state.places[one].places]
        made = reserve(
            state,
            seating,
            growth(state, tenants, lasting_s(state, sides)),
            busy=[one for one in hosts if seating.free[one] < state.places[one].places],
            empty=empty,
            failover=failover(state, sides),
        )
        missing += sum(made.missing.values())
        short = short or made.short
    return missing, short


def _imagined(state: State, moves: Iterable[VmMove]) -> State:
    """What would be if VMs had moved."""
    residents = {host: dict(those) for host, those in state.residents.items()}
    seats = dict(state.seats)
    for move in moves:
        residents[move.source].pop(move.vm, None)
        residents.setdefault(move.target, {})[move.vm] = None
        seats[move.vm] = replace(seats[move.vm], host=move.target)
    return replace(state, residents=residents, seats=seats)

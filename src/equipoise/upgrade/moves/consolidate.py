"""Consolidation: VMs are packed on fewer hosts where nothing else would be possible.

Which hosts stay in use is tried in a few orders; how many have to is known from the sizes of groups
and hosts, with room for tenants that grow; who moves is left to the packing. What comes of it is
judged by the selection itself, on the cluster as it would be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.moves.gate import admitted
from equipoise.upgrade.moves.gather import storing
from equipoise.upgrade.moves.packing import Packing, fewest, kin
from equipoise.upgrade.moves.rounds import comes_to_an_end, imagined, next_round
from equipoise.upgrade.moves.vms import can_move, failover, limit
from equipoise.upgrade.room import growing_group, growth, left_of
from equipoise.upgrade.rules import candidates
from equipoise.upgrade.scene import Scene, scene_of
from equipoise.upgrade.select import Selection, duration_s, select
from equipoise.upgrade.sides import Sides, growing, old_only, used, with_new
from equipoise.upgrade.state import State


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
        moves = next_round(state, sides, plan)
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
    for area in filter(None, areas):
        for order in _orders(state, sides, area, pinned):
            for moves in _plans(scene, order, pinned):
                after = scene_of(imagined(state, moves), with_vms=False)
                possible = len(select(after).batch)
                goes_on = not batch and not possible and _empties_one(after)
                better = (possible, goes_on) > most or (
                    best and (possible, goes_on) == most and len(moves) < len(best)
                )
                if better and comes_to_an_end(state, sides, moves):
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

    Each round finds the orders of the first: VMs count where they were when it began.
    """
    began = Counter(state.settled.values())
    began.update(seat.host for seat in state.seats.values()
                 if seat.host is not None and seat.vm not in state.settled)  # fmt: skip
    built_on = storing(state)

    def stays(host: HostId) -> tuple[bool, bool, bool]:
        here = state.residents.get(host, ())
        held = any(vm in pinned and vm not in state.settled for vm in here)
        return not held, host in built_on, host in sides.old

    def places(host: HostId) -> int:
        return state.places[host].places

    by_use = sorted(hosts, key=lambda one: (*stays(one), -began[one]))
    if len({places(one) for one in hosts}) <= 1:
        return [by_use]
    by_size = sorted(hosts, key=lambda one: (*stays(one), -places(one), -began[one]))
    largest = [one for one in by_size if stays(one)[0]][: failover(state, sides)]
    kept = dict.fromkeys(largest)
    with_large_ones_last = ([*(x for x in y if x not in kept), *kept] for y in (by_use, by_size))
    return [by_use, by_size, *(with_large_ones_last if kept else ())]


def _plans(scene: Scene, order: list[HostId], pinned: dict[VmId, None]) -> Iterator[list[VmMove]]:
    """Moves after which only the first hosts of an order are in use: with room for tenants that
    grow or, since empty hosts may do for these as well, without; as many as leave enough others
    for all VMs that still have to move, or as few as VMs fit on.
    """
    state = scene.state
    places = [state.places[one].places for one in order]
    sizes = Counter(kin(state, vm) for one in order for vm in state.residents.get(one, ()))
    expected = _expected(scene, order)
    enough = _enough(state, scene.sides, order)
    known: set[frozenset[tuple[VmId, HostId]]] = set()
    for coming in (expected, Counter[str]()) if expected else (expected,):
        least = fewest((sizes + coming).values(), places)
        if least is None:
            continue
        for count in dict.fromkeys((max(least, enough), least)):
            moves = _packed_on(state, order, count, coming, pinned)
            ends = frozenset((move.vm, move.target) for move in moves)
            if moves and ends not in known:
                known.add(ends)
                yield moves


def _expected(scene: Scene, order: list[HostId]) -> Counter[str]:
    """How many VMs tenants may ask for on these hosts while one is changed, by group."""
    state, sides = scene.state, scene.sides
    tenants = growing(state)
    if sides.divided:
        tenants = old_only(state, sides) if order[0] in sides.old else with_new(state, sides)
    lasts_s = duration_s(scene, candidates(scene))
    found: Counter[str] = Counter()
    for tenant, more in growth(state, tenants, lasts_s).items():
        group = growing_group(state, tenant)
        if group is not None:
            found[group] += more
        else:  # they may share a host, so each is a group of its own
            found.update(f"{tenant} {number}" for number in range(more))
    return found


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
    coming: Mapping[str, int],
    pinned: dict[VmId, None],
) -> list[VmMove]:
    """Moves onto the first hosts of an order, or a few more if VMs that stay are in the way."""
    low, high = count, len(order)
    best: list[VmMove] = []
    while low < high:
        middle = low if low == count else (low + high) // 2
        packing = Packing(state, order[:middle], pinned)
        leaving = [vm for one in order[middle:] for vm in state.residents.get(one, ())]
        together = Counter(kin(state, vm) for vm in leaving)
        leaving.sort(key=lambda vm: -together[kin(state, vm)])
        if all(packing.add(vm) for vm in leaving) and all(
            packing.expect(whom, more) for whom, more in coming.items()
        ):
            high, best = middle, _moves(state, packing.target)
        else:
            low = middle + 1
    return best


def _moves(state: State, target: Mapping[VmId, HostId]) -> list[VmMove]:
    """The moves of a packing: those first that make room, then host by host, the emptiest first."""
    sources = {vm: host for vm in target if (host := state.seats[vm].host) is not None}
    left = Counter(sources.values())
    place = {one: rank for rank, one in enumerate(state.places)}
    made = [VmMove(vm=vm, source=source, target=target[vm]) for vm, source in sources.items()
            if target[vm] != source]  # fmt: skip
    waited_for = set(target.values())
    return sorted(
        made, key=lambda one: (one.source not in waited_for, left[one.source], -place[one.source])
    )

"""What happens on hosts while time passes, on arrays: divide, use, add up.

Plain arithmetic that can be compiled. A host is divided anew only when something on it changes;
in between all rates stay, so the sums are rates times time.
"""

from __future__ import annotations

from typing import Any, Final

from equipoise.place import water
from equipoise.place.water import NOBODY, Ints, Records, add_up, flow_down
from equipoise.sim.fluid.rows import CURVE, LIMBO, State

CPU_CHANGED: Final = 1
ALL_CHANGED: Final = 2


def add_time(state: State, host: int, now_ms: int) -> None:
    """Bring the sums of a host and its VMs up to now."""
    one = state.hosts[host]
    passed = float(now_ms - one["last_ms"])
    if passed <= 0.0:
        return
    one["last_ms"] = now_ms
    one["energy"] += one["watts"] * passed
    one["cpu_used_sum"] += one["cpu_used"] * passed
    one["cpu_sum"] += one["cpu"] * passed
    one["memory_sum"] += one["memory"] * passed
    if one["awake"] == 0:
        one["energy_saved"] += one["watts_saved"] * passed
        one["asleep_ms"] += one["asleep"] * passed
    vm_of = state.nodes.tree["vm"]
    for node in range(one["first"], one["end"]):
        if vm_of[node] != NOBODY:
            add_time_of(state.vms[vm_of[node]], passed, host == LIMBO)


def add_time_of(vm: Any, passed: float, is_missed: bool) -> None:
    """Bring the sums of a VM up to now."""
    vm["seen_ms"] += passed
    vm["cpu_want_sum"] += vm["cpu_want"] * passed
    vm["memory_want_sum"] += vm["memory_want"] * passed
    if is_missed or vm["pace"] == 0.0:
        vm["down_ms"] += passed
    if not is_missed:
        vm["cpu_got_sum"] += vm["cpu_got"] * passed
        vm["memory_got_sum"] += vm["memory_got"] * passed
        vm["ready_sum"] += vm["ready"] * passed
        vm["run_ms"] += passed


def add_time_everywhere(state: State, count: int, now_ms: int) -> None:
    """Bring the sums of all hosts up to now."""
    for host in range(count):
        add_time(state, host, now_ms)


def divide_memory(state: State, host: int) -> None:
    """Give the VMs of a host their active memory, and reclaim what does not fit."""
    one, tree, claims = state.hosts[host], state.nodes.tree, state.nodes.memory
    first, end, vm_of = one["first"], one["end"], tree["vm"]
    want, got, vms = claims["want"], claims["got"], state.vms
    size, wanted, idle, room = 0.0, 0.0, 0.0, one["memory"] - one["memory_taken"]
    for node in range(first, end):
        if vm_of[node] != NOBODY:
            vm = vms[vm_of[node]]
            room -= state.overhead_mib
            active = vm["memory_want"]
            want[node] = active
            wanted += active
            size += vm["size"]
            idle += min(vm["size"] - active, state.balloon_most * vm["size"])
    add_up(tree, claims, first, end, False)
    room = max(0.0, room)
    flow_down(tree, claims, first, end, room)
    used = 0.0
    for node in range(first, end):
        if vm_of[node] != NOBODY:
            vms[vm_of[node]]["memory_got"] = got[node]
            used += got[node]
    one["memory_used"] = used
    one["memory_want"] = wanted
    reclaimed = max(0.0, size - room)
    one["ballooned"] = min(reclaimed, idle)
    one["swapped"] = reclaimed - one["ballooned"]


def divide_cpu(state: State, host: int) -> None:
    """Give the VMs of a host their cycles. Who misses memory or is being copied asks for less."""
    one, tree, claims = state.hosts[host], state.nodes.tree, state.nodes.cpu
    first, end, vm_of = one["first"], one["end"], tree["vm"]
    want, got, vms = claims["want"], claims["got"], state.vms
    wanted = 0.0
    for node in range(first, end):
        if vm_of[node] != NOBODY:
            vm = vms[vm_of[node]]
            asked = vm["cpu_want"]
            wanted += asked
            asked *= vm["pace"]
            if vm["memory_got"] < vm["memory_want"]:
                missing = 1.0 - vm["memory_got"] / vm["memory_want"]
                asked /= 1.0 + state.swap_slowdown * missing
            want[node] = asked
            vm["ready"] = asked  # until it is known what of it comes
    add_up(tree, claims, first, end, False)
    flow_down(tree, claims, first, end, max(0.0, one["cpu"] - one["cpu_taken"]))
    used = 0.0
    for node in range(first, end):
        if vm_of[node] != NOBODY:
            vm = vms[vm_of[node]]
            vm["cpu_got"] = got[node]
            vm["ready"] = 1.0 - got[node] / vm["ready"] if vm["ready"] > got[node] else 0.0
            used += got[node]
    one["cpu_used"] = used
    one["cpu_want"] = wanted


def draw_power(one: Any) -> None:
    """What a host draws now, by its curve."""
    if one["awake"] == 0:
        one["watts"] = one["watts_asleep"]
        return
    use = (one["cpu_used"] + one["cpu_taken"]) / one["cpu_all"]
    place = min(use, 1.0) * (CURVE - 1)
    left = min(int(place), CURVE - 2)
    curve = one["power_curve"]
    one["watts"] = curve[left] + (curve[left + 1] - curve[left]) * (place - left)


def divide(state: State, host: int) -> None:
    """Divide a host among its VMs."""
    one = state.hosts[host]
    changed = one["marked"]
    one["marked"] = 0
    if host == LIMBO:
        return
    if one["awake"] == 0:
        one["cpu_used"] = 0.0
        one["cpu_want"] = 0.0
        one["memory_used"] = 0.0
        one["memory_want"] = 0.0
        one["ballooned"] = 0.0
        one["swapped"] = 0.0
    else:
        if changed == ALL_CHANGED:
            divide_memory(state, host)
        divide_cpu(state, host)
    draw_power(one)


def mark(state: State, host: int, now_ms: int, changed: int, touched: Ints, count: int) -> int:
    """Bring a host up to now before something on it changes; it is divided anew afterwards."""
    if host == NOBODY:
        return count
    one = state.hosts[host]
    before = one["marked"]
    if changed > before:
        one["marked"] = changed
    if before != 0:
        return count
    add_time(state, host, now_ms)
    touched[count] = host
    return count + 1


def divide_marked(state: State, touched: Ints, count: int) -> None:
    """Divide all hosts on which something has changed."""
    for place in range(count):
        divide(state, touched[place])


def pass_time(state: State, changes: Records, touched: Ints) -> None:
    """Let demands change, one instant after the other; each host is divided once per instant."""
    vms, at_ms = state.vms, changes["at_ms"]
    place, end = 0, len(changes)
    while place < end:
        now_ms = at_ms[place]
        count = 0
        while place < end and at_ms[place] == now_ms:
            change = changes[place]
            vm = vms[change["row"]]
            kind = CPU_CHANGED if change["resource"] == 0 else ALL_CHANGED
            count = mark(state, vm["host"], now_ms, kind, touched, count)
            if kind == CPU_CHANGED:
                vm["cpu_want"] = change["value"]
            else:
                vm["memory_want"] = change["value"]
            place += 1
        divide_marked(state, touched, count)


FUNCTIONS: Final[tuple[Any, ...]] = (
    *water.FUNCTIONS,
    add_time_of,
    add_time,
    add_time_everywhere,
    divide_memory,
    divide_cpu,
    draw_power,
    divide,
    mark,
    divide_marked,
    pass_time,
)
"""Callee before caller, for ``Kernels``."""

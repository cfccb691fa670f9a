"""The plans of all cases executed side by side: one row for each moment.

Row 0 is the state before the plan. Then follows one row for each end and each start, in order of
time, ends before starts. A row between two events of one instant and one kind is not *shown*: it is
not a moment of the plan. The last row is the final state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from equipoise.model.action import HOST_TRANSITIONS, VM_TRANSITIONS, Action, kind_of
from equipoise.model.host import HostState
from equipoise.model.vm import VM_STATES, VmState
from equipoise.spec.batch.cases import HOST_CODES, NEVER, NOWHERE, VM_CODES, Array, CaseArrays


@dataclass(eq=False)
class StateRows:
    """The states of all cases at some moments: (element, moment, case)."""

    cases: CaseArrays
    vm_state: Array
    vm_host: Array
    host_state: Array
    under_way: Array
    """Whether a step is under way: (step, moment, case)."""
    allocated: dict[int, Array] = field(default_factory=dict)
    """The consumption of resources that plans change, by the code of the resource."""

    def only(self, rows: slice) -> StateRows:
        """Return the same for some of the moments."""
        return StateRows(
            self.cases,
            self.vm_state[:, rows],
            self.vm_host[:, rows],
            self.host_state[:, rows],
            self.under_way[:, rows],
            {name: amounts[:, rows] for name, amounts in self.allocated.items()},
        )

    @cached_property
    def running(self) -> Array:
        """The VMs that run on each host, as bits: (host, moment, case); the last host is none."""
        runs = self.vm_state == VM_CODES[VmState.RUNNING]
        return self._on_hosts(np.where(runs, self.vm_host, NOWHERE))

    @cached_property
    def hosted(self) -> Array:
        """The VMs that run or sleep on each host or are on their way to it, as bits."""
        hosted = self._on_hosts(self.vm_host)
        steps = self.cases.steps
        for row, going in enumerate(self.under_way):
            comes = (steps.vm[row] >= 0) & (steps.target[row] != NOWHERE)
            bit = np.uint64(1) << np.where(comes, steps.vm[row], 0).astype(np.uint64)
            for host in range(self.cases.hosts):
                mask = going & comes & (steps.target[row] == host)
                hosted[host] |= np.where(mask, bit, np.uint64(0))
        return hosted

    def _on_hosts(self, where: Array) -> Array:
        hosts = self.cases.hosts
        bits = np.zeros((hosts + 1, *where.shape[1:]), np.uint64)
        for host in range(hosts):
            for vm, at in enumerate(where):
                bits[host] |= (at == host).astype(np.uint64) << np.uint64(vm)
        return bits


@dataclass(eq=False)
class BatchTimeline:
    """All moments of all cases."""

    rows: StateRows
    shown: Array
    """Whether a row is a moment that is judged: (moment, case)."""
    at_ms: Array
    """The time of each row."""
    uncertain: Array
    """Cases in which a term had no value; the exact evaluator judges them again."""

    def mark_uncertain(self, where: Array) -> None:
        """Mark the cases in which a term has no value."""
        if where.any():
            wide = np.broadcast_to(where, np.broadcast_shapes(where.shape, self.uncertain.shape))
            self.uncertain = self.uncertain | wide.reshape(-1, len(self.uncertain)).any(axis=0)


def execute_plans(cases: CaseArrays, *, starts: bool) -> BatchTimeline:
    """Execute all plans. Without ``starts`` only ends make a row, for formulas that see no more."""
    steps, count = cases.steps, len(cases)
    most = steps.kind.shape[0]
    # Even keys are ends and odd keys are starts: at one instant the ends come first. In the list
    # all ends precede all starts, so that a stable sort keeps the order of the plans.
    keys = np.concatenate(
        [steps.end_ms * 2, steps.start_ms * 2 + 1] if starts else [steps.end_ms * 2]
    )
    order = np.argsort(keys, axis=0, kind="stable")
    keys = np.take_along_axis(keys, order, axis=0)
    world = _BatchWorld(cases, len(keys) + 1)
    for row, entry in enumerate(order, start=1):
        world.apply(row, entry % most, entry < most)
    # Of several events with one key only the state after the last one is a moment.
    last_of_group = np.ones(keys.shape, bool)
    last_of_group[:-1] = keys[1:] != keys[:-1]
    real = keys < NEVER
    shown = np.concatenate([np.ones((1, count), bool), last_of_group & real])
    # The final state is a moment also if the last rows belong to no step of the case.
    shown[-1] = True
    at_ms = np.concatenate([np.zeros((1, count), np.int64), np.where(real, keys // 2, 0)])
    under_way = _under_way(cases, order) if starts else np.zeros((most, 1, 1), bool)
    certain = np.zeros(count, bool)
    return BatchTimeline(
        # An unused row keeps the time of the last real one: it repeats the final state.
        world.rows(under_way),
        shown,
        np.maximum.accumulate(at_ms, axis=0),
        certain,
    )


def _under_way(cases: CaseArrays, order: Array) -> Array:
    """Return which steps are under way after each event."""
    most = len(order) // 2
    after = np.argsort(order, axis=0) + 1  # the row that each event leads to
    ends, starts = after[:most, None], after[most:, None]
    row = np.arange(len(order) + 1)[None, :, None]
    under_way: Array = (starts <= row) & (row < ends) & (cases.steps.kind >= 0)[:, None]
    return under_way


class _BatchWorld:
    """The current state of all cases, and the rows recorded so far."""

    def __init__(self, cases: CaseArrays, rows: int) -> None:
        self._cases = cases
        self._places = np.arange(len(cases))
        self._vm_state, self._vm_host = cases.vm_state.copy(), cases.vm_host.copy()
        self._host_state = cases.host_state.copy()
        shape = (rows, len(cases))
        self._vm_states = np.empty((cases.vms, *shape), np.int8)
        self._vm_hosts = np.empty((cases.vms, *shape), np.int8)
        self._host_states = np.empty((cases.hosts, *shape), np.int8)
        self._amounts: dict[int, Array] = {}
        self._amount_rows: dict[int, Array] = {}
        words = {number: word for word, number in cases.words.items()}
        for number in np.unique(cases.steps.resource[cases.steps.resource >= 0]):
            amounts = cases.of_vms("cons", words[int(number)]).copy()
            self._amounts[int(number)] = amounts
            self._amount_rows[int(number)] = np.empty((cases.vms, *shape), np.int64)
        self._agents = cases.agents()
        self._has_agents = bool(self._agents.any())
        self._kinds = {kind: cases.text_code(kind) for kind in (*_VM_KINDS, *_HOST_KINDS)}
        self._kill, self._allocate = cases.text_code("kill"), cases.text_code("allocate")
        self._present = set(np.unique(cases.steps.kind).tolist())
        self._write(0)

    def apply(self, row: int, step: Array, ends: Array) -> None:
        """Apply one event of each case; only ends change the state of VMs and hosts."""
        # As in the model, a transition from another state or host than the present one changes
        # nothing. A kind of -1 matches no action: the event of that case is a start.
        steps, places = self._cases.steps, self._places
        kind = np.where(ends, steps.kind[step, places], -1)
        vm = steps.vm[step, places]
        source, target = steps.source[step, places], steps.target[step, places]
        state, host = self._vm_state[vm, places], self._vm_host[vm, places]
        going_to: dict[str | None, Array | int]
        going_to = {None: NOWHERE, "source": source, "target": target}
        for name, transition in _VM_KINDS.items():
            # A kind that no plan uses costs nothing.
            if self._kinds[name] in self._present:
                came_from = source if transition.from_source else NOWHERE
                goes = (
                    (kind == self._kinds[name]) & (state == transition.before) & (host == came_from)
                )
                self._put(goes, vm, transition.after, going_to[transition.to])
        if self._kill in self._present:
            self._put(kind == self._kill, vm, VM_CODES[VmState.TERMINATED], NOWHERE)
        if self._allocate in self._present:
            for number, amounts in self._amounts.items():
                gets = (kind == self._allocate) & (steps.resource[step, places] == number)
                amounts[vm[gets], places[gets]] = steps.amount[step, places][gets]
        self._switch(kind, steps.switched[step, places])
        self._write(row)

    def rows(self, under_way: Array) -> StateRows:
        """Return everything that was recorded."""
        return StateRows(
            self._cases,
            self._vm_states,
            self._vm_hosts,
            self._host_states,
            under_way,
            self._amount_rows,
        )

    def _put(self, goes: Array, vm: Array, state: int, host: Array | int) -> None:
        rows, columns = vm[goes], self._places[goes]
        self._vm_state[rows, columns] = state
        self._vm_host[rows, columns] = host[goes] if isinstance(host, np.ndarray) else host

    def _switch(self, kind: Array, host: Array) -> None:
        for name, (before, after) in _HOST_KINDS.items():
            if self._kinds[name] not in self._present:
                continue
            asked = np.flatnonzero(kind == self._kinds[name])
            goes = asked[self._host_state[host[asked], asked] == before]
            self._host_state[host[goes], goes] = after
            # Agents sleep and wake with their host.
            if self._has_agents and goes.size:
                wakes = after == HOST_CODES[HostState.ON]
                agents = VM_CODES[VmState.RUNNING if wakes else VmState.SLEEPING]
                there = self._agents[:, goes] & (self._vm_host[:, goes] == host[goes])
                self._vm_state[:, goes] = np.where(there, agents, self._vm_state[:, goes])

    def _write(self, row: int) -> None:
        self._vm_states[:, row] = self._vm_state
        self._vm_hosts[:, row] = self._vm_host
        self._host_states[:, row] = self._host_state
        for number, amounts in self._amounts.items():
            self._amount_rows[number][:, row] = amounts


@dataclass(frozen=True, slots=True)
class _BatchTransition:
    before: int
    from_source: bool
    after: int
    to: str | None


def _host_after(action: type[Action], after: VmState) -> str | None:
    """Return the field of an action that names the host of its VM after it; ``None`` for none."""
    if "target" in action.__struct_fields__:
        return "target"
    return "source" if after.has_host else None


_VM_KINDS: Final = {
    kind_of(action): _BatchTransition(
        before=VM_CODES[before],
        from_source=before.has_host,
        after=VM_CODES[after],
        to=_host_after(action, after),
    )
    for action, (before, after) in VM_TRANSITIONS.items()
}
_HOST_KINDS: Final = {
    kind_of(action): (HOST_CODES[before], HOST_CODES[after])
    for action, (before, after) in HOST_TRANSITIONS.items()
}
assert len(VM_STATES) < NOWHERE

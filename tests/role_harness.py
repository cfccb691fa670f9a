"""A harness for the role decider: it receives every event, and all its proposals are executed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from builders import a_host, a_vm
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import RoleAction, StartRole
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionStarted,
    DemandObserved,
    Event,
    HostFailed,
    HostRecovered,
    SlotsFilled,
    VmChanged,
    VmCrashed,
)
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, RoleId, SlotId, StepId, VmId
from equipoise.model.roles.layout import (
    LayoutElement,
    Role,
    RoleGroup,
    RoleLayout,
    RolePreference,
    Slot,
    SlotChoice,
)
from equipoise.model.roles.state import GroupRole, layout_index
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, VmState
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.propose import RoleDecider
from role_relations import is_valid_for_all_counts

GROUP = RoleGroupId("g")
SLOTS = tuple(SlotId(f"s{n}") for n in range(1, 5))
PROCESSORS = tuple(ProcessorId(f"p{n}") for n in range(1, 7))
FIXED = tuple(RoleId(name) for name in ("a", "b", "c"))
FREE = tuple(RoleId(name) for name in ("x", "y"))


def elements(depth: int = 2) -> st.SearchStrategy[LayoutElement]:
    """Draw one element of a layout, with nested conditions."""
    roles = st.lists(st.sampled_from(FIXED), min_size=1, max_size=2, unique=True).map(tuple)
    plain = st.one_of(
        st.builds(LayoutElement, on_each=roles),
        st.builds(LayoutElement, slot=st.sampled_from(SLOTS), roles=roles),
    )
    if depth == 0:
        return plain
    inner = st.lists(elements(depth - 1), min_size=1, max_size=2).map(tuple)
    number = st.integers(0, len(SLOTS))
    return st.one_of(
        plain,
        st.builds(LayoutElement, if_active=number, layout=inner),
        st.builds(LayoutElement, at_least=number, layout=inner),
        st.builds(LayoutElement, at_most=number, layout=inner),
    )


def any_layouts() -> st.SearchStrategy[tuple[LayoutElement, ...]]:
    """Draw layouts, valid or not."""
    return st.lists(elements(), max_size=4).map(tuple)


def layouts() -> st.SearchStrategy[tuple[LayoutElement, ...]]:
    """Draw layouts without duplicate pairs: by construction, or by a filter."""
    built = st.lists(
        st.tuples(st.sampled_from(SLOTS), st.sampled_from(FIXED)), unique=True, max_size=6
    ).map(lambda pairs: tuple(LayoutElement(slot=s, roles=(r,)) for s, r in pairs))
    return st.one_of(
        built, any_layouts().filter(lambda layout: is_valid_for_all_counts(SLOTS, layout))
    )


def preferences(
    kinds: Sequence[SlotChoice] = tuple(SlotChoice), roles: Sequence[RoleId] = FREE
) -> st.SearchStrategy[tuple[RolePreference, ...]]:
    """Draw preferences of the free roles."""
    lists = st.lists(st.sampled_from(SLOTS), min_size=1, unique=True).map(tuple)
    builders = [
        st.builds(
            RolePreference,
            role=st.just(role),
            slots=lists,
            choose=st.sampled_from(kinds),
            count=st.integers(1, 2),
            preempt=st.booleans(),
        )
        for role in roles
    ]
    return st.tuples(*builders)


def a_team(
    layout: tuple[LayoutElement, ...] = (),
    preferred: tuple[RolePreference, ...] = (),
    **more: object,
) -> RoleGroup:
    """Return a group of all processors; with ``vms=True`` they are VMs."""
    as_vms = more.pop("vms", False)
    given: dict[str, object] = {
        "id": GROUP, "slots": tuple(Slot(id=slot) for slot in SLOTS),
        "layout": layout, "preferences": preferred,
        ("vms" if as_vms else "hosts"): PROCESSORS,
    }  # fmt: skip
    return RoleGroup(**given | more)  # type: ignore[arg-type]


def a_layout_of(*teams: RoleGroup, roles: Iterable[Role] = ()) -> RoleLayout:
    """Return a layout with all roles; given roles replace the plain ones."""
    given = {role.id: role for role in roles}
    return RoleLayout(
        roles=tuple(given.get(role_id, Role(id=role_id)) for role_id in (*FIXED, *FREE)),
        groups=teams,
    )


def an_inventory_for(layout: RoleLayout) -> Inventory:
    """Return the processors that a layout names, all running."""
    names = dict.fromkeys(name for team in layout.groups for name in team.hosts)
    vms = dict.fromkeys(name for team in layout.groups for name in team.vms)
    hosts = [a_host(name) for name in names] or [a_host("floor", cores=64)]
    return Inventory(
        hosts=tuple(hosts), vms=tuple(a_vm(name, "floor") for name in vms), layout=layout
    )


class RoleHarness:
    """One role decider, and a world that executes its actions."""

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout
        self.ledger = CapacityLedger(Snapshot.of(an_inventory_for(layout)))
        self.roles = RoleDecider()
        self.at_ms = 0
        self.open: dict[StepId, RoleAction] = {}
        """Actions that are running."""
        self.asked: list[RoleAction] = []
        """All actions that the decider has proposed."""
        self.refilled = 0
        """How often slots were assigned."""
        self._steps = 0

    @property
    def snapshot(self) -> Snapshot:
        return replace(self.ledger.draft.freeze(), at_ms=self.at_ms)

    def team(self, group: RoleGroupId = GROUP) -> RoleGroup:
        return layout_index(self.layout).groups[group]

    def happen(self, event: Event) -> None:
        """Apply an event, and pass it to the decider."""
        self.roles.on_event(event, self.ledger.apply(event))
        self.check_always()

    def down(self, name: ProcessorId) -> None:
        if VmId(name) in self.ledger.draft.vms:
            self.happen(VmCrashed(at_ms=self.at_ms, vm=VmId(name)))
        else:
            self.happen(HostFailed(at_ms=self.at_ms, host=HostId(name)))
        self._forget()

    def up(self, name: ProcessorId) -> None:
        vm = self.ledger.draft.vms.get(VmId(name))
        if vm is not None:
            changed = vm.but(state=VmState.RUNNING, host=HostId("floor"))
            self.happen(VmChanged(at_ms=self.at_ms, vm=changed))
        else:
            self.happen(HostRecovered(at_ms=self.at_ms, host=HostId(name)))

    def load(self, loads: dict[ProcessorId, int]) -> None:
        """Set the CPU demand of VM processors in MHz."""
        demand = {VmId(name): Demand(cpu_mhz=mhz) for name, mhz in loads.items()}
        self.happen(DemandObserved(at_ms=self.at_ms, demand=demand))

    def ask(self) -> int:
        """Get a proposal and start its actions. Return how many steps it has."""
        due_ms = self.roles.due_ms()
        if due_ms is None or due_ms > self.at_ms:
            return 0
        proposal = self.roles.propose(self.snapshot)
        for filling in proposal.slot_assignments:
            self.refilled += 1
            self.happen(SlotsFilled(at_ms=self.at_ms, group=filling.group, slots=filling.slots))
        for intent in proposal.intents:
            assert isinstance(intent.action, RoleAction)
            assert intent.reason, "for each action a reason"
            self._steps += 1
            step = Step(id=StepId(f"t{self._steps}"), action=intent.action, end_ms=1)
            self.asked.append(intent.action)
            self.open[step.id] = intent.action
            self.happen(ActionStarted(at_ms=self.at_ms, step=step, attempt=1))
        return len(proposal.intents) + len(proposal.slot_assignments)

    def answer(self, index: int = 0, *, well: bool = True) -> None:
        """Finish one of the running actions."""
        if not self.open:
            return
        step = list(self.open)[index % len(self.open)]
        del self.open[step]
        if well:
            self.happen(ActionFinished(at_ms=self.at_ms, step=step, attempt=1))
        else:
            self.happen(ActionFailed(at_ms=self.at_ms, step=step, attempt=1, reason="no"))

    def settle(self) -> None:
        """Run until nothing changes at this instant. No action may be undone on the way."""
        first = len(self.asked)
        for _ in range(200):
            if not self.ask() and not self.open:
                instances = [action.role_instance for action in self.asked[first:]]
                assert len(instances) == len(set(instances)), "an action was undone"
                return
            while self.open:
                self.answer()
        raise AssertionError("the decider does not settle")

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer, and settle in between."""
        end_ms = self.at_ms + round(1000 * seconds)
        while True:
            self.settle()
            due_ms = self.roles.due_ms()
            if due_ms is None or due_ms > end_ms:
                self.at_ms = end_ms
                self.settle()
                return
            self.at_ms = max(self.at_ms + 1, due_ms)

    def _forget(self) -> None:
        flying = self.ledger.draft.in_flight
        self.open = {step: action for step, action in self.open.items() if step in flying}

    # The current state

    def in_service(self) -> list[ProcessorId]:
        role_state = self.ledger.draft.role_state
        return [
            processor
            for processor in self.team().processors
            if self.ledger.draft.is_up(processor) and role_state.status(processor).locked is None
        ]

    def members(self) -> dict[SlotId, ProcessorId]:
        """Return the processor of each slot, of those in service."""
        here = set(self.in_service())
        slots = dict(self.ledger.draft.role_state.slots.get(GROUP, {}))
        return {slot: processor for slot, processor in slots.items() if processor in here}

    def running(self) -> set[tuple[RoleId, ProcessorId]]:
        held = self.ledger.draft.role_state.held
        return {
            (group_role.role, processor)
            for processor, roles in held.items()
            for group_role in roles
            if group_role.group == GROUP
        }

    def holders(self, role: RoleId) -> set[ProcessorId]:
        return {p for r, p in self.running() if r == role}

    # The laws

    def check_always(self) -> None:
        """Check at every instant: a single role has one holder, starting ones included."""
        single = layout_index(self.layout).single
        busy: dict[GroupRole, set[ProcessorId]] = {}
        for processor, roles in self.ledger.draft.role_state.held.items():
            for group_role in roles:
                busy.setdefault(group_role, set()).add(processor)
                assert self.ledger.draft.is_up(processor), (
                    f"{processor} is down and runs {group_role.role}"
                )
        for running in self.ledger.draft.in_flight.values():
            action = running.step.action
            if isinstance(action, StartRole):
                busy.setdefault(action.group_role, set()).add(action.processor)
        for group_role, holders in busy.items():
            assert group_role not in single or len(holders) <= 1, (
                f"{group_role.role} is held by {holders}"
            )

    def check_at_rest(self) -> None:
        """Check the settled state, when no timer keeps a slot."""
        team, members, here = self.team(), self.members(), self.in_service()
        assert len(set(members.values())) == len(members), "one slot each"
        assert len(members) == min(len(team.slots), len(here)), "as many slots filled as possible"
        if team.packed:
            prefix = [slot.id for slot in team.slots[: len(members)]]
            assert sorted(members) == sorted(prefix), "a packed group has no gaps"
        preferred = {preference.role for preference in team.preferences}
        wanted = set(layout_meaning(tuple(members.items()), team.layout))
        fixed = {pair for pair in self.running() if pair[0] not in preferred}
        assert fixed == wanted, "the running roles are the meaning of the layout"
        for preference in team.preferences:
            filled = [members[slot] for slot in preference.slots if slot in members]
            holders = self.holders(preference.role)
            assert holders <= set(filled), "only in allowed slots"
            assert len(holders) == min(preference.count, len(filled)), "covered if possible"
            if preference.choose is SlotChoice.PRIORITY and preference.preempt:
                assert holders == set(filled[: preference.count]), "the first slots of its list"
        assert not self.ask(), "a second proposal is empty"

"""A desk for the controller of roles: every event is told to it, everything it asks for is done.

Nothing of the house stands between them but the facts, so that what goes wrong here is its fault.
The laws are asked after every single change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from builders import a_host, a_vm
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
from equipoise.model.quantity import HostId, ProcessorId, RoleId, SlotId, StepId, TeamId, VmId
from equipoise.model.roles.duty import Duty, table_of
from equipoise.model.roles.layout import (
    Choose,
    Element,
    Role,
    RoleLayout,
    RolePreference,
    Slot,
    Team,
)
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand, VmState
from equipoise.plan.ledger import Ledger
from equipoise.roles.meaning import layout_meaning
from equipoise.roles.propose import Roles
from equipoise.roles.static import static_valid

GROUP = TeamId("g")
SLOTS = tuple(SlotId(f"s{n}") for n in range(1, 5))
PROCESSORS = tuple(ProcessorId(f"p{n}") for n in range(1, 7))
FIXED = tuple(RoleId(name) for name in ("a", "b", "c"))
FREE = tuple(RoleId(name) for name in ("x", "y"))


def elements(depth: int = 2) -> st.SearchStrategy[Element]:
    """One element of a layout, conditions nested a few times."""
    roles = st.lists(st.sampled_from(FIXED), min_size=1, max_size=2, unique=True).map(tuple)
    plain = st.one_of(
        st.builds(Element, on_each=roles),
        st.builds(Element, slot=st.sampled_from(SLOTS), roles=roles),
    )
    if depth == 0:
        return plain
    inner = st.lists(elements(depth - 1), min_size=1, max_size=2).map(tuple)
    number = st.integers(0, len(SLOTS))
    return st.one_of(
        plain,
        st.builds(Element, if_active=number, layout=inner),
        st.builds(Element, at_least=number, layout=inner),
        st.builds(Element, at_most=number, layout=inner),
    )


def any_layouts() -> st.SearchStrategy[tuple[Element, ...]]:
    """Layouts, valid or not."""
    return st.lists(elements(), max_size=4).map(tuple)


def layouts() -> st.SearchStrategy[tuple[Element, ...]]:
    """Layouts that give nothing twice: by filter, and one that is so by construction."""
    built = st.lists(
        st.tuples(st.sampled_from(SLOTS), st.sampled_from(FIXED)), unique=True, max_size=6
    ).map(lambda pairs: tuple(Element(slot=s, roles=(r,)) for s, r in pairs))
    return st.one_of(built, any_layouts().filter(lambda one: static_valid(SLOTS, one)))


def preferences(
    kinds: Sequence[Choose] = tuple(Choose), roles: Sequence[RoleId] = FREE
) -> st.SearchStrategy[tuple[RolePreference, ...]]:
    """What the free roles prefer."""
    lists = st.lists(st.sampled_from(SLOTS), min_size=1, unique=True).map(tuple)
    ones = [
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
    return st.tuples(*ones)


def a_team(
    layout: tuple[Element, ...] = (), wanted: tuple[RolePreference, ...] = (), **more: object
) -> Team:
    """A group of all processors; with ``vms=True`` they are VMs."""
    as_vms = more.pop("vms", False)
    given: dict[str, object] = {
        "id": GROUP, "slots": tuple(Slot(id=slot) for slot in SLOTS),
        "layout": layout, "preferences": wanted,
        ("vms" if as_vms else "hosts"): PROCESSORS,
    }  # fmt: skip
    return Team(**given | more)  # type: ignore[arg-type]


def a_layout_of(*teams: Team, roles: Iterable[Role] = ()) -> RoleLayout:
    """A layout with all roles, those given instead of the plain ones."""
    mine = {role.id: role for role in roles}
    return RoleLayout(roles=tuple(mine.get(r, Role(id=r)) for r in (*FIXED, *FREE)), groups=teams)


def an_inventory_for(layout: RoleLayout) -> Inventory:
    """The processors that a layout names, all on and running."""
    names = dict.fromkeys(name for team in layout.groups for name in team.hosts)
    vms = dict.fromkeys(name for team in layout.groups for name in team.vms)
    hosts = [a_host(name) for name in names] or [a_host("floor", cores=64)]
    return Inventory(
        hosts=tuple(hosts), vms=tuple(a_vm(name, "floor") for name in vms), layout=layout
    )


class Desk:
    """One controller, and a world that does what it asks for."""

    def __init__(self, layout: RoleLayout) -> None:
        self.layout = layout
        self.ledger = Ledger(Snapshot.of(an_inventory_for(layout)))
        self.roles = Roles()
        self.at_ms = 0
        self.open: dict[StepId, RoleAction] = {}
        """What is under way."""
        self.asked: list[RoleAction] = []
        """Everything that was ever asked for."""
        self.refilled = 0
        """How often slots were filled anew."""
        self._steps = 0

    @property
    def snapshot(self) -> Snapshot:
        return replace(self.ledger.draft.freeze(), at_ms=self.at_ms)

    def team(self, group: TeamId = GROUP) -> Team:
        return table_of(self.layout).teams[group]

    def happen(self, event: Event) -> None:
        """Something happens, and the controller is told."""
        self.roles.heed(event, self.ledger.apply(event))
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
        """Processors that are VMs are asked for so many MHz."""
        demand = {VmId(name): Demand(cpu_mhz=mhz) for name, mhz in loads.items()}
        self.happen(DemandObserved(at_ms=self.at_ms, demand=demand))

    def ask(self) -> int:
        """Ask the controller, and begin what it wants; say how much that is."""
        due_ms = self.roles.due_ms()
        if due_ms is None or due_ms > self.at_ms:
            return 0
        proposal = self.roles.propose(self.snapshot)
        for one in proposal.fillings:
            self.refilled += 1
            self.happen(SlotsFilled(at_ms=self.at_ms, group=one.group, slots=one.slots))
        for intent in proposal.intents:
            assert isinstance(intent.action, RoleAction)
            assert intent.reason, "for each action a reason"
            self._steps += 1
            step = Step(id=StepId(f"t{self._steps}"), action=intent.action, end_ms=1)
            self.asked.append(intent.action)
            self.open[step.id] = intent.action
            self.happen(ActionStarted(at_ms=self.at_ms, step=step, attempt=1))
        return len(proposal.intents) + len(proposal.fillings)

    def answer(self, place: int = 0, *, well: bool = True) -> None:
        """One of the actions under way ends."""
        if not self.open:
            return
        step = list(self.open)[place % len(self.open)]
        del self.open[step]
        if well:
            self.happen(ActionFinished(at_ms=self.at_ms, step=step, attempt=1))
        else:
            self.happen(ActionFailed(at_ms=self.at_ms, step=step, attempt=1, reason="no"))

    def settle(self) -> None:
        """Let everything come to rest at this instant; nothing is done only to be undone."""
        first = len(self.asked)
        for _ in range(200):
            if not self.ask() and not self.open:
                posts = [action.post for action in self.asked[first:]]
                assert len(posts) == len(set(posts)), "something was done and undone"
                return
            while self.open:
                self.answer()
        raise AssertionError("it never comes to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer, with everything at rest in between."""
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

    # What there is

    def in_service(self) -> list[ProcessorId]:
        marks = self.ledger.draft.duties
        return [
            one
            for one in self.team().processors
            if self.ledger.draft.is_up(one) and marks.mark(one).locked is None
        ]

    def members(self) -> dict[SlotId, ProcessorId]:
        """Who fills which slot, of those in service."""
        here = set(self.in_service())
        slots = dict(self.ledger.draft.duties.slots.get(GROUP, {}))
        return {slot: one for slot, one in slots.items() if one in here}

    def running(self) -> set[tuple[RoleId, ProcessorId]]:
        held = self.ledger.draft.duties.held
        return {(d.role, p) for p, duties in held.items() for d in duties if d.group == GROUP}

    def holders(self, role: RoleId) -> set[ProcessorId]:
        return {p for r, p in self.running() if r == role}

    # The laws

    def check_always(self) -> None:
        """At every instant: a single role has one holder, counting those that are starting it."""
        single = table_of(self.layout).single
        busy: dict[Duty, set[ProcessorId]] = {}
        for p, duties in self.ledger.draft.duties.held.items():
            for duty in duties:
                busy.setdefault(duty, set()).add(p)
                assert self.ledger.draft.is_up(p), f"{p} is down and runs {duty.role}"
        for running in self.ledger.draft.in_flight.values():
            action = running.step.action
            if isinstance(action, StartRole):
                busy.setdefault(action.duty, set()).add(action.processor)
        for duty, holders in busy.items():
            assert duty not in single or len(holders) <= 1, f"{duty.role} is held by {holders}"

    def check_at_rest(self) -> None:
        """Once everything has settled and no timer keeps a slot."""
        team, members, here = self.team(), self.members(), self.in_service()
        assert len(set(members.values())) == len(members), "one slot each"
        assert len(members) == min(len(team.slots), len(here)), "as many filled as can be"
        if team.packed:
            prefix = [slot.id for slot in team.slots[: len(members)]]
            assert sorted(members) == sorted(prefix), "a packed group has no holes"
        preferred = {one.role for one in team.preferences}
        wanted = set(layout_meaning(tuple(members.items()), team.layout))
        fixed = {pair for pair in self.running() if pair[0] not in preferred}
        assert fixed == wanted, "what runs is what the layout means"
        for one in team.preferences:
            filled = [members[slot] for slot in one.slots if slot in members]
            holders = self.holders(one.role)
            assert holders <= set(filled), "only where it may run"
            assert len(holders) == min(one.count, len(filled)), "covered if that is possible"
            if one.choose is Choose.PRIORITY and one.preempt:
                assert holders == set(filled[: one.count]), "the first ones of its list"
        assert not self.ask(), "whoever is asked again has nothing to say"

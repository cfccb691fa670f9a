"""``equipoise roles plan``: the role starts and stops that would follow, with reasons.

The command runs the scenario on a simulated world in which every action succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from equipoise.cli.output import console, make_table, print_document, printable
from equipoise.cli.roles.run import load_valid_scenario, print_history
from equipoise.documents.role_run import RoleHistoryEntry, role_history, roles_plan_document
from equipoise.errors import InvalidInput
from equipoise.model.diagnostics import closest_match, quoted
from equipoise.model.event import HostFailed, ProcessorLocked, VmCrashed
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.roles.layout import roles_in_layout
from equipoise.model.roles.state import GroupRole, LayoutIndex, layout_index
from equipoise.model.scenario.faults import Faults, ScheduledEvent
from equipoise.model.scenario.physics import Physics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.removal import RemovalCheck, check_removal
from equipoise.sim.expand import expand
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

SETTLE_S: Final = 24 * 3600
"""Time after which all roles that start at the beginning run."""
_ACTION_EVENTS: Final = frozenset(("action_started", "slots_filled", "plan_refused"))


def run(
    file: Path, *, fail: Sequence[str], lock: Sequence[str], leave: Sequence[str], as_json: bool
) -> int:
    """Print the plan after hosts and VMs fail, are locked or leave.

    1 if a role has no holder or a processor may not leave.
    """
    scenario = load_valid_scenario(file)
    _check_names(scenario, (*fail, *lock, *leave))
    since_ms = 1000 * SETTLE_S if fail or lock else 0
    snapshot, actions = _simulate_plan(scenario, fail, lock, since_ms)
    removal = check_removal(snapshot, leave) if leave else None
    uncovered = uncovered_roles(snapshot)
    if as_json:
        document = roles_plan_document(
            scenario, snapshot, actions, uncovered, removal, since_ms=since_ms
        )
        print_document(document)
    else:
        _show(snapshot, actions, since_ms, uncovered, removal)
    return 1 if uncovered or (removal is not None and removal.blocked) else 0


def _simulate_plan(
    scenario: Scenario, fail: Sequence[str], lock: Sequence[str], since_ms: int
) -> tuple[Snapshot, list[RoleHistoryEntry]]:
    """Run until no action is left; every action succeeds."""
    hosts = {host.id for host in expand(scenario).inventory.hosts}
    told: list[ScheduledEvent] = []
    for name in fail:
        host, vm = HostId(name), VmId(name)
        told.append(
            HostFailed(at_ms=since_ms, host=host)
            if host in hosts
            else VmCrashed(at_ms=since_ms, vm=vm)
        )
    told += (
        ProcessorLocked(at_ms=since_ms, processor=ProcessorId(name), reason="option --lock")
        for name in lock
    )
    end_s = since_ms // 1000 + SETTLE_S
    # Roles act on events alone, so no periodic pass is needed before the end.
    calm = scenario.but(
        deciders=("roles",), physics=Physics(), faults=Faults(), events=tuple(told),
        duration_s=end_s, pass_s=end_s, plan=None,
    )  # fmt: skip
    journal = MemoryJournal()
    runner = ScenarioRunner(calm, journal)
    runner.run(1000 * end_s)
    actions = [
        entry
        for entry in role_history(journal.events())
        if entry.at_ms >= since_ms and entry.event in _ACTION_EVENTS
    ]
    return runner.snapshot(), actions


def uncovered_roles(snapshot: Snapshot) -> list[GroupRole]:
    """Return the required roles without a holder."""
    layout = snapshot.settings.layout
    assert layout is not None, "read_layout_file rejects a file without a layout"
    table = layout_index(layout)
    held = {group_role for roles in snapshot.role_state.held.values() for group_role in roles}
    return [group_role for group_role in _required_roles(table) if group_role not in held]


def _required_roles(table: LayoutIndex) -> Iterable[GroupRole]:
    for group, team in table.groups.items():
        named = (
            *roles_in_layout(team.layout),
            *(preference.role for preference in team.preferences),
        )
        for role in dict.fromkeys(named):
            if not table.roles[role].optional:
                yield GroupRole(group, role)


def _check_names(scenario: Scenario, names: Sequence[str]) -> None:
    layout = scenario.cluster.layout
    assert layout is not None, "read_layout_file rejects a file without a layout"
    known = [str(name) for name in layout_index(layout).groups_of]
    for name in names:
        if name not in known:
            near = closest_match(name, known)
            cure = f"did you mean {near}?" if near else "name a processor of a group"
            raise InvalidInput.of(
                scenario.name,
                f"no group has {quoted(name)}",
                key=name,
                cure=cure,
                code="unknown-name",
            )


def _show(
    snapshot: Snapshot,
    actions: list[RoleHistoryEntry],
    since_ms: int,
    uncovered: Sequence[GroupRole],
    removal: RemovalCheck | None,
) -> None:
    out = console()
    print_history(actions, since_ms)
    draft = Draft(snapshot)
    up = {
        p for slots in snapshot.role_state.slots.values() for p in slots.values() if draft.is_up(p)
    }
    rows = make_table("group", "slot", "processor", "roles")
    for group, slots in snapshot.role_state.slots.items():
        for slot, processor in slots.items():
            held = snapshot.role_state.held.get(processor, ())
            mine = ", ".join(group_role.role for group_role in held if group_role.group == group)
            if processor not in up:
                mine = "processor is down"
            rows.add_row(
                printable(group),
                printable(slot),
                printable(processor),
                printable(mine or "none"),
            )
    out.print(rows)
    for group_role in uncovered:
        out.print(f"{printable(group_role.role)} of {printable(group_role.group)} has no holder")
    if removal is not None:
        for name in removal.allowed:
            out.print(f"{printable(name)} may leave")
        for name, why in removal.blocked.items():
            out.print(f"{printable(name)} may not leave: {printable(why)}")

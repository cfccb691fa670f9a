"""The ready layouts: what each redundancy model says, as preferences and roles kept apart."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.quantity import RoleId, SlotId
from equipoise.model.roles.layout import Choose, Ready, Redundancy, RolePreference, Team, Workload


def expanded(team: Team) -> Team:
    """The group with its ready layout written out."""
    ready = team.redundancy
    if ready is None:
        return team
    slots = tuple(slot.id for slot in team.slots)
    return team.but(
        preferences=(*team.preferences, *_preferences(ready, slots)),
        together=(*team.together, *_together(ready)),
        apart=(*team.apart, *_apart(ready)),
        redundancy=None,
    )


def _preferences(ready: Ready, slots: tuple[SlotId, ...]) -> Iterator[RolePreference]:
    spread = ready.model in (Redundancy.N_WAY, Redundancy.NONE)
    choose = Choose.ANY if spread else Choose.PRIORITY
    for one in ready.workloads:
        yield RolePreference(
            role=one.active,
            slots=slots,
            choose=choose,
            count=_actives(ready),
            preempt=ready.return_to_first and not spread,
            promotes=one.standby,
        )
    for one in _with_standby(ready):
        assert one.standby is not None
        count = 1 if ready.model is Redundancy.TWO_N else ready.standbys
        yield RolePreference(role=one.standby, slots=slots, choose=choose, count=count)


def _actives(ready: Ready) -> int:
    many = ready.model in (Redundancy.N_PLUS_M, Redundancy.N_WAY_ACTIVE)
    return ready.actives if many else 1


def _with_standby(ready: Ready) -> list[Workload]:
    if ready.model in (Redundancy.N_WAY_ACTIVE, Redundancy.NONE):
        return []
    return [one for one in ready.workloads if one.standby is not None]


def _together(ready: Ready) -> Iterator[tuple[RoleId, ...]]:
    """With 2N one processor is active for everything, and one is standby for everything."""
    if ready.model is Redundancy.TWO_N and len(ready.workloads) > 1:
        yield tuple(one.active for one in ready.workloads)
        standbys = tuple(one.standby for one in ready.workloads if one.standby is not None)
        if len(standbys) > 1:
            yield standbys


def _apart(ready: Ready) -> Iterator[tuple[RoleId, ...]]:
    if ready.model is Redundancy.NONE and len(ready.workloads) > 1:
        yield tuple(one.active for one in ready.workloads)
    for one in _with_standby(ready):
        assert one.standby is not None
        if ready.model is Redundancy.N_WAY:
            yield (one.active, one.standby)
        else:  # nobody is active for one and standby for another
            yield from ((other.active, one.standby) for other in ready.workloads)

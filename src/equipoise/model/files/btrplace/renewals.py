"""VMs that are made anew: in BtrPlace another VM takes the place of the old one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from equipoise.model.files.btrplace import plan_form as form


class Renewal(NamedTuple):
    """The actions by which a VM is made anew, one after the other."""

    forge: form.ForgeVm
    boot: form.BootVm
    shutdown: form.ShutdownVm

    @property
    def is_in_order(self) -> bool:
        """Whether the new one runs before the old one stops."""
        return self.forge.end <= self.boot.start and self.boot.end <= self.shutdown.start


def renewals_of(plan: form.ReconfigurationPlan) -> dict[int, Renewal]:
    """The renewals that are whole and in order, by the number of the new VM; the first come first.

    Whoever is made anew twice has his second number when he gets his third.
    """
    forged = {one.vm: one for one in plan.actions if isinstance(one, form.ForgeVm)}
    stopped = {one.vm: one for one in plan.actions if isinstance(one, form.ShutdownVm)}
    found: dict[int, Renewal] = {}
    for boot, event in sorted(_substitutions(plan), key=lambda one: one[0].start):
        forge, shutdown = forged.get(event.new_vm), stopped.get(event.vm)
        if forge is not None and shutdown is not None and boot.vm == event.new_vm:
            renewal = Renewal(forge, boot, shutdown)
            if renewal.is_in_order and all(renewal.shutdown != one[2] for one in found.values()):
                found[event.new_vm] = renewal
    return found


def _substitutions(
    plan: form.ReconfigurationPlan,
) -> Iterator[tuple[form.BootVm, form.SubstitutedVmEvent]]:
    for action in plan.actions:
        if isinstance(action, form.BootVm):
            for events in action.hooks.values():
                for event in events:
                    if isinstance(event, form.SubstitutedVmEvent):
                        yield action, event

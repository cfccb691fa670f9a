"""Plans: steps that wait for each other, and whom they are about."""

from __future__ import annotations

from equipoise.model.files.check.cycles import cycle_shown, cycles
from equipoise.model.files.check.roster import Elements, NamedElements, Roster
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gap
from equipoise.model.files.words import Path, quoted
from equipoise.model.plan import Plan, Step


def check_plan(plan: Plan, found: Findings, gap: Gap | None) -> None:
    """Find steps that end before they start, or that wait for what never comes."""
    steps = NamedElements("step", ("steps",), plan.steps, gap)
    steps.check_ids(found)
    places: dict[str, int] = {}
    for place, step in steps:
        places.setdefault(step.id, place)
        if step.end_ms <= step.start_ms:
            what = f"{step.end_ms} is not after start_ms {step.start_ms}"
            found.add(("steps", place, "end_ms"), what, f"more than {step.start_ms}")
        _check_after(step, steps, ("steps", place, "after"), found)
    waits = {step.id: [name for name in step.after if name != step.id] for _, step in steps}
    for cycle in cycles(waits):
        what = f"the steps wait for each other: {cycle_shown(cycle)}"
        found.add(("steps", places[cycle[0]], "after"), what, "let one of them wait for none")


def _check_after(step: Step, steps: NamedElements[Step], path: Path, found: Findings) -> None:
    for place, name in enumerate(step.after):
        if name == step.id:
            found.add((*path, place), f"{quoted(name)} waits for itself", "leave it out")
        else:
            steps.check(name, (*path, place), found)


def check_subjects(plan: Plan, roster: Roster, found: Findings, gap: Gap | None) -> None:
    """Find steps about VMs and hosts that the cluster does not have."""
    for place, step in Elements(plan.steps, gap):
        path: Path = ("steps", place, "action")
        for key in step.action.__struct_fields__:
            if key == "vm":
                roster.vms.check(getattr(step.action, key), (*path, key), found)
            elif key in ("host", "source", "target"):
                roster.hosts.check(getattr(step.action, key), (*path, key), found)

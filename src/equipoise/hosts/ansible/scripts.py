"""From a task of an upgrade to the playbooks that carry it out. Never opens them.

A playbook is told which way it goes: ``equipoise_to`` is the version that the host is to have in
the end, whether something is done or taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.hosts.ansible.words import Chore, Scalar
from equipoise.model.upgrade.work import Errand, Task, VmMove, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """Where playbooks are found."""

    folder: Path
    """What the names in the catalog are seen from."""
    errands: Mapping[Errand, Path] = field(default_factory=dict)
    """What is run for tasks that are not about components; nothing is done for others."""
    move: Path | None = None
    """What moves a VM."""


class Nameless(Exception):
    """There is no playbook for what is to be done; the reason is for the journal."""


def chores_of(task: Task, host: str, scripts: Scripts) -> list[Chore]:
    """What is to be run for a task, one after the other; nothing if there is nothing to do."""
    match task.errand:
        case Errand.APPLY:
            return [_chore(task, work, host, scripts) for work in task.works]
        case Errand.REVERT:  # the coordinator names the last work first
            return [_chore(task, _back(work), host, scripts) for work in task.works]
        case Errand.CHECK:
            checked = [work for work in task.works if work.recipe.check_script]
            return [_check(task, work, host, scripts) for work in checked]
    playbook = scripts.errands.get(task.errand)
    if playbook is None:
        return []
    variables = _told(task)
    if task.link_to is not None:
        variables["equipoise_link_to"] = task.link_to
    chore = Chore(host=host, action=task.errand.value, playbook=playbook, variables=variables)
    return [chore]


def move_of(move: VmMove, scripts: Scripts) -> Chore:
    """What is to be run to move a VM; it is run on the host that the VM leaves."""
    if scripts.move is None:
        raise Nameless("the access file names no playbook that moves a VM (move)")
    variables: dict[str, Scalar] = {
        "equipoise_vm": move.vm,
        "equipoise_source": move.source,
        "equipoise_target": move.target,
        "equipoise_converted": move.converted,
    }
    return Chore(host=move.source, action="move", playbook=scripts.move, variables=variables)


def _chore(task: Task, work: Work, host: str, scripts: Scripts) -> Chore:
    if work.recipe.by_hand:
        # The engine only says when; whether it was done is seen by the check, which may wait.
        return _check(task, work, host, scripts)
    key = "undo_script" if work.undoing else "script"
    name = work.recipe.undo_script if work.undoing else work.recipe.script
    return _named(key, name, task, work, host, scripts)


def _check(task: Task, work: Work, host: str, scripts: Scripts) -> Chore:
    return _named("check_script", work.recipe.check_script, task, work, host, scripts)


def _named(key: str, name: str, task: Task, work: Work, host: str, scripts: Scripts) -> Chore:
    if not name:
        what = f"to {work.does} {work.component}"
        raise Nameless(f"the catalog names no playbook {what} ({key})")
    variables = _told(task) | {
        "equipoise_component": work.component,
        "equipoise_from": work.before or "",
        "equipoise_to": work.after or "",
        "equipoise_set": work.set,
    }
    return Chore(
        host=host,
        action=f"{task.errand} {work.component}",
        playbook=scripts.folder / name,
        variables=variables,
    )


def _told(task: Task) -> dict[str, Scalar]:
    return {"equipoise_resource": task.resource, "equipoise_attempt": task.attempt}


def _back(work: Work) -> Work:
    return work.but(before=work.after, after=work.before, undoing=not work.undoing)

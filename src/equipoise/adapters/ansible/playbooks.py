"""Playbooks: the jobs of an upgrade task, and a check of all playbooks before a run.

The variable ``equipoise_to`` is the version that the host has in the end, whether a change is
applied or reverted. A playbook must have ``hosts: "{{ equipoise_hosts }}"``. A playbook with
``hosts: all`` would act on the hosts of every other action of the batch, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

import yaml

from equipoise.adapters.ansible.job import PlaybookJob, Scalar
from equipoise.adapters.ansible.process import HOSTS_VARIABLE
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.upgrade.work import TaskKind, UpgradeTask, VmMove, WorkItem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookPaths:
    """The playbooks of the catalog and of the access file."""

    folder: Path
    """The folder that the names in the catalog are relative to."""
    by_task: Mapping[TaskKind, Path] = field(default_factory=dict)
    """Playbooks for tasks that do not concern a component."""
    move: Path | None = None
    """The playbook that moves a VM."""


SWITCHING_KINDS: Final = (
    TaskKind.DEACTIVATE,
    TaskKind.ACTIVATE,
    TaskKind.LINK_OFF,
    TaskKind.LINK_ON,
)
"""Tasks of upgrade units: versions that are incompatible must not meet, so they are never empty."""


class MissingPlaybook(Exception):
    """A task has no playbook or no connection; the message is the reason in the journal."""


def jobs_for_task(task: UpgradeTask, host: str, playbooks: PlaybookPaths) -> list[PlaybookJob]:
    """Return the jobs of a task, in order; empty if there is nothing to do."""
    match task.kind:
        case TaskKind.APPLY:
            return [_work_job(task, work, host, playbooks) for work in task.works]
        case TaskKind.REVERT:  # the coordinator lists the last work first
            return [_work_job(task, _reversed(work), host, playbooks) for work in task.works]
        case TaskKind.CHECK:
            checked = [work for work in task.works if work.recipe.check_script]
            return [_check_job(task, work, host, playbooks) for work in checked]
    playbook = playbooks.by_task.get(task.kind)
    if playbook is None:
        if task.kind in SWITCHING_KINDS:
            # Without it the resource would stay as it is and count as switched.
            what = f"the access file names no playbook for {task.kind} (task_playbooks.{task.kind})"
            raise MissingPlaybook(what)
        return []
    variables = _task_variables(task)
    if task.link_to is not None:
        variables["equipoise_link_to"] = task.link_to
    job = PlaybookJob(host=host, action=task.kind.value, playbook=playbook, variables=variables)
    return [job]


def job_for_move(move: VmMove, playbooks: PlaybookPaths) -> PlaybookJob:
    """Return the job that moves a VM; it runs on the host that the VM leaves."""
    if playbooks.move is None:
        raise MissingPlaybook(
            "the access file names no playbook that moves a VM (task_playbooks.move)"
        )
    variables: dict[str, Scalar] = {
        "equipoise_vm": move.vm,
        "equipoise_source": move.source,
        "equipoise_target": move.target,
        "equipoise_converted": move.converted,
    }
    return PlaybookJob(
        host=move.source, action="move", playbook=playbooks.move, variables=variables
    )


def _work_job(
    task: UpgradeTask, work: WorkItem, host: str, playbooks: PlaybookPaths
) -> PlaybookJob:
    if work.recipe.by_hand:
        # An operator does the work. The check finds out whether it is done, and may wait for it.
        return _check_job(task, work, host, playbooks)
    key = "undo_script" if work.undoing else "script"
    name = work.recipe.undo_script if work.undoing else work.recipe.script
    return _named_job(key, name, task, work, host, playbooks)


def _check_job(
    task: UpgradeTask, work: WorkItem, host: str, playbooks: PlaybookPaths
) -> PlaybookJob:
    return _named_job("check_script", work.recipe.check_script, task, work, host, playbooks)


def _named_job(
    key: str, name: str, task: UpgradeTask, work: WorkItem, host: str, playbooks: PlaybookPaths
) -> PlaybookJob:
    if not name:
        what = f"to {work.does} {work.component}"
        raise MissingPlaybook(f"the catalog names no playbook {what} ({key})")
    variables = _task_variables(task) | {
        "equipoise_component": work.component,
        "equipoise_from": work.before or "",
        "equipoise_to": work.after or "",
        "equipoise_set": work.set,
    }
    return PlaybookJob(
        host=host,
        action=f"{task.kind} {work.component}",
        playbook=playbooks.folder / name,
        variables=variables,
    )


def _task_variables(task: UpgradeTask) -> dict[str, Scalar]:
    return {"equipoise_resource": task.resource, "equipoise_attempt": task.attempt}


def _reversed(work: WorkItem) -> WorkItem:
    return work.but(before=work.after, after=work.before, undoing=not work.undoing)


_BATCH_HOSTS: Final = re.compile(r"\s*\{\{\s*" + HOSTS_VARIABLE + r"\b[^{}]*\}\}\s*")
_CURE: Final = f'hosts: "{{{{ {HOSTS_VARIABLE} }}}}"'
_IMPORTS: Final = ("import_playbook", "ansible.builtin.import_playbook")


def check_playbooks(paths: Iterable[Path]) -> None:
    """Raise ``InvalidInput`` for the first file that is not a playbook for the hosts of a batch.

    Imported playbooks are checked, too.
    """
    queue, seen = list(dict.fromkeys(paths)), set[Path]()
    while queue:
        path = queue.pop(0)
        if path not in seen:
            seen.add(path)
            queue += _imported_playbooks(path)


def _imported_playbooks(path: Path) -> list[Path]:
    """Check one file and return the playbooks that it imports."""
    root = _read(path)
    if not isinstance(root, yaml.SequenceNode) or not root.value:
        _refuse(path, root, "a playbook is a list of plays", f"start it with - {_CURE}")
    imported: list[Path] = []
    for play in root.value:
        if not isinstance(play, yaml.MappingNode):
            _refuse(path, play, "this is not a play", f"a play has {_CURE}")
        keys = {key.value: value for key, value in play.value}
        target = next((keys[name] for name in _IMPORTS if name in keys), None)
        if target is not None:
            imported.append(path.parent / str(target.value))
        elif "hosts" not in keys:
            _refuse(path, play, "the play has no hosts", _CURE)
        elif not _is_for_batch(keys["hosts"]):
            _refuse(path, keys["hosts"], "the play is not for the hosts of the batch", _CURE)
    return imported


def _is_for_batch(hosts: yaml.Node) -> bool:
    text = hosts.value
    return isinstance(text, str) and (text == "localhost" or bool(_BATCH_HOSTS.fullmatch(text)))


def _read(path: Path) -> yaml.Node:
    try:
        text = path.read_text(encoding="utf-8")
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        what = f"the playbook cannot be read: {str(error.strerror).lower()}"
        cure = "check the name; it is relative to the file that names it"
        raise _invalid(path, what, cure) from None
    except UnicodeDecodeError:
        raise _invalid(path, "the playbook is not UTF-8 text", "save it as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise _invalid(path, f"this is not YAML: {error.problem}", line=line) from None
    if root is None:
        raise _invalid(path, "the playbook is empty", f"a play has {_CURE}")
    return root


def _refuse(path: Path, node: yaml.Node, what: str, cure: str) -> NoReturn:
    raise _invalid(path, what, cure, node.start_mark.line + 1)


def _invalid(path: Path, what: str, cure: str = "", line: int | None = None) -> InvalidInput:
    problem = InputProblem(key="", what=what, cure=cure, line=line, code="not-a-playbook")
    return InvalidInput(str(path), [problem])
